# SPDX-License-Identifier: BSD-3-Clause
"""Reduction operations: names of the built-in ones, and handles of those that a communicator was given."""
from __future__ import annotations

import ctypes
from typing import TYPE_CHECKING, Any, Callable, Iterable

from . import _abi, _buffers
from ._abi import Op
from ._library import lib
from .errors import failure, invalid

if TYPE_CHECKING:
    from .communicator import Communicator

# What a caller may give as `op`: "sum", Op.SUM, or its number.
CODES: dict[Any, int] = {name: int(op) for op in Op for name in (op.name.lower(), op)}


class Operation:
    """An operation of your own, made by Communicator.create_operation() or create_premul_sum(); close() ends it."""

    def __init__(self, comm: Communicator, code: int, keep: Any = None) -> None:
        self._comm, self._code, self._keep = comm, code, keep
        self._raised: list[BaseException] = []

    def close(self) -> None:
        """Forget the operation; no call with it may be on its way. A second time does nothing."""
        code, self._code = self._code, -1
        if code >= 0 and self._comm._handle:
            result = lib.op_destroy(self._comm._handle, code)
            if result:
                raise failure(result, self._comm)
        self._keep = None

    def __enter__(self) -> Operation:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def first_raised(operations: Iterable[Any]) -> BaseException | None:
    """The exception that functions of the user's have raised since they were asked last; they forget it."""
    raised: list[BaseException] = []
    for operation in operations:
        if isinstance(operation, Operation):
            raised += operation._raised
            operation._raised.clear()
    return raised[0] if raised else None


def code_of(op: Any) -> int:
    """The number by which C knows an operation."""
    if isinstance(op, Operation):
        if op._code < 0:
            raise invalid("The operation was closed.")
        return op._code
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
    operation = Operation(comm, -1)

    @_abi.OpFunction
    def combine(_context: int, lower: int, inout: int, count: int, kind: int) -> None:
        try:
            if not operation._raised:
                function(_array(lower, count, kind), _array(inout, count, kind))
        except BaseException as error:  # C must not see it
            operation._raised.append(error)

    code = ctypes.c_int()
    result = lib.op_create_user(comm._handle, combine, None, int(commutative), ctypes.byref(code))
    if result:
        raise failure(result, comm)
    operation._code, operation._keep = code.value, combine
    return operation
