# SPDX-License-Identifier: BSD-3-Clause
"""SGLang's collectives on CPUs by Rondo: rondo.sglang.install() in each process, before a model is loaded.

They take the place of the ones of sgl_kernel through shared memory, and of Gloo where those cannot be used: several
hosts, any number of ranks, every type, as many groups as there are.
"""
from __future__ import annotations

from typing import Any

import torch
from sglang.srt.distributed import parallel_state as theirs

from .torch import ops  # noqa: F401  makes torch.ops.rondo


def install() -> None:
    """Every all_reduce() and all_gather() of SGLang's groups in this process is Rondo's from now on, on CPUs."""
    group = theirs.GroupCoordinator
    other_reduce, other_gather = group.all_reduce, group.all_gather

    def all_reduce(self: Any, input_: torch.Tensor, *more: Any, **named: Any) -> torch.Tensor:
        if self.world_size == 1 or not input_.is_cpu:
            return other_reduce(self, input_, *more, **named)
        torch.ops.rondo.all_reduce_(input_, self.device_group.group_name)
        return input_

    def all_gather(self: Any, input_: torch.Tensor, dim: int = -1, *more: Any, **named: Any) -> Any:
        if self.world_size == 1 or not input_.is_cpu or more or named:
            return other_gather(self, input_, dim, *more, **named)
        return ops.gathered_along(input_, self.device_group.group_name, dim)

    group.all_reduce, group.all_gather = all_reduce, all_gather
