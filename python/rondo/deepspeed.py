# SPDX-License-Identifier: BSD-3-Clause
"""DeepSpeed's tensor-parallel inference on CPUs by Rondo: rondo.deepspeed.install() before init_distributed().

It takes the place of DeepSpeed's own all-reduce through shared memory, which is compiled on the user's machine: for
tensors of every type and layout, in every group, on one host or several, and a rank that died is an error.
"""
from __future__ import annotations

import importlib
from typing import Any

import torch
import torch.distributed as dist

from .torch import ops  # noqa: F401  makes torch.ops.rondo
from .torch.tensors import OPERATIONS


def install() -> None:
    """Every inference_all_reduce() of this process is Rondo's from now on."""
    theirs = importlib.import_module("deepspeed.comm.torch")  # deepspeed.comm.torch is torch itself
    other = theirs.TorchBackend.inference_all_reduce

    def inference_all_reduce(self: Any, tensor: torch.Tensor, op: Any, group: Any = None) -> Any:
        name = OPERATIONS.get(self._reduce_op(op))
        if not tensor.is_cpu or name is None:
            return other(self, tensor, op, group)
        if dist.get_world_size(group) > 1:
            torch.ops.rondo.all_reduce_(tensor, (group or dist.group.WORLD).group_name, name)
        return tensor

    theirs.TorchBackend.inference_all_reduce = inference_all_reduce
    theirs.build_shm_op = lambda: None  # so that theirs is not compiled
