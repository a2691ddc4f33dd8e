# SPDX-License-Identifier: BSD-3-Clause
"""operators.py - one rank: torch.ops.rondo.*, on process groups of any backend. `operators.py BACKEND`."""
import gc
import os
import sys
from datetime import timedelta

import torch
import torch.distributed as dist

import rondo.torch.ops

ops = torch.ops.rondo
TYPES = (torch.float32, torch.float64, torch.bfloat16, torch.float16, torch.int32, torch.int64, torch.uint8, torch.bool,
         torch.complex64)


def sums(rank, size, group):
    every = size * (size + 1) // 2
    for dtype in TYPES:
        for shape in ((), (0,), (1,), (3, 5), (1000,)):
            wanted = torch.full(shape, every, dtype=dtype)  # of bool: any
            x = torch.full(shape, rank + 1, dtype=dtype)
            out = ops.all_reduce(x, group)
            assert out.dtype == dtype and out.shape == x.shape and out.eq(wanted).all(), (dtype, shape, out)
            assert x.eq(rank + 1).all() or dtype == torch.bool
            assert ops.all_reduce_(x, group) is None and x.eq(wanted).all(), (dtype, shape, x)
    columns = torch.arange(24.0).view(4, 6)
    ops.all_reduce_(columns[:, 2:4], group)
    assert columns[:, 2:4].eq(size * torch.arange(24.0).view(4, 6)[:, 2:4]).all()
    assert columns[:, 4:].eq(torch.arange(24.0).view(4, 6)[:, 4:]).all(), "what is beside them was changed"
    conjugated = torch.full((3,), 1 + 1j * rank).conj()
    assert ops.all_reduce(conjugated, group)[0] == size - 1j * size * (size - 1) / 2
    most = torch.tensor([float(rank), float(-rank)])
    assert ops.all_reduce(most, group, "max").tolist() == [size - 1.0, 0.0]
    assert ops.all_reduce(most, group, "avg").tolist() == [(size - 1) / 2, (1 - size) / 2]


def narrow_sums(rank, size, group):
    """256 + 1 + 1 + ...: added in float32, whatever the length is, and wherever in the tensor."""
    for count in (1, 100, 4096, 1 << 20):
        x = torch.full((count,), 256.0 if rank == 0 else 1.0, dtype=torch.bfloat16)
        wanted = torch.tensor(256.0 + size - 1).to(torch.bfloat16)
        assert ops.all_reduce(x, group).eq(wanted).all(), count


def moves(rank, size, group):
    rows = torch.full((2, 3), float(rank))
    every = torch.arange(float(size)).repeat_interleave(2)[:, None].expand(-1, 3)
    assert ops.all_gather(rows, group).equal(every)
    assert ops.all_gather(torch.tensor(float(rank)), group).tolist() == list(range(size))
    wide = torch.zeros(3, 2 * size)
    ops.all_gather_into(wide.T, rows, group)
    assert wide.T.equal(every)
    whole = torch.arange(2.0 * size)[:, None] + torch.zeros(2 * size, 3)
    mine = size * torch.arange(2.0 * rank, 2.0 * rank + 2)[:, None].expand(-1, 3)
    assert ops.reduce_scatter(whole, group).equal(mine)
    part = torch.zeros(2, 3)
    ops.reduce_scatter_into(part, whole, group, "max")
    assert part.equal(mine / size)
    sent = (10.0 * rank + torch.arange(size)).repeat_interleave(2)
    assert ops.all_to_all(sent, group).tolist() == [10.0 * other + rank for other in range(size) for _ in range(2)]
    told = torch.full((2, 2), rank).T
    ops.broadcast_(told, group, size - 1)
    assert told.eq(size - 1).all()
    ops.barrier(group)


def views(rank, size, group):
    """Tensors that are read as the negative or the conjugated one of what is in memory."""
    def imaginary(count):
        return torch.full((count, 1), 1 + 1j * (rank + 1)).conj().imag.view(count)  # of one element: contiguous

    every = size * (size + 1) / 2
    one, several = imaginary(1), imaginary(3)
    assert one.is_neg() and one.is_contiguous() and several.is_neg()
    for x in (one, several):
        assert ops.all_reduce(x, group).eq(-every).all()
        ops.all_reduce_(x, group)
        assert x.eq(-every).all(), x
    for call in (rondo.torch.ops._comms[group].all_reduce, rondo.torch.ops._comms[group].broadcast):
        try:
            call(imaginary(1))
            raise AssertionError("a negated view was taken for what is in memory")
        except rondo.InvalidArgument as error:
            assert "negated" in str(error), error
    conjugated = torch.full((2,), 1 + 1j * rank).conj()
    ops.all_reduce_(conjugated, group)
    assert conjugated.eq(size - 1j * (every - size)).all(), conjugated
    told = imaginary(1)
    ops.broadcast_(told, group, size - 1)
    assert told.item() == -size
    gathered = imaginary(size)
    ops.all_gather_into(gathered, imaginary(1), group)
    assert gathered.tolist() == [-1.0 - other for other in range(size)]
    part = imaginary(1)
    ops.reduce_scatter_into(part, imaginary(size), group)
    assert part.item() == -every


def in_a_group(rank, size, group):
    """Calls are collected in one of Rondo's, which keeps their tensors, and run at its end."""
    x, y = torch.full((3,), rank + 1.0), torch.full((3,), 2.0)
    with rondo.group():
        ops.all_reduce_(x, group)
        out = ops.all_reduce(y, group)
        ops.all_reduce(y, group)
        other = torch.full((3,), 7.0)  # of the memory of what nobody holds
        assert x.eq(rank + 1).all(), x
    assert x.eq(size * (size + 1) / 2).all() and out.eq(2.0 * size).all(), (x, out)
    assert other.eq(7).all(), other


def refusals(rank, size, group):
    for wrong, call in (("is no operation", lambda: ops.all_reduce_(torch.ones(2), group, "mean")),
                        ("divide equally", lambda: ops.reduce_scatter(torch.ones(size + 1), group)),
                        ("times as long", lambda: ops.all_gather_into(torch.ones(1), torch.ones(1), group)),
                        ("no rank", lambda: ops.broadcast_(torch.ones(1), group, size)),
                        ("avg", lambda: ops.all_reduce_(torch.ones(2, dtype=torch.bool), group, "avg"))):
        try:
            call()
        except (RuntimeError, ValueError) as error:
            assert wrong in str(error), error
        else:
            raise AssertionError(f"not refused: {wrong}")


def compiled(rank, size, group):
    """Whole graphs; what has no result stays where it is."""
    def layer(x, weight):
        part = x @ weight
        torch.ops.rondo.all_reduce_(part, group)
        gathered = torch.ops.rondo.all_gather(torch.relu(part), group)
        torch.ops.rondo.barrier(group)
        return torch.ops.rondo.reduce_scatter(gathered, group), torch.ops.rondo.all_reduce(part, group, "max")

    x, weight = torch.ones(2, 4), torch.full((4, 3), rank - 1.0)
    for ours, wanted in zip(torch.compile(layer, fullgraph=True)(x, weight), layer(x, weight)):
        assert ours.equal(wanted), (ours, wanted)


def hook(rank, size):
    """Gradients are the average of all ranks', as without the hook."""
    torch.manual_seed(1)
    layers = torch.nn.Sequential(torch.nn.Linear(30, 40), torch.nn.Linear(40, 2))
    model = torch.nn.parallel.DistributedDataParallel(layers, bucket_cap_mb=0.004)
    model.register_comm_hook(None, rondo.torch.ddp_hook)
    for step in range(3):
        inputs = [torch.full((4, 30), 1.0 + other + step) for other in range(size)]
        alone = [torch.autograd.grad(model.module(x).square().sum(), list(model.parameters())) for x in inputs]
        model.zero_grad()
        model(inputs[rank]).square().sum().backward()
        for parameter, *every in zip(model.parameters(), *alone):
            torch.testing.assert_close(parameter.grad, sum(every) / size)


def groups(rank, size):
    """Each has an order of calls of its own; one that is destroyed leaves nothing."""
    part = dist.new_group([0, 1])
    if rank < 2:
        assert ops.all_reduce(torch.ones(1), part.group_name).item() == 2
    before = None
    for turn in range(8):
        several = dist.new_group()
        ops.all_reduce_(torch.ones(5), several.group_name)
        dist.destroy_process_group(several)
        del several
        gc.collect()
        left = len(os.listdir("/proc/self/fd")), len(os.listdir("/proc/self/task")), len(rondo.torch.ops._comms)
        before = left if turn < 4 else before
        assert all(now <= then for now, then in zip(left, before)), (left, before)


def made_again(rank, size, backend):
    """The next group has the name of one that was destroyed and is still referred to, and other ranks. Of Gloo it
    has a store of its own, as Gloo finds in the old one where the ranks of the old group were."""
    kept, name = dist.group.WORLD, dist.group.WORLD.group_name
    own = {"store": dist.PrefixStore("again", dist.distributed_c10d._get_default_store()), "rank": rank,
           "world_size": size} if backend == "gloo" else {}
    assert ops.all_reduce(torch.ones(2), name).eq(size).all()
    dist.destroy_process_group()
    assert name not in rondo.torch.ops._comms, "a group that was destroyed has its communicator"
    dist.init_process_group(backend, timeout=timedelta(seconds=240), **own)
    assert kept is not dist.group.WORLD and dist.group.WORLD.group_name == name
    assert ops.all_reduce(torch.ones(2), name).eq(size).all()


if __name__ == "__main__":
    dist.init_process_group(sys.argv[1], timeout=timedelta(seconds=240))
    whoami = dist.get_rank(), dist.get_world_size()
    for body in (sums, narrow_sums, moves, views, in_a_group, refusals, compiled):
        body(*whoami, dist.group.WORLD.group_name)
    hook(*whoami)
    groups(*whoami)
    made_again(*whoami, sys.argv[1])
    dist.destroy_process_group()
