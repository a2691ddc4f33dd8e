# SPDX-License-Identifier: BSD-3-Clause
"""torch.ops.rondo.*: collectives as operators of torch, the shortest way from a tensor to the library.

`import rondo.torch.ops` makes them. They take the name of a process group (`group.group_name`), whatever backend it
has, work under torch.compile(fullgraph=True), and return when the call is over; none has a derivative. `n` is the size
of the group.

    all_reduce_(x, group, op="sum")               x = op over the ranks of x
    all_reduce(x, group, op="sum")                the same as a new tensor
    all_gather_into(out, x, group)                out = x of rank 0, of rank 1, ...: n times as many elements
    all_gather(x, group)                          the same as a new tensor, with n times as many rows
    reduce_scatter_into(out, x, group, op="sum")  out = block [my rank] of op over the ranks of x
    reduce_scatter(x, group, op="sum")            the same as a new tensor, with an n-th of the rows
    all_to_all(x, group)                          block i of the rows goes to rank i, block i of the result is its own
    broadcast_(x, group, root=0)                  x = x of that rank of the group
    barrier(group)

The first call with a group is collective over it and opens a communicator, which has an order of calls of its own:
these operators and calls of torch.distributed on the same group do not wait for each other.
"""
from __future__ import annotations

import ctypes
import os
import threading
import weakref
from typing import Any

import torch
from torch.distributed import distributed_c10d as c10d

import rondo

from .._library import lib
from ..operations import CODES
from . import compiled_package
from .meeting import meet
from .tensors import all_reduce_plain, changed, divide, read

# ---- a group's communicator ------------------------------------------------------------------------------------------

_comms: dict[str, rondo.Communicator] = {}
_opening = threading.Lock()


def _open(name: str) -> rondo.Communicator:
    """The communicator for the operators of a group, until the group is destroyed."""
    with _opening:
        if name in _comms:
            return _comms[name]
        group = c10d._resolve_process_group(name)
        try:
            timeout = group._get_backend(torch.device("cpu")).options._timeout
        except (AttributeError, RuntimeError):  # it has none for the CPU
            timeout = c10d.default_pg_timeout
        store = c10d._world.pg_map[group][1]
        comm = meet(store, "operators", group.rank(), group.size(), timeout.total_seconds())
        _comms[name] = comm
        if _native is not None:
            _native.rondo_operators_know(name.encode(), comm._handle)
        # Torch drops the store when the group is destroyed, even if somebody keeps the group.
        weakref.finalize(store, _forget, name, comm)
        return comm


def _forget(name: str, comm: rondo.Communicator) -> None:
    if _comms.get(name) is comm:
        del _comms[name]
        if _native is not None:
            _native.rondo_operators_know(name.encode(), None)
    comm.close()


# ---- the operators ---------------------------------------------------------------------------------------------------


def all_reduce_(x: torch.Tensor, group: str, op: str = "sum") -> None:
    comm = _comms.get(group) or _open(group)
    if not all_reduce_plain(comm, x, x, CODES.get(op)):
        with changed(x) as flat:
            comm.all_reduce(flat, op=op)


def all_reduce(x: torch.Tensor, group: str, op: str = "sum") -> torch.Tensor:
    comm = _comms.get(group) or _open(group)
    out = x.new_empty(x.shape)
    if not all_reduce_plain(comm, x, out, CODES.get(op)):
        comm.all_reduce(read(x), out, op)
    return out


def all_gather_into(out: torch.Tensor, x: torch.Tensor, group: str) -> None:
    comm = _comms.get(group) or _open(group)
    with changed(out) as flat:
        comm.all_gather(read(x), flat)


def all_gather(x: torch.Tensor, group: str) -> torch.Tensor:
    out = x.new_empty(_gathered_shape(x, group))
    all_gather_into(out, x, group)
    return out


def reduce_scatter_into(out: torch.Tensor, x: torch.Tensor, group: str, op: str = "sum") -> None:
    comm = _comms.get(group) or _open(group)
    with changed(out) as flat:
        comm.reduce_scatter(read(x), flat, op)


def reduce_scatter(x: torch.Tensor, group: str, op: str = "sum") -> torch.Tensor:
    out = x.new_empty(_scattered_shape(x, group))
    reduce_scatter_into(out, x, group, op)
    return out


def all_to_all(x: torch.Tensor, group: str) -> torch.Tensor:
    out = x.new_empty(x.shape)
    _scattered_shape(x, group)
    (_comms.get(group) or _open(group)).all_to_all(read(x), out)
    return out


def broadcast_(x: torch.Tensor, group: str, root: int = 0) -> None:
    comm = _comms.get(group) or _open(group)
    with changed(x) as flat:
        comm.broadcast(flat, root)


def barrier(group: str) -> None:
    (_comms.get(group) or _open(group)).barrier()


# ---- their shapes ----------------------------------------------------------------------------------------------------


def _gathered_shape(x: torch.Tensor, group: str) -> tuple[int, ...]:
    size = c10d._resolve_process_group(group).size()
    return (size * x.shape[0], *x.shape[1:]) if x.dim() else (size,)


def _scattered_shape(x: torch.Tensor, group: str) -> tuple[int, ...]:
    size = c10d._resolve_process_group(group).size()
    if not x.dim() or x.shape[0] % size:
        raise ValueError(f"rondo: {x.shape[0] if x.dim() else 'no'} rows do not divide equally across a group of "
                         f"{size} ranks.")
    return (x.shape[0] // size, *x.shape[1:])


def _nothing(*_arguments: Any) -> None:
    """An operator that returns no tensor has no shape to tell."""


_OPERATORS = (
    ("all_reduce_(Tensor(a!) x, str group, str op='sum') -> ()", all_reduce_, _nothing),
    ("all_reduce(Tensor x, str group, str op='sum') -> Tensor", all_reduce, lambda x, *_: x.new_empty(x.shape)),
    ("all_gather_into(Tensor(a!) out, Tensor x, str group) -> ()", all_gather_into, _nothing),
    ("all_gather(Tensor x, str group) -> Tensor", all_gather,
     lambda x, group: x.new_empty(_gathered_shape(x, group))),
    ("reduce_scatter_into(Tensor(a!) out, Tensor x, str group, str op='sum') -> ()", reduce_scatter_into, _nothing),
    ("reduce_scatter(Tensor x, str group, str op='sum') -> Tensor", reduce_scatter,
     lambda x, group, *_: x.new_empty(_scattered_shape(x, group))),
    ("all_to_all(Tensor x, str group) -> Tensor", all_to_all, lambda x, _group: x.new_empty(x.shape)),
    ("broadcast_(Tensor(a!) x, str group, int root=0) -> ()", broadcast_, _nothing),
    ("barrier(str group) -> ()", barrier, _nothing),
)


def _resolving(name: str) -> Any:
    """A kernel for views that are read as conjugated or negated: torch's own wants what was changed to be returned."""
    def kernel(changed_one: torch.Tensor, *rest: Any) -> None:
        with torch.no_grad():
            plain, *others = (value.resolve_conj().resolve_neg() if isinstance(value, torch.Tensor) else value
                              for value in (changed_one, *rest))
            getattr(torch.ops.rondo, name)(plain, *others)
            if changed_one.is_conj() or changed_one.is_neg():
                changed_one.copy_(plain)
    return kernel


def _load_native() -> ctypes.CDLL | None:
    """The kernels of rondo-torch where that is installed, else those of operators.cc, if torch can have them."""
    compiled = compiled_package()
    path = os.path.join(os.path.dirname(os.path.abspath(__file__)), "operators.so")
    if compiled is not None:
        path = compiled.PATH
    if os.environ.get("TORCH_RONDO") == "python" or not os.path.exists(path):
        return None
    library = ctypes.CDLL(path)
    library.rondo_operators_register.argtypes = [ctypes.c_void_p, ctypes.c_void_p]
    library.rondo_operators_know.argtypes = [ctypes.c_char_p, ctypes.c_void_p]
    library.rondo_operators_know.restype = None
    functions = [ctypes.cast(function, ctypes.c_void_p) for function in (lib.all_reduce, lib.group_is_open)]
    return library if library.rondo_operators_register(*functions) else None


_library = torch.library.Library("rondo", "DEF")
for _schema, _function, _fake in _OPERATORS:
    _name = _schema.partition("(")[0]
    _library.define(_schema)
    torch.library.register_fake(f"rondo::{_name}", _fake, lib=_library)
    if "(a!)" in _schema:
        for _key in ("Conjugate", "Negative"):
            _library.impl(_name, _resolving(_name), _key)
_native = _load_native()
for _schema, _function, _fake in _OPERATORS:
    _name = _schema.partition("(")[0]
    if _native is not None and _function in (all_reduce_, all_reduce):
        _library.define("_" + _schema)  # what the kernels leave to Python
        _name = "_" + _name
    # A barrier has no tensor by whose device torch could choose.
    _library.impl(_name, _function, "CompositeExplicitAutograd" if _name == "barrier" else "CPU")
# Nothing depends on it, so a compiler would leave it out, or move it.
torch.library._register_effectful_op("rondo::barrier", torch.library.EffectType.ORDERED)


# ---- for engines that have more than operators -----------------------------------------------------------------------


def gathered_along(x: torch.Tensor, group: str, dim: int) -> torch.Tensor:
    """The tensors of all ranks, one behind the other along a dimension."""
    front = x.movedim(dim, 0)
    return torch.ops.rondo.all_gather(front, group).movedim(0, dim)


def gather(x: torch.Tensor, parts: list[torch.Tensor] | None, group: str, root: int) -> None:
    """parts[i] = x of rank i, at the root; `parts` is None elsewhere."""
    whole = (_comms.get(group) or _open(group)).gather(read(x), root=root)
    if parts:
        divide(whole.reshape(-1), parts)


def send(tensors: list[torch.Tensor], group: str, to: int) -> None:
    """For receive() on that rank. Returns when the tensors may be changed again."""
    comm = _comms.get(group) or _open(group)
    for tensor in tensors:
        if tensor.numel():
            comm.send(read(tensor), to)


def receive(tensors: list[torch.Tensor], group: str, source: int) -> list[torch.Tensor]:
    """Fill contiguous tensors with what send() on that rank gave, and return them."""
    comm = _comms.get(group) or _open(group)
    for tensor in tensors:
        if tensor.numel():
            comm.recv(tensor, source)
    return tensors
