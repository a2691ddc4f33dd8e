# SPDX-License-Identifier: BSD-3-Clause
"""calls.py - one rank: calls that torch's own tests leave out for backends they do not know. `calls.py WHAT`."""
import gc
import os
import signal
import sys
import time
from datetime import timedelta

import torch
import torch.distributed as dist


def messages(rank, size):
    """Crossed, tagged, of any source, in a batch, of odd layouts."""
    right, left = (rank + 1) % size, (rank - 1) % size
    first, second, batch = torch.zeros(3), torch.zeros(5, dtype=torch.bfloat16), torch.zeros(2)
    sent = [dist.isend(torch.full((3,), float(rank)), right, tag=1),
            dist.isend(torch.full((5,), rank, dtype=torch.bfloat16), right, tag=2)]
    dist.irecv(second, left, tag=2).wait()  # in the other order than they were sent
    dist.irecv(first, left, tag=1).wait()
    for work in sent:
        work.wait()
    assert first.tolist() == [left] * 3 and second.tolist() == [left] * 5
    for work in dist.batch_isend_irecv([dist.P2POp(dist.isend, torch.full((2,), rank + 10.0), right),
                                        dist.P2POp(dist.irecv, batch, left)]):
        work.wait()
    assert batch.tolist() == [left + 10.0] * 2
    column = torch.zeros(4, 4)
    send, receive = dist.isend(torch.arange(16.0).view(4, 4)[:, 1], right), dist.irecv(column[:, 2], left)
    receive.wait()
    send.wait()
    assert column[:, 2].tolist() == [1, 5, 9, 13] and column.sum() == 28
    if os.environ.get("TORCH_RONDO") == "compiled":
        of_compiled(rank, size)
    if rank == 0:
        came = []
        for _ in range(size - 1):
            anybody = torch.zeros(1)
            dist.irecv(anybody).wait()
            came.append(anybody.item())
        assert sorted(came) == [float(other) for other in range(1, size)]
    else:
        dist.send(torch.tensor([float(rank)]), 0)


def virtual_bytes():
    with open("/proc/self/statm", encoding="ascii") as file:
        return int(file.read().split()[0]) * 4096


def of_compiled(rank, size):
    """What torch's wrapper of backends in Python does not pass on."""
    right, left, anybody = (rank + 1) % size, (rank - 1) % size, torch.zeros(1 << 20)
    sent = dist.isend(torch.full((1 << 20,), float(rank)), right, tag=3)
    assert dist.recv(anybody, tag=3) == left and anybody.eq(left).all()
    while not sent.is_completed():
        time.sleep(0.001)
    late = torch.zeros(2)
    work = dist.irecv(late, left, tag=4)
    future = work.get_future()
    assert not work.is_completed() and not future.done()
    dist.barrier()
    dist.isend(torch.full((2,), float(rank)), right, tag=4)  # its work is dropped, and it arrives
    assert future.wait()[0].eq(left).all() and work.is_completed()
    before = virtual_bytes()
    for _ in range(200):
        future = dist.irecv(late, left, tag=4).get_future()
        dist.send(torch.zeros(2), right, tag=4)
        future.wait()
    assert virtual_bytes() - before < 1 << 29, "threads that completed futures have left their stacks"
    backend = dist.group.WORLD._get_backend(torch.device("cpu"))
    mapped = backend.allocate_tensor(1 << 21, dtype=torch.float32, device=torch.device("cpu"))
    mapped.fill_(rank + 1)
    dist.all_reduce(mapped)
    assert mapped.eq(size * (size + 1) / 2).all()
    short = torch.zeros(3)
    dist.isend(torch.ones(2), right, tag=5)
    try:
        dist.irecv(short, left, tag=5).wait()
        raise AssertionError("3 elements were filled with 2")
    except RuntimeError as error:
        assert "sent 8 bytes with tag 5" in str(error), error


def short(rank, size):
    """Short calls that nobody waits for at once, among others that are."""
    every, kept = size * (size + 1) / 2, []
    for i in range(60):
        tensor = torch.full((1 + i % 7,), rank + 1.0)
        kept.append((dist.all_reduce(tensor, async_op=True), tensor))
        if i % 5 == 0:
            kept[-1][0].wait()
            assert tensor.eq(every).all(), tensor
        if i % 7 == 0:  # nobody has the handle any more, or the tensor
            dist.all_reduce(torch.ones(3), async_op=True)
            gc.collect()
        if i % 11 == 0:
            dist.barrier()
        if i % 13 == 0:
            long = torch.full((100000,), rank + 1.0)
            kept.append((dist.all_reduce(long, async_op=True), long))
    future = dist.all_reduce(torch.ones(2), async_op=True).get_future()
    for work, tensor in reversed(kept):
        work.wait()
        assert tensor.eq(every).all(), tensor
    assert future.wait()[0].eq(size).all()
    rows, part = torch.zeros(size, 2), torch.zeros(1)
    dist.all_gather_into_tensor(rows, torch.full((2,), float(rank)), async_op=True).wait()
    assert rows[:, 1].tolist() == list(range(size))
    dist.reduce_scatter_tensor(part, torch.arange(float(size)), async_op=True).wait()
    assert part.item() == rank * size
    dist.all_reduce(torch.ones(3), async_op=True)  # the last one is left to the end of the group


def reductions(rank, size):
    every = size * (size + 1) / 2
    tensor = torch.full((4, 3), rank + 1.0).T  # not contiguous
    work = dist.all_reduce(tensor, async_op=True)
    doubled = work.get_future().then(lambda done: done.value()[0] * 2)
    work.wait()
    assert tensor.eq(every).all() and doubled.wait().eq(2 * every).all()
    scaled = torch.full((2,), 1.0)
    dist.all_reduce(scaled, op=dist._make_nccl_premul_sum(2.0))
    assert scaled.tolist() == [2.0 * size] * 2
    wanted = [size + 1.0] + [1.0] * (size - 1)
    for later in (False, True):
        sparse = torch.sparse_coo_tensor([[rank, 0]], [1.0, 1.0], (size,))
        work = dist.all_reduce(sparse, async_op=later)
        if later:
            work.wait()
        assert sparse.to_dense().tolist() == wanted
    flags, numbers = torch.tensor([rank == 0, False]), torch.tensor([1 + 1j * rank])
    dist.all_reduce(flags)
    dist.all_reduce(numbers)
    assert flags.tolist() == [True, False] and numbers.item() == size + 1j * size * (size - 1) / 2
    uneven, parts = torch.arange(rank + 1.0), [torch.zeros(other + 1) for other in range(size)]
    dist.all_gather(parts, uneven)
    assert all(part.tolist() == list(range(other + 1)) for other, part in enumerate(parts))
    lengths = [1 + (rank + other) % 2 for other in range(size)]
    source, output = torch.full((sum(lengths),), float(rank)), torch.zeros(sum(lengths))
    dist.all_to_all_single(output, source, lengths, lengths)
    assert output.tolist() == [float(other) for other in range(size) for _ in range(lengths[other])]
    empty = torch.zeros(0)
    dist.all_reduce(empty)
    objects = [None] * size
    dist.all_gather_object(objects, {"rank": rank})
    assert objects == [{"rank": other} for other in range(size)]
    try:
        dist.all_reduce(torch.ones(1, dtype=torch.bool), op=dist.ReduceOp.AVG)
        raise AssertionError("the average of bool was not refused")
    except ValueError as error:
        assert "bool" in str(error)
    dist.barrier()


def inference(rank, size):
    """Outputs are written in the mode of the caller, by whichever thread."""
    with torch.inference_mode():
        columns, rows = torch.ones(4, 6)[:, ::2], torch.zeros(size, 2).T
        works = [dist.all_reduce(columns, async_op=True),
                 dist.all_gather(list(rows.unbind(1)), torch.full((2,), float(rank)), async_op=True)]
        sparse = torch.sparse_coo_tensor([[0]], [1.0], (size,))
        works.append(dist.all_reduce(sparse, async_op=True))
        here = torch.zeros(4, 6)[:, ::2]
        works += [dist.irecv(here, (rank - 1) % size), dist.isend(torch.ones(4, 3), (rank + 1) % size)]
    for work in works:
        work.wait()
    assert sparse.to_dense().tolist() == [float(size)] + [0.0] * (size - 1)
    assert columns.eq(size).all() and here.eq(1).all() and rows[0].tolist() == list(range(size)), (columns, here, rows)


def callbacks(rank, size):
    """Functions behind futures make calls, and wait for futures of theirs."""
    def more(done):
        again = done.value()[0].clone()
        dist.all_reduce(again)
        return dist.all_reduce(again, async_op=True).get_future().wait()[0]

    for count in (3, 100000):
        x = torch.ones(count)
        future = dist.all_reduce(x, async_op=True).get_future().then(more)
        assert future.wait().eq(size ** 3).all(), future.value()
    part = dist.new_group()
    futures = [dist.all_reduce(torch.ones(100000), async_op=True, group=part).get_future() for _ in range(3)]
    after = futures[2].then(lambda done: dist.all_reduce(done.value()[0], group=part))
    dist.destroy_process_group(part)  # waits for all of it
    assert after.done() and futures[2].value()[0].eq(size ** 2).all()


def barriers(rank, size):
    dist.monitored_barrier(timeout=timedelta(seconds=60))
    if rank != 1:
        try:
            dist.monitored_barrier(timeout=timedelta(seconds=1), wait_all_ranks=True)
            raise AssertionError("rank 1 was not missed")
        except RuntimeError as error:
            assert rank or "Ranks 1 failed to pass monitoredBarrier" in str(error), error
    dist.barrier()
    part = dist.new_group([0, 1], timeout=timedelta(seconds=1))
    if rank == 0:
        try:
            dist.barrier(part)
            raise AssertionError("the barrier had no end")
        except dist.DistBackendError as error:
            assert " Timed out" in str(error) and "barrier" in str(error), error
        try:
            dist.new_group([0, 2], timeout=timedelta(seconds=1), use_local_synchronization=True)
            raise AssertionError("rank 2 was not missed")
        except dist.DistBackendError as error:
            assert "did not come to a group of 2 within 1 s: 1" in str(error), error
    time.sleep(2 if rank == 1 else 0)


def groups(rank, size):
    """Groups that were destroyed leave nothing."""
    def make(count):
        for _ in range(count):
            group, one = dist.new_group(), torch.ones(1)
            dist.all_reduce(one, group=group)
            assert one.item() == size
            dist.destroy_process_group(group)
        gc.collect()
        with open("/proc/self/statm", encoding="ascii") as file:
            resident = int(file.read().split()[1]) * 4096
        return len(os.listdir("/proc/self/fd")), len(os.listdir("/proc/self/task")), resident

    count = int(sys.argv[2]) if len(sys.argv) > 2 else 60
    before, after = make(count // 3), make(count)
    if rank == 0:
        print(f"{count} groups: fds, threads, bytes {before}, then {after}", flush=True)
    assert after[:2] == before[:2] and after[2] - before[2] < 64 << 20, (before, after)


def again(rank, size):
    """Groups that are made after the first ones were destroyed, in the same store."""
    for _ in range(3):
        dist.monitored_barrier(timeout=timedelta(seconds=240))
        dist.destroy_process_group()
        dist.init_process_group("rondo", timeout=timedelta(seconds=240))
        one = torch.ones(1)
        dist.all_reduce(one, group=dist.new_group())
        dist.all_reduce(one)
        assert one.item() == size * size, one
    if rank:
        try:
            dist.monitored_barrier(timeout=timedelta(seconds=1))
            raise AssertionError("rank 0 did not come, but was not missed")
        except RuntimeError as error:
            assert "did not pass" in str(error), error


def death(rank, size):
    """The sentence of a failure comes through, with the rank in its cause."""
    dist.barrier()
    if rank == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    try:
        dist.all_reduce(torch.ones(1000))
        raise AssertionError("nobody died")
    except dist.DistBackendError as error:
        assert "Rank 1" in str(error), error
        if os.environ.get("TORCH_RONDO") == "python":
            assert error.__cause__.peer == 1, error
        print(f"rank {rank} knows", flush=True)
    os._exit(0)


if __name__ == "__main__":
    dist.init_process_group("rondo", timeout=timedelta(seconds=240))
    {"messages": messages, "short": short, "reductions": reductions, "inference": inference, "callbacks": callbacks,
     "barriers": barriers, "groups": groups, "again": again,
     "death": death}[sys.argv[1]](dist.get_rank(), dist.get_world_size())
    dist.destroy_process_group()
