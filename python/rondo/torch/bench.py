# SPDX-License-Identifier: BSD-3-Clause
"""Rondo beside Gloo and DeepSpeed, on tensors of the CPU: torchrun --nproc-per-node 2 -m rondo.torch.bench [WHAT...]

Each way has its turn in each round, in an order that is drawn anew. A time is that of one call on the slowest rank: the
mean of a round, of which the table has the median of all rounds. What calls and messages leave in tensors is checked
before the first turn and after the last one; what steps of models compute is not.
"""
from __future__ import annotations

import argparse
import contextlib
import csv
import importlib
import itertools
import os
import platform
import random
import statistics
import sys
import time
from typing import Any, Callable, NamedTuple

import torch
import torch.distributed as dist
import torch.distributed._functional_collectives as functional
from torch import nn
from torch.distributed.device_mesh import DeviceMesh
from torch.distributed.fsdp import fully_shard
from torch.nn.parallel import DistributedDataParallel

from . import ops  # noqa: F401  makes torch.ops.rondo
from .hooks import ddp_hook

Call = Callable[[], Any]


class Groups(NamedTuple):
    """The same ranks, by both backends."""
    rondo: Any
    gloo: Any
    deepspeed: bool  # its operator was compiled

    def each(self) -> tuple:
        return ("rondo", self.rondo), ("gloo", self.gloo)


def deepspeed_takes(dtype: torch.dtype) -> bool:
    """DeepSpeed adds 16-bit types up by AVX-512, and ends in an illegal instruction on an x86 that has none."""
    wide = platform.machine() != "x86_64" or torch.backends.cpu.get_cpu_capability().startswith("AVX512")
    return dtype is torch.float32 or wide and dtype in (torch.bfloat16, torch.float16)


# ---- what is timed: the ways to do it, by name; the first one is what the others are compared with -------------------


def all_reduce(x: torch.Tensor, groups: Groups) -> dict[str, Call]:
    """In place, by the operator, by DeepSpeed's, and by torch.distributed with each backend."""
    ways = {"operator": lambda: torch.ops.rondo.all_reduce_(x, groups.rondo.group_name)}
    if groups.deepspeed and deepspeed_takes(x.dtype):
        ways["deepspeed"] = lambda: torch.ops.deepspeed.inference_all_reduce_(x)
    return ways | {name: lambda group=group: dist.all_reduce(x, group=group) for name, group in groups.each()}


def asynchronous(x: torch.Tensor, groups: Groups) -> dict[str, Call]:
    """dist.all_reduce(async_op=True) and wait()."""
    return {name: lambda group=group: dist.all_reduce(x, group=group, async_op=True).wait()
            for name, group in groups.each()}


def out_of_place(x: torch.Tensor, groups: Groups) -> dict[str, Call]:
    """To a new tensor: the operator, and what torch.compile makes of functional collectives, with each backend."""
    compiled = torch.ops._c10d_functional

    def call(group: Any) -> Call:
        name = group.group_name
        return lambda: compiled.wait_tensor(compiled.all_reduce(x, "sum", name))

    return {"operator": lambda: torch.ops.rondo.all_reduce(x, groups.rondo.group_name)} | {
        name: call(group) for name, group in groups.each()}


def round_trip(x: torch.Tensor, groups: Groups) -> dict[str, Call]:
    """dist.send and dist.recv, there and back, between ranks 0 and 1, 2 and 3, ..."""
    rank, size = dist.get_rank(), dist.get_world_size()
    peer = rank ^ 1

    def call(group: Any) -> None:
        if peer < size:
            for sends in (rank < peer, rank > peer):
                (dist.send if sends else dist.recv)(x, peer, group=group)
    return {name: lambda group=group: call(group) for name, group in groups.each()}


def network(nbytes: int) -> nn.Sequential:
    """Four layers whose float32 parameters take about that many bytes, the same ones on every rank."""
    torch.manual_seed(0)
    width = max(1, int((nbytes / 16) ** 0.5))
    return nn.Sequential(*(layer for _ in range(4) for layer in (nn.Linear(width, width), nn.ReLU())))


def step_of(model: nn.Module, width: int) -> Call:
    """A forward and a backward pass over a batch of 16."""
    batch = torch.randn(16, width, generator=torch.Generator().manual_seed(dist.get_rank()))

    def step() -> None:
        model.zero_grad()
        model(batch).square().mean().backward()
    return step


def ddp(x: torch.Tensor, groups: Groups) -> dict[str, Call]:
    """A step of a model in DistributedDataParallel, with the hook of Rondo, with each backend, and without peers."""
    def wrapped(group: Any) -> Call:
        model = network(x.nbytes)
        return step_of(DistributedDataParallel(model, process_group=group), model[0].in_features)

    alone = network(x.nbytes)
    hooked = DistributedDataParallel(network(x.nbytes), process_group=groups.rondo)
    hooked.register_comm_hook(groups.rondo, ddp_hook)
    return {"hook": step_of(hooked, alone[0].in_features)} | {
        name: wrapped(group) for name, group in groups.each()} | {"alone": step_of(alone, alone[0].in_features)}


def fsdp(x: torch.Tensor, groups: Groups) -> dict[str, Call]:
    """A step of a model whose layers are sharded by fully_shard (FSDP2), with each backend, and without peers."""
    def sharded(group: Any) -> Call:
        model = network(x.nbytes)
        width, mesh = model[0].in_features, DeviceMesh.from_group(group, "cpu")
        for layer in model[::2]:
            fully_shard(layer, mesh=mesh)
        return step_of(fully_shard(model, mesh=mesh), width)

    alone = network(x.nbytes)
    return {name: sharded(group) for name, group in groups.each()} | {"alone": step_of(alone, alone[0].in_features)}


def tensor_parallel(x: torch.Tensor, groups: Groups) -> dict[str, Call]:
    """A token through four layers as wide as x, split over the ranks and compiled, with an all-reduce behind each: by
    the operator, by functional collectives with each backend, and without peers."""
    part = max(1, x.numel() // dist.get_world_size())
    torch.manual_seed(dist.get_rank())
    layers = [(torch.randn(part, x.numel()) / x.numel(), torch.randn(x.numel(), part) / x.numel()) for _ in range(4)]

    def way(reduced: Callable[[torch.Tensor], torch.Tensor]) -> Call:
        def forward(token: torch.Tensor) -> torch.Tensor:
            for up, down in layers:
                token = reduced(down @ torch.relu(up @ token))
            return token
        compiled = torch.compile(forward, fullgraph=True, dynamic=False)
        return lambda: compiled(x)

    name = groups.rondo.group_name
    return {"operator": way(lambda y: torch.ops.rondo.all_reduce(y, name))} | {
        each: way(lambda y, group=group: functional.wait_tensor(functional.all_reduce(y, "sum", group)))
        for each, group in groups.each()} | {"alone": way(lambda y: y)}


SUMS = {"all_reduce": all_reduce, "async": asynchronous, "functional": out_of_place}
STEPS = {"ddp": ddp, "fsdp": fsdp, "tensor_parallel": tensor_parallel}
WHAT = SUMS | {"round_trip": round_trip} | STEPS


# ---- measuring -------------------------------------------------------------------------------------------------------


def check(what: str, name: str, call: Call, x: torch.Tensor) -> None:
    """One call, and whether the tensor has what it should; a step of a model is only made."""
    rank, size = dist.get_rank(), dist.get_world_size()
    if what in STEPS:
        call()
        return
    x.fill_(rank + 1)
    out = call()
    out = out if isinstance(out, torch.Tensor) else x
    wanted = size * (size + 1) // 2 if what in SUMS else min(rank, rank ^ 1) + 1  # who sends first has its own back
    if not out.eq(wanted).all():
        raise SystemExit(f"rank {rank}: {what} by {name}, {x.numel()} {x.dtype}: {out[out != wanted][0]}, not {wanted}")
    x.zero_()  # which stays zero, however often it is added up


def calls_of(call: Call, seconds: float, group: Any) -> int:
    """How many calls take that long, the same number on all ranks."""
    begin = time.perf_counter()
    for _ in range(3):
        call()
    number = torch.tensor([3 * seconds / (time.perf_counter() - begin)])
    dist.all_reduce(number, op=dist.ReduceOp.MIN, group=group)
    return max(1, min(100000, int(number.item())))


def measure(what: str, x: torch.Tensor, groups: Groups, options: argparse.Namespace) -> dict[str, list[float]]:
    """Microseconds of a call on the slowest rank, of each way in each round."""
    ways = WHAT[what](x, groups)
    for name, call in ways.items():
        check(what, name, call, x)
    counts = {name: calls_of(call, options.seconds, groups.rondo) for name, call in ways.items()}
    order, draw = list(ways), random.Random(1)  # the same order on all ranks
    times = {name: torch.zeros(options.rounds, dtype=torch.float64) for name in ways}
    for turn in range(options.rounds):
        draw.shuffle(order)
        for name in order:
            dist.barrier(groups.rondo)
            begin = time.perf_counter()
            for _ in range(counts[name]):
                ways[name]()
            times[name][turn] = 1e6 * (time.perf_counter() - begin) / counts[name]
    for name, call in ways.items():
        check(what, name, call, x)
        dist.all_reduce(times[name], op=dist.ReduceOp.MAX, group=groups.rondo)
    return {name: each.tolist() for name, each in times.items()}


def deepspeed_is_there() -> bool:
    """DeepSpeed's all-reduce through shared memory, which is compiled here at the first use, if all ranks have it."""
    local, operator = os.environ.get("LOCAL_WORLD_SIZE", ""), None
    try:
        if local != str(dist.get_world_size()):
            raise RuntimeError("it is for ranks of one host")
        os.environ["LOCAL_SIZE"] = local  # without it, it ends in a segmentation fault
        with contextlib.redirect_stdout(sys.stderr):  # it tells of the machine
            operator = importlib.import_module("deepspeed.ops.op_builder.cpu").ShareMemCommBuilder().load()
    except Exception as error:  # pylint: disable=broad-except  compilers fail in many ways
        print(f"rank {dist.get_rank()}: DeepSpeed's operator is left out: {error}", file=sys.stderr)
    everywhere = torch.tensor(int(operator is not None))
    dist.all_reduce(everywhere, op=dist.ReduceOp.MIN)
    if everywhere:
        operator.initialize(dist.get_world_size(), dist.get_rank())
    return bool(everywhere)


# ---- the command -----------------------------------------------------------------------------------------------------


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="torchrun --nproc-per-node N -m rondo.torch.bench",
                                     description="Rondo beside Gloo and DeepSpeed, on tensors of the CPU.")
    parser.add_argument("what", nargs="*", metavar="WHAT", help=f"{', '.join(WHAT)}; all_reduce by default")
    parser.add_argument("--bytes", default="8,4096,16384,65536,262144,1048576,16777216",
                        help="of a tensor; for ddp and fsdp, of all parameters")
    parser.add_argument("--types", default="float32", help="names of torch, as float32,bfloat16")
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--seconds", type=float, default=0.02, help="that a way is called for in a round")
    parser.add_argument("--bind", action="store_true", help="each rank, with all its threads, to one core")
    parser.add_argument("--no-deepspeed", action="store_true", help="do not compile its operator")
    parser.add_argument("--csv", metavar="FILE", help="a row for each way, with the times of all rounds")
    options = parser.parse_args()
    options.what = options.what or ["all_reduce"]
    unknown = [what for what in options.what if what not in WHAT]
    if unknown:
        parser.error(f"unknown: {unknown[0]}; there are {', '.join(WHAT)}")
    return options


def line_of(what: str, dtype: str, nbytes: int, times: dict[str, list[float]]) -> str:
    """The first way's time, and how many times as long the others take."""
    medians = {name: statistics.median(each) for name, each in times.items()}
    first, *others = medians
    words = [f"{first} {medians[first]:.2f} us"] + [
        f"{name} {medians[name]:.2f} us, {medians[name] / medians[first]:.2f}" for name in others]
    return f"{what} {dtype} {nbytes}: {'; '.join(words)}"


def measure_all(groups: Groups, options: argparse.Namespace, file: Any) -> None:
    """Rank 0 prints a line for each size of each type, and writes a row for each way to the file, if there is one."""
    table = csv.writer(file)
    table.writerow(["what", "type", "bytes", "ranks", "way", "median_us", "minimum_us", "rounds_us"])
    types = options.types.split(",")
    kinds = [(what, name) for what in options.what for name in (["float32"] if what in STEPS else types)]
    for (what, name), nbytes in itertools.product(kinds, options.bytes.split(",")):
        dtype = getattr(torch, name)
        x = torch.zeros(max(1, int(nbytes) // dtype.itemsize), dtype=dtype)
        times = measure(what, x, groups, options)
        if dist.get_rank() == 0:
            print(line_of(what, name, x.nbytes, times), flush=True)
        for way, each in times.items():
            table.writerow([what, name, x.nbytes, dist.get_world_size(), way, f"{statistics.median(each):.3f}",
                            f"{min(each):.3f}", " ".join(f"{one:.3f}" for one in each)])
        file.flush()


def main() -> None:
    options = arguments()
    if options.bind:
        cores = sorted(os.sched_getaffinity(0))
        os.sched_setaffinity(0, {cores[int(os.environ.get("LOCAL_RANK", "0")) % len(cores)]})
    dist.init_process_group("gloo")
    groups = Groups(dist.new_group(backend="rondo"), dist.new_group(backend="gloo"),
                    "all_reduce" in options.what and not options.no_deepspeed and deepspeed_is_there())
    path = options.csv if options.csv and dist.get_rank() == 0 else os.devnull
    with open(path, "w", encoding="utf-8", newline="") as file:
        measure_all(groups, options, file)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
