# SPDX-License-Identifier: BSD-3-Clause
"""Arrays in the shared heap, which peers on the node map: calls on them make no staging copy."""
from __future__ import annotations

import ctypes
import math
import sys
import weakref
from typing import Any, Sequence

from . import _buffers
from ._library import lib
from .errors import check, invalid


def _shared_bytes(count: int) -> ctypes.Array:
    """Zeroed bytes of the shared heap, given back when nobody refers to them any more."""
    memory = ctypes.c_void_p()
    check(lib.mem_alloc(max(count, 1), ctypes.byref(memory)))
    array = (ctypes.c_char * max(count, 1)).from_address(memory.value)
    # Not at exit: then the heap goes with the process, and arrays may be in use until the end.
    weakref.finalize(array, lib.mem_free, memory.value).atexit = False
    return array


def empty(shape: int | Sequence[int], dtype: Any = "float32") -> Any:
    """A zeroed array of `shape` in the shared heap, page aligned. Thread-safe.

    shape  elements per dimension
    dtype  of NumPy (or its name): the array is a numpy.ndarray. Of torch: it is a tensor on the CPU. Without NumPy, a
           name such as "float32" gives a memoryview of one dimension.

    It is freed with the last reference to it. Raises OutOfMemory.
    """
    shape = (shape,) if isinstance(shape, int) else tuple(shape)
    if any(extent < 0 for extent in shape):
        raise invalid(f"The shape {shape} has a negative extent.")
    count = math.prod(shape)
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(dtype, torch.dtype):
        memory = _shared_bytes(count * dtype.itemsize)
        return torch.frombuffer(memory, dtype=dtype, count=count).view(shape) if count else \
            torch.empty(shape, dtype=dtype)
    try:
        import numpy
    except ImportError:
        return _plain(shape, dtype)
    kind = numpy.dtype(dtype)
    if not count:
        return numpy.empty(shape, kind)
    return numpy.frombuffer(_shared_bytes(count * kind.itemsize), kind, count).reshape(shape)


_LETTERS = {"int8": "b", "uint8": "B", "int16": "h", "uint16": "H", "int32": "i", "uint32": "I", "int64": "q",
            "uint64": "Q", "float32": "f", "float64": "d"}


def _plain(shape: tuple[int, ...], dtype: Any) -> memoryview:
    if len(shape) != 1 or dtype not in _LETTERS:
        raise invalid(f"Without NumPy there is no array of shape {shape} and type {dtype}: install numpy, or ask for "
                      f"one dimension and one of {', '.join(_LETTERS)}.")
    size = _buffers.SIZES[_buffers.NAMES[dtype]]
    return memoryview(_shared_bytes(shape[0] * size)).cast("B")[:shape[0] * size].cast(_LETTERS[dtype])


class Registration:
    """Existing memory, given to the shared heap in place by Communicator.register(); close() takes it back.

    So does the closing of the communicator, also of one that nobody refers to.
    """

    def __init__(self, comm: Any, handle: int, keep: Any) -> None:
        self._comm, self._handle = comm, handle
        comm._registered[handle] = keep

    def close(self) -> None:
        """Make the memory private again; the array is kept until then. A second time does nothing."""
        if self._handle and self._comm._handle:
            self._comm._check(lib.comm_deregister(self._comm._handle, self._handle))
        handle, self._handle = self._handle, None
        self._comm._registered.pop(handle, None)

    def __enter__(self) -> Registration:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
