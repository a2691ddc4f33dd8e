# SPDX-License-Identifier: BSD-3-Clause
"""FSDP, tensor parallelism, ZeRO, a pipeline. torchrun --nproc-per-node 2 examples/pytorch/parallel.py [BACKEND]"""
import sys

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.distributed.optim import ZeroRedundancyOptimizer
from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module
from torch.nn.parallel import DistributedDataParallel


def network() -> nn.Sequential:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(16, 64), nn.ReLU(), nn.Linear(64, 4))


def batch(rank: int) -> torch.Tensor:
    return torch.randn(8, 16, generator=torch.Generator().manual_seed(rank))


def alone(size: int) -> list[float]:
    """What one process computes that has the batches of all."""
    model, losses = network(), []
    optimizer = torch.optim.Adam(model.parameters(), 0.01)
    for _ in range(5):
        loss = sum(model(batch(rank)).square().mean() for rank in range(size)) / size
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        losses.append(loss.item())
    return losses


def steps(model: nn.Module, optimizer: torch.optim.Optimizer, x: torch.Tensor) -> list[float]:
    losses = []
    for _ in range(5):
        loss = model(x).square().mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        mean = loss.detach().clone()
        dist.all_reduce(mean, op=dist.ReduceOp.AVG)
        losses.append(mean.item())
    return losses


def fsdp(rank: int, _size: int) -> list[float]:
    model = network()
    for layer in (model[0], model[2]):
        fully_shard(layer)
    fully_shard(model)
    return steps(model, torch.optim.Adam(model.parameters(), 0.01), batch(rank))


def zero(rank: int, _size: int) -> list[float]:
    model = DistributedDataParallel(network())
    return steps(model, ZeroRedundancyOptimizer(model.parameters(), torch.optim.Adam, lr=0.01), batch(rank))


def tensor_parallel(_rank: int, size: int) -> list[float]:
    model = parallelize_module(network(), init_device_mesh("cpu", (size,)),
                               {"0": ColwiseParallel(), "2": RowwiseParallel()})
    return steps(model, torch.optim.Adam(model.parameters(), 0.01), torch.cat([batch(rank) for rank in range(size)]))


def pipeline(rank: int, size: int) -> None:
    """Micro-batches through the ranks: each adds its number; messages overlap."""
    for micro in range(4):
        x = torch.full((3,), float(micro))
        if rank > 0:
            dist.recv(x, rank - 1, tag=micro)
        x += rank
        if rank < size - 1:
            dist.isend(x, rank + 1, tag=micro).wait()
        else:
            assert x[0] == micro + sum(range(size))


def main() -> None:
    dist.init_process_group(sys.argv[1] if len(sys.argv) > 1 else "rondo")
    torch.set_num_threads(1)
    rank, size = dist.get_rank(), dist.get_world_size()
    wanted = torch.tensor(alone(size))
    for way in (fsdp, zero, tensor_parallel):
        found = torch.tensor(way(rank, size))
        assert torch.allclose(found, wanted, rtol=1e-4), f"{way.__name__}: {found} is not {wanted}"
        if rank == 0:
            print(f"{way.__name__}: losses are those of one process", flush=True)
    pipeline(rank, size)
    if rank == 0:
        print("pipeline: all messages arrived", flush=True)
    dist.destroy_process_group()


main()
