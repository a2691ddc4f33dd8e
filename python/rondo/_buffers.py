# SPDX-License-Identifier: BSD-3-Clause
"""What callers give as a buffer, as the library wants it: address, count and type of elements. Nothing is copied.

Who reads an object is found out once per class: NumPy arrays, tensors of torch, DLPack (JAX and others), and whatever
has the buffer protocol. An element type the library does not compute with still has a number here, from OTHER up; such
elements can be moved, as bytes, and bool and complex numbers can be added where `reduced` says how.
"""
from __future__ import annotations

import ctypes
import sys
from typing import Any, Callable, Tuple

from ._abi import Op, Type
from .errors import invalid

# (address, elements, type, what has to be kept until the call is over)
Buffer = Tuple[int, int, int, Any]

OTHER = 64  # the first number of those types: bool, two complex types, and bytes of any size
BOOL, COMPLEX64, COMPLEX128 = OTHER, OTHER + 1, OTHER + 2
OPAQUE = OTHER + 64  # OPAQUE + n: elements of n bytes

NAMES = {kind.name.lower(): int(kind) for kind in Type}
NAMES["float8_e4m3fn"] = NAMES.pop("float8_e4m3")  # by the short name ml_dtypes means another type, with infinities
NAME_OF = {kind: name for name, kind in NAMES.items()}
NAMES.update({"bool": BOOL, "complex64": COMPLEX64, "complex128": COMPLEX128})
SIZES = {int(kind): size for kind, size in zip(Type, (1, 1, 2, 2, 4, 4, 8, 8, 2, 2, 4, 8, 1, 1))}
SIZES.update({BOOL: 1, COMPLEX64: 8, COMPLEX128: 16})

# Of the struct module: signed, unsigned, floating.
FORMATS = {"b": "int", "h": "int", "i": "int", "l": "int", "q": "int", "n": "int", "B": "uint", "H": "uint",
           "I": "uint", "L": "uint", "Q": "uint", "N": "uint", "e": "float", "f": "float", "d": "float", "c": "uint",
           "F": "complex", "D": "complex", "Zf": "complex", "Zd": "complex"}


def size_of(kind: int) -> int:
    """Bytes of one element."""
    return SIZES[kind] if kind in SIZES else kind - OPAQUE


def moved(count: int, kind: int) -> tuple[int, int]:
    """Count and type with which elements travel that nobody computes with."""
    return (count, kind) if kind < OTHER else (count * size_of(kind), int(Type.UINT8))


def reduced(count: int, kind: int, op: int) -> tuple[int, int, int]:
    """Count, type and operation that compute what `op` means for bool and complex numbers."""
    if kind < OTHER:
        return count, kind, op
    if kind == BOOL and op != Op.AVG and op < len(Op):
        return count, int(Type.UINT8), {Op.SUM: Op.MAX, Op.PROD: Op.MIN}.get(op, op)  # any, all
    if kind in (COMPLEX64, COMPLEX128) and op in (Op.SUM, Op.AVG):
        return 2 * count, int(Type.FLOAT32 if kind == COMPLEX64 else Type.FLOAT64), op
    raise invalid(f"There is no {Op(op).name.lower() if op < len(Op) else 'such operation'} of elements of this type: "
                  "bool has all but avg, complex numbers sum and avg, and other types can only be moved.")


def _not_contiguous(what: str) -> Exception:
    return invalid(f"The {what} is not contiguous in C's order: give a copy, such as numpy.ascontiguousarray(x) or "
                   "x.contiguous().")


def _read_only(what: str) -> Exception:
    return invalid(f"The {what} is read-only, but the call writes to it.")


# ---- NumPy -----------------------------------------------------------------------------------------------------------

_numpy_types: dict[Any, int] = {}  # by dtype


def _numpy_type(dtype: Any) -> int:
    if not dtype.isnative:
        raise invalid(f"The array's type {dtype} has the byte order of other machines: use "
                      "x.astype(x.dtype.newbyteorder('=')).")
    if dtype.hasobject:
        raise invalid("The array holds Python objects, which only this process can read.")
    kind = _numpy_types[dtype] = NAMES.get(dtype.name, OPAQUE + dtype.itemsize)
    return kind


def _read_numpy(array: Any, writes: bool, _one=ctypes.c_char.from_buffer, _address=ctypes.addressof) -> Buffer:
    dtype = array.dtype
    kind = _numpy_types.get(dtype, -1)
    if kind < 0:
        kind = _numpy_type(dtype)
    try:
        return _address(_one(array)), array.size, kind, array  # of all ways to the address the fastest
    except (TypeError, ValueError, BufferError):
        pass  # no element, read-only, not contiguous, or a type that the buffer protocol does not have
    if not array.flags.c_contiguous:
        raise _not_contiguous("array")
    if writes and not array.flags.writeable:
        raise _read_only("array")
    interface = array.__array_interface__  # that of a scalar keeps the copy that it tells of
    return interface["data"][0], array.size, kind, (array, interface)


# ---- torch -----------------------------------------------------------------------------------------------------------

_torch_types: dict[Any, int] = {}


def _torch_type(tensor: Any) -> int:
    name = str(tensor.dtype).removeprefix("torch.")
    kind = _torch_types[tensor.dtype] = NAMES.get(name, OPAQUE + tensor.element_size())
    return kind


def _read_tensor(tensor: Any, writes: bool) -> Buffer:
    if tensor.device.type != "cpu":
        raise invalid(f"The tensor is on {tensor.device}; Python's calls take memory of the host: use tensor.cpu().")
    if not tensor.is_contiguous():
        raise _not_contiguous("tensor")
    kind = _torch_types.get(tensor.dtype)
    if kind is None:
        kind = _torch_type(tensor)
    if tensor.is_conj() or tensor.is_neg():
        raise invalid("The tensor is a conjugated or negated view: use tensor.resolve_conj().resolve_neg().")
    return tensor.data_ptr(), tensor.numel(), kind, tensor


# ---- the buffer protocol ---------------------------------------------------------------------------------------------


class _PyBuffer(ctypes.Structure):
    """Py_buffer of Python's stable interface."""
    _fields_ = [("buf", ctypes.c_void_p), ("obj", ctypes.py_object), ("len", ctypes.c_ssize_t),
                ("itemsize", ctypes.c_ssize_t), ("readonly", ctypes.c_int), ("ndim", ctypes.c_int),
                ("format", ctypes.c_char_p), ("shape", ctypes.c_void_p), ("strides", ctypes.c_void_p),
                ("suboffsets", ctypes.c_void_p), ("internal", ctypes.c_void_p)]


LITTLE = "<" if sys.byteorder == "little" else ""
_get_buffer = ctypes.pythonapi.PyObject_GetBuffer
_get_buffer.argtypes, _get_buffer.restype = (ctypes.py_object, ctypes.POINTER(_PyBuffer), ctypes.c_int), ctypes.c_int
_release_buffer = ctypes.pythonapi.PyBuffer_Release
_release_buffer.argtypes, _release_buffer.restype = (ctypes.POINTER(_PyBuffer),), None


def _address_of(view: memoryview) -> int:
    plain = _PyBuffer()
    _get_buffer(view, ctypes.byref(plain), 0)
    address = plain.buf or 0
    _release_buffer(ctypes.byref(plain))  # the view itself keeps the memory where it is
    return address


def _format_type(view: memoryview) -> int:
    form = view.format.lstrip("@=" + LITTLE)
    if form == "?":
        return BOOL
    if form.startswith((">", "<", "!")):
        raise invalid(f"The buffer's format {view.format} has the byte order of other machines.")
    return NAMES.get(f"{FORMATS.get(form, 'opaque')}{8 * view.itemsize}", OPAQUE + view.itemsize)


def _read_buffer(given: Any, writes: bool) -> Buffer:
    view = memoryview(given)
    if not view.c_contiguous:
        raise _not_contiguous("buffer")
    if writes and view.readonly:
        raise _read_only("buffer")
    return _address_of(view), view.nbytes // view.itemsize if view.itemsize else 0, _format_type(view), view


# ---- DLPack ----------------------------------------------------------------------------------------------------------


class _DLTensor(ctypes.Structure):
    """DLTensor of dlpack.h; what manages it stands behind, and what is versioned has a header before."""
    _fields_ = [("data", ctypes.c_void_p), ("device_type", ctypes.c_int32), ("device_id", ctypes.c_int32),
                ("ndim", ctypes.c_int32), ("code", ctypes.c_uint8), ("bits", ctypes.c_uint8),
                ("lanes", ctypes.c_uint16), ("shape", ctypes.POINTER(ctypes.c_int64)),
                ("strides", ctypes.POINTER(ctypes.c_int64)), ("byte_offset", ctypes.c_uint64)]


HOST_DEVICES = (1, 3)  # kDLCPU, kDLCUDAHost
DL_CODES = {0: "int", 1: "uint", 2: "float", 4: "bfloat", 5: "complex", 6: "bool"}
_capsule_pointer = ctypes.pythonapi.PyCapsule_GetPointer
_capsule_pointer.argtypes, _capsule_pointer.restype = (ctypes.py_object, ctypes.c_char_p), ctypes.c_void_p


def _strides_are_plain(tensor: _DLTensor) -> bool:
    expected = 1
    for i in reversed(range(tensor.ndim if tensor.strides else 0)):
        if tensor.shape[i] != 1 and tensor.strides[i] != expected:
            return False
        expected *= tensor.shape[i]
    return True


def _read_dlpack(given: Any, writes: bool) -> Buffer:
    if given.__dlpack_device__()[0] not in HOST_DEVICES:
        raise invalid("The array is in memory of a device; Python's calls take memory of the host.")
    if writes:  # this form of DLPack has no word for read-only memory; who has some says so to the buffer protocol
        try:
            if memoryview(given).readonly:
                raise _read_only("array")
        except (TypeError, BufferError):
            pass
    capsule = given.__dlpack__()  # never consumed: it gives the memory back when it is dropped
    tensor = _DLTensor.from_address(_capsule_pointer(capsule, b"dltensor"))
    count = 1
    for i in range(tensor.ndim):
        count *= tensor.shape[i]
    if count and not _strides_are_plain(tensor):
        raise _not_contiguous("array")
    bits = tensor.bits * tensor.lanes
    if bits % 8:
        raise invalid(f"The array has elements of {bits} bits: give it as bytes, or of a wider type.")
    name = DL_CODES.get(tensor.code, "opaque") + (str(bits) if tensor.code != 6 else "")
    return (tensor.data or 0) + tensor.byte_offset, count, NAMES.get(name, OPAQUE + bits // 8), (given, capsule)


# ---- choosing --------------------------------------------------------------------------------------------------------

_readers: dict[type, Callable[[Any, bool], Buffer]] = {}


def _find_reader(given: Any) -> Callable[[Any, bool], Buffer]:
    cls = type(given)
    if cls.__module__.split(".")[0] == "numpy" or hasattr(given, "__array_interface__") and hasattr(given, "flags"):
        reader = _read_numpy
    elif hasattr(given, "data_ptr") and hasattr(given, "is_contiguous"):
        reader = _read_tensor
    elif hasattr(given, "__dlpack__"):
        reader = _read_dlpack
    else:
        try:
            memoryview(given)
        except TypeError:
            raise TypeError(f"{cls.__name__} is no buffer: NumPy arrays, tensors of torch, and whatever has __dlpack__ "
                            "or the buffer protocol are") from None
        reader = _read_buffer
    _readers[cls] = reader
    return reader


def describe(given: Any, writes: bool = False) -> Buffer:
    """Address, elements and type of a buffer, and what to keep meanwhile."""
    reader = _readers.get(type(given)) or _find_reader(given)
    return reader(given, writes)
