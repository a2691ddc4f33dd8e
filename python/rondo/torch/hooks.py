# SPDX-License-Identifier: BSD-3-Clause
"""A hook for DistributedDataParallel: each bucket is averaged at once, in the thread that has filled it."""
# torch looks at the types of hooks, so they are no texts here: no "from __future__ import annotations".
from typing import Any

import torch
import torch.distributed as dist

from . import ops  # noqa: F401  makes torch.ops.rondo


def ddp_hook(group: Any, bucket: dist.GradBucket) -> torch.futures.Future[torch.Tensor]:
    """model.register_comm_hook(group, rondo.torch.ddp_hook); None is the whole world, and any backend does.

    A call through the group would be asynchronous, so a thread would make it, beside the one that computes: where there
    are no idle cores they get into each other's way.
    """
    average = bucket.buffer()
    torch.ops.rondo.all_reduce_(average, (group or dist.group.WORLD).group_name, "avg")
    future: torch.futures.Future = torch.futures.Future()
    future.set_result(average)
    return future
