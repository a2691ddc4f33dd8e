# SPDX-License-Identifier: BSD-3-Clause
"""vLLM's collectives on CPUs by Rondo: rondo.vllm.install() in each process, before vLLM makes its groups.

It takes the place of vLLM's own communicator through shared memory, at most 8 ranks of one host with as many threads
each: here any number of ranks on any number of hosts.
"""
from __future__ import annotations

import pickle
from typing import Any

import torch
import torch.distributed as dist
from vllm.distributed.device_communicators import cpu_communicator as theirs

from .torch import ops  # noqa: F401  makes torch.ops.rondo


class Distributed:
    """What vLLM's CpuCommunicator calls in place of torch.distributed; it holds a group."""

    def __init__(self, communicator: Any) -> None:
        self._group = communicator.device_group
        self._name = self._group.group_name

    @staticmethod
    def make_group_name(_communicator: Any) -> str:
        """Ranks of all hosts may share it, so their names are equal."""
        return "rondo"

    def all_reduce(self, x: torch.Tensor, group: Any = None) -> None:
        torch.ops.rondo.all_reduce_(x, self._name)

    def all_gather_into_tensor(self, output: torch.Tensor, x: torch.Tensor, group: Any = None) -> None:
        torch.ops.rondo.all_gather_into(output, x, self._name)

    def gather(self, x: torch.Tensor, parts: list[torch.Tensor] | None, dst: int = -1, group: Any = None) -> None:
        """`dst` is a rank of the world."""
        ops.gather(x, parts, self._name, dist.get_group_rank(self._group, dst))

    def send_tensor_dict(self, tensors: dict[str, torch.Tensor], dst: int) -> None:
        """`dst` is a rank of the group."""
        told = pickle.dumps([(key, tensor.dtype, tensor.shape) for key, tensor in tensors.items()])
        ops.send([torch.tensor([len(told)]), torch.frombuffer(bytearray(told), dtype=torch.uint8), *tensors.values()],
                 self._name, dst)

    def recv_tensor_dict(self, src: int) -> dict[str, torch.Tensor]:
        length, = ops.receive([torch.empty(1, dtype=torch.int64)], self._name, src)
        told, = ops.receive([torch.empty(int(length), dtype=torch.uint8)], self._name, src)
        described = pickle.loads(told.numpy().tobytes())
        return dict(zip((key for key, _, _ in described), ops.receive(
            [torch.empty(shape, dtype=dtype) for _, dtype, shape in described], self._name, src)))


def install() -> None:
    """Every group that vLLM makes in this process for CPUs is Rondo's from now on."""
    theirs._CPUSHMDistributed = Distributed
