# SPDX-License-Identifier: BSD-3-Clause
"""librondo, loaded: the one in the wheel, beside this file, or the installed one that the loader finds.

Functions of the library lose the prefix here: lib.all_reduce() is rondo_all_reduce(). They release Python's lock while
they run, so other threads go on while a call waits for peers.
"""
import ctypes
import os

from . import _abi

SONAME = f"librondo.so.{_abi.HEADER_VERSION[0]}"


def _load() -> ctypes.CDLL:
    inside = os.path.join(os.path.dirname(os.path.abspath(__file__)), "librondo.so")
    if os.path.exists(inside):
        return ctypes.CDLL(inside)
    try:
        return ctypes.CDLL(SONAME)
    except OSError as error:
        raise ImportError(f"{SONAME} is neither in this package nor where the loader looks: install the wheel of "
                          f"rondo-comm, or Rondo itself, or set LD_LIBRARY_PATH to its folder ({error})") from None


class _Functions:
    """Each rondo_NAME of the header as an attribute NAME, with its prototype."""

    def __init__(self, library: ctypes.CDLL) -> None:
        for name, (result, arguments) in _abi.PROTOTYPES.items():
            try:
                function = library[name]  # an object of its own, which nobody else changes
            except AttributeError:
                raise ImportError(f"{library._name} has no {name}(): it is another version of Rondo than this "
                                  f"package, which is {'.'.join(map(str, _abi.HEADER_VERSION))}") from None
            function.restype, function.argtypes = result, arguments
            setattr(self, name.removeprefix("rondo_"), function)


lib = _Functions(_load())
if lib.version_number() // 100 != _abi.HEADER_VERSION[0] * 100 + _abi.HEADER_VERSION[1]:
    raise ImportError(f"librondo is version {lib.version().decode()}, but this package is made for "
                      f"{'.'.join(map(str, _abi.HEADER_VERSION))}: install both from the same source")
