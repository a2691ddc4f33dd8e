# SPDX-License-Identifier: BSD-3-Clause
"""Reduction operations: names of the built-in ones, and handles of those that a communicator was given."""
from __future__ import annotations

import contextlib
import ctypes
import threading
from typing import TYPE_CHECKING, Any, Callable, Iterable

from . import _abi, _buffers
from ._abi import Op
from ._closing import Closing
from ._library import lib
from .errors import Error, failure, invalid

if TYPE_CHECKING:
    from .communicator import Communicator

# What a caller may give as `op`: "sum", Op.SUM, or its number.
CODES: dict[Any, int] = {name: int(op) for op in Op for name in (op.name.lower(), op)}


class Operation(Closing):
    """An operation of your own, made by Communicator.create_operation() or create_premul_sum() for calls on that.

    close() ends it, and so does the last reference to it; calls on streams and in groups refer to it until they end.
    """

    def __init__(self, comm: Communicator, code: int, keep: Any, raised: dict[int, BaseException]) -> None:
        self._comm, self._keep = comm, keep
        self._handle: int | None = code
        self._raised = raised  # by threads: the one that runs a call calls the function, and asks behind the call

    def close(self) -> None:
        """Forget the operation; no call with it may be on its way. A second time does nothing."""
        code, self._handle = self._handle, None
        if code and self._comm._handle:
            result = lib.op_destroy(self._comm._handle, code)
            if result:
                raise failure(result, self._comm)
        self._keep = None

    def __del__(self) -> None:
        with contextlib.suppress(Error):  # a process that was forked has to leave it to its parent
            super().__del__()


def first_raised(operations: Iterable[Any]) -> BaseException | None:
    """The exception that functions of the user's have raised in this thread since it asked last; they forget it."""
    me = threading.get_ident()
    raised = [operation._raised.pop(me) for operation in operations
              if isinstance(operation, Operation) and me in operation._raised]
    return raised[0] if raised else None


def code_of(op: Any, comm: Any) -> int:
    """The number by which C knows an operation in a call on the communicator."""
    if isinstance(op, Operation):
        if op._handle is None:
            raise invalid("The operation was closed.")
        if op._comm is not comm:
            raise invalid("The operation is one of another communicator: make one on each that makes calls with it.")
        return op._handle
    try:
        return CODES[op]
    except (KeyError, TypeError):
        raise invalid(f"{op!r} is no operation: there are {', '.join(o.name.lower() for o in Op)}, and those that "
                      "create_operation() makes.") from None


def _array(address: int, count: int, kind: int) -> Any:
    """Elements at an address as an array of NumPy, or without it, and of types it does not know, as bytes."""
    raw = (ctypes.c_char * (count * _buffers.SIZES[kind])).from_address(address)
    try:
        import numpy
        return numpy.frombuffer(raw, _buffers.NAME_OF[kind])
    except (ImportError, TypeError):
        return memoryview(raw).cast("B")


def from_function(comm: Communicator, function: Callable[[Any, Any], None], commutative: bool) -> Operation:
    """An operation that calls `function(lower, inout)`; what it raises is raised by the call that it was in."""
    raised: dict[int, BaseException] = {}

    @_abi.OpFunction
    def combine(_context: int, lower: int, inout: int, count: int, kind: int) -> None:
        me = threading.get_ident()
        try:
            if me not in raised:
                function(_array(lower, count, kind), _array(inout, count, kind))
        except BaseException as error:  # C must not see it
            raised[me] = error

    code = ctypes.c_int()
    result = lib.op_create_user(comm._handle, combine, None, int(commutative), ctypes.byref(code))
    if result:
        raise failure(result, comm)
    return Operation(comm, code.value, combine, raised)
