# SPDX-License-Identifier: BSD-3-Clause
"""A training with DistributedDataParallel. torchrun --nproc-per-node 2 examples/pytorch/ddp.py [BACKEND]

Everything is torch's own, but for the name of the backend: DistributedSampler and set_epoch, no_sync with gradient
accumulation, clipping, learning rate with warm-up, a checkpoint of rank 0. Prints the mean loss of each epoch.
"""
import os
import sys
import tempfile

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset

EPOCHS, ACCUMULATED, WARM_UP = 3, 2, 10


def data() -> TensorDataset:
    """Digits of two numbers, and the digits of their sum's last place: a table that a small network learns."""
    a, b = torch.arange(100).repeat_interleave(100), torch.arange(100).repeat(100)
    digits = nn.functional.one_hot(torch.stack([a // 10, a % 10, b // 10, b % 10], 1), 10).float().flatten(1)
    return TensorDataset(digits, (a + b) % 10)


def train(backend: str) -> None:
    dist.init_process_group(backend)
    rank, size = dist.get_rank(), dist.get_world_size()
    torch.manual_seed(0)
    torch.set_num_threads(1)
    model = DistributedDataParallel(nn.Sequential(nn.Linear(40, 64), nn.ReLU(), nn.Linear(64, 10)))
    optimizer = torch.optim.SGD(model.parameters(), 0.1 * size, momentum=0.9)  # as much faster as there are ranks ...
    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: min(1.0, (step + 1) / WARM_UP))  # ... warm
    dataset = data()
    sampler = DistributedSampler(dataset, shuffle=True, seed=1)
    loader = DataLoader(dataset, batch_size=64, sampler=sampler)
    for epoch in range(EPOCHS):
        sampler.set_epoch(epoch)
        total = torch.zeros(2)
        for step, (x, y) in enumerate(loader):
            last = step % ACCUMULATED == ACCUMULATED - 1
            if last:
                loss = nn.functional.cross_entropy(model(x), y) / ACCUMULATED
                loss.backward()  # buckets are averaged while it goes on
                nn.utils.clip_grad_norm_(model.parameters(), 1.0)
                optimizer.step()
                optimizer.zero_grad()
                schedule.step()
            else:
                with model.no_sync():
                    loss = nn.functional.cross_entropy(model(x), y) / ACCUMULATED
                    loss.backward()
            total += torch.tensor([loss.item() * ACCUMULATED, 1])
        dist.all_reduce(total)
        if rank == 0:
            print(f"epoch {epoch}: loss {total[0] / total[1]:.6f}", flush=True)
    save_and_load(model, rank)
    dist.destroy_process_group()


def save_and_load(model: DistributedDataParallel, rank: int) -> None:
    """Rank 0 writes; all ranks read when it has."""
    path = [os.path.join(tempfile.mkdtemp(), "checkpoint.pt") if rank == 0 else None]
    dist.broadcast_object_list(path)
    if rank == 0:
        torch.save(model.module.state_dict(), path[0])
    dist.barrier()
    model.module.load_state_dict(torch.load(path[0], weights_only=True))
    dist.barrier()
    if rank == 0:
        os.unlink(path[0])
        os.rmdir(os.path.dirname(path[0]))


train(sys.argv[1] if len(sys.argv) > 1 else "rondo")
