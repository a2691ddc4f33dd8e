# SPDX-License-Identifier: BSD-3-Clause
"""Tensors as calls want them: contiguous, of numbers, flat; and what torch calls a reduction."""
from __future__ import annotations

from contextlib import contextmanager
from ctypes import byref, c_void_p, sizeof
from typing import Any, Iterator

import torch
import torch.distributed as dist

import rondo

from .. import groups
from .._abi import Call, Collective, Result
from .._buffers import NAMES, OTHER
from .._library import lib
from ..errors import failure
from ..operations import CODES

_STRIDED = torch.strided
_Kind = dist.ReduceOp.RedOpType
OPERATIONS = {_Kind.SUM: "sum", _Kind.AVG: "avg", _Kind.PRODUCT: "prod", _Kind.MIN: "min", _Kind.MAX: "max",
              _Kind.BAND: "band", _Kind.BOR: "bor", _Kind.BXOR: "bxor"}

CODES_BY_KIND = {kind: CODES[name] for kind, name in OPERATIONS.items()}
# What the library computes with as it is.
TYPES = {getattr(torch, name): kind for name, kind in NAMES.items() if kind < OTHER and hasattr(torch, name)}

def is_plain(tensor: torch.Tensor) -> bool:
    """Its elements are in the memory of the CPU one after the other, as they are."""
    return (tensor.is_cpu and tensor.layout == _STRIDED and tensor.is_contiguous() and not tensor.is_conj() and
            not tensor.is_neg())


_all_reduce, _post = lib.all_reduce, lib.collective_post
_groups = groups._mine


def all_reduce_plain(comm: rondo.Communicator, x: torch.Tensor, out: torch.Tensor, code: int | None) -> bool:
    """out = the reduction over the ranks of x, the short way; `out` is contiguous. False: it has to go another way."""
    kind = TYPES.get(x.dtype)
    if kind is None or code is None or _groups.open or not is_plain(x):
        return False
    result = _all_reduce(x.data_ptr(), out.data_ptr(), x.numel(), kind, code, comm._handle, None)
    if result:
        raise failure(result, comm)
    return True


POSTED_MOST = 1 << 16  # bytes of a buffer with which it is worth to ask


def post(comm: rondo.Communicator, collective: Collective, x: torch.Tensor, out: torch.Tensor, count: int,
         code: int | None) -> int | None:
    """Begin a short call on plain tensors without waiting for peers: a request, 0 if it is over already, or None if it
    has to be made in another way. `x` and `out` belong to it until it is over."""
    kind = TYPES.get(x.dtype)
    if kind is None or code is None or _groups.open or out.dtype != x.dtype:
        return None
    for tensor in (x, out):  # a sparse one has no bytes to count
        if not is_plain(tensor) or tensor.nbytes > POSTED_MOST:
            return None
    request = c_void_p()
    result = _post(byref(Call(sizeof(Call), collective, kind, code, 0, x.data_ptr(), out.data_ptr(), count,
                              comm._handle)), byref(request))
    if result == Result.IN_PROGRESS:
        return None
    if result:
        raise failure(result, comm)
    return request.value or 0


@contextmanager
def operation(comm: rondo.Communicator, options: Any, tensor: torch.Tensor) -> Iterator[Any]:
    """What rondo calls the reduction of a call's options, for tensors like this one."""
    given = options.reduceOp
    kind = given.op if hasattr(given, "op") else given
    if kind in OPERATIONS:
        yield OPERATIONS[kind]
    elif kind == _Kind.PREMUL_SUM:
        factor = torch.as_tensor(given.factor).to(tensor.dtype).reshape(1)
        with comm.create_premul_sum(factor) as made:
            yield made
    else:
        raise ValueError(f"rondo: There is no reduction {given}.")


@contextmanager
def changed(tensor: torch.Tensor) -> Iterator[torch.Tensor]:
    """A contiguous tensor, to be written; what is there at the end is the tensor's."""
    plain = tensor.detach()
    flat = plain.resolve_conj().resolve_neg().contiguous()
    yield flat
    if flat.data_ptr() != plain.data_ptr() or flat.stride() != plain.stride():
        plain.copy_(flat)


def read(tensor: torch.Tensor) -> torch.Tensor:
    """A contiguous tensor, to be read."""
    return tensor.detach().resolve_conj().resolve_neg().contiguous()


def joined(tensors: list[torch.Tensor]) -> torch.Tensor:
    """All elements, one tensor behind the other."""
    return torch.cat([tensor.detach().reshape(-1) for tensor in tensors])


def divide(whole: torch.Tensor, tensors: list[torch.Tensor]) -> None:
    """The opposite of joined()."""
    for part, tensor in zip(whole.split([tensor.numel() for tensor in tensors]), tensors):
        tensor.detach().copy_(part.view(tensor.shape))


def dense(*tensors: torch.Tensor) -> None:
    for tensor in tensors:
        if tensor.device.type != "cpu":
            raise ValueError(f"rondo: The backend takes tensors on the CPU, not on {tensor.device}: use "
                             'init_process_group("cpu:rondo,cuda:nccl").')
        if tensor.layout != torch.strided:
            raise ValueError(f"rondo: Dense tensors only, not {tensor.layout}; all_reduce takes sparse_coo as well.")


def gathered(comm: rondo.Communicator, tensor: torch.Tensor) -> torch.Tensor:
    """The tensors of all ranks, which are alike, as rows."""
    return comm.all_gather(tensor.contiguous(), tensor.new_empty((comm.size, *tensor.shape)))


def sum_of_sparse(comm: rondo.Communicator, tensor: torch.Tensor) -> None:
    """The tensor of layout sparse_coo becomes the sum over all ranks, each with non-zero elements of its own."""
    mine = tensor.detach().coalesce()
    counts = gathered(comm, torch.tensor([mine._nnz(), mine.sparse_dim()]))
    if counts[:, 1].unique().numel() > 1:
        raise ValueError(f"rondo: Ranks gave tensors of {counts[:, 1].tolist()} sparse dimensions.")
    room = int(counts[:, 0].max())
    indices, values = mine.indices().new_zeros((room, mine.sparse_dim())), mine.values().new_zeros(
        (room, *mine.values().shape[1:]))
    indices[:mine._nnz()], values[:mine._nnz()] = mine.indices().T, mine.values()
    every_index, every_value = gathered(comm, indices), gathered(comm, values)
    used = [every_index[rank, :count] for rank, count in enumerate(counts[:, 0].tolist())]
    kept = [every_value[rank, :count] for rank, count in enumerate(counts[:, 0].tolist())]
    with torch.no_grad():  # a detached tensor would have indices of its own
        tensor.copy_(torch.sparse_coo_tensor(torch.cat(used).T, torch.cat(kept), mine.shape).coalesce())
