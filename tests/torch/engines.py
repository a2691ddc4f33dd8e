# SPDX-License-Identifier: BSD-3-Clause
"""engines.py - one rank: what takes the place of inference engines' own collectives on CPUs. `engines.py ENGINE`.

DeepSpeed is the real one. Of SGLang and vLLM, which are not packages for CPUs, only what ours replaces is here, made by
what they call it with.
"""
import os
import sys
import types
from datetime import timedelta

import torch
import torch.distributed as dist


def module(name, **content):
    """A module that can be imported by this name, and what it is in as well."""
    made = types.ModuleType(name)
    made.__dict__.update(content)
    sys.modules[name] = made
    parent, _, last = name.rpartition(".")
    if parent:
        setattr(sys.modules.get(parent) or module(parent), last, made)
    return made


class Two(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.up, self.down = torch.nn.Linear(64, 512), torch.nn.Linear(512, 64)

    def forward(self, x):
        return self.down(torch.relu(self.up(x)))


class Layer(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.mlp = Two()

    def forward(self, x):
        return x + self.mlp(x)


def deepspeed(rank, size):
    """A small model whose layers are divided among the ranks computes what it does alone; and what theirs got wrong."""
    import rondo.deepspeed
    rondo.deepspeed.install()
    import deepspeed as engine
    engine.init_distributed("gloo", dist_init_required=True)
    for dtype in (torch.float64, torch.int32, torch.bfloat16):
        columns = torch.full((4, 6), rank + 1).to(dtype)[:, ::2]  # not contiguous
        engine.comm.inference_all_reduce(columns)
        assert columns.eq(size * (size + 1) // 2).all(), (dtype, columns)
    torch.manual_seed(1)
    model, x = torch.nn.Sequential(Layer(), Layer()), torch.randn(3, 64)
    alone = model(x)
    divided = engine.init_inference(model, tensor_parallel={"tp_size": size}, dtype=torch.float32,
                                    injection_policy={Layer: ("mlp.down",)})
    torch.testing.assert_close(divided(x), alone)
    rows = [part for part in divided.modules() if isinstance(part, engine.module_inject.layers.LinearAllreduce)]
    assert len(rows) == 2 and rows[0].weight.shape == (64, 512 // size), divided


def sglang(rank, size):
    class GroupCoordinator:
        def __init__(self):
            self.world_size, self.device_group = size, dist.group.WORLD

        def all_reduce(self, input_):
            raise AssertionError("not ours")

        all_gather = all_reduce

    module("sglang.srt.distributed.parallel_state", GroupCoordinator=GroupCoordinator)
    import rondo.sglang
    rondo.sglang.install()
    group, x = GroupCoordinator(), torch.full((2, 3), float(rank + 1))
    assert group.all_reduce(x) is x and x.eq(size * (size + 1) / 2).all()
    whole = group.all_gather(torch.full((2, 3), rank), -1)
    assert whole.shape == (2, 3 * size) and whole[1].tolist() == [other for other in range(size) for _ in range(3)]


def vllm(rank, size):
    theirs = module("vllm.distributed.device_communicators.cpu_communicator", _CPUSHMDistributed=None)
    import rondo.vllm
    rondo.vllm.install()
    ours = theirs._CPUSHMDistributed
    of_group = ours(types.SimpleNamespace(device_group=dist.group.WORLD))
    assert ours.make_group_name(None) == "rondo"
    x = torch.full((5,), float(rank))
    of_group.all_reduce(x, group=dist.group.WORLD)
    assert x.eq(size * (size - 1) / 2).all()
    whole = torch.empty(2 * size)
    of_group.all_gather_into_tensor(whole, torch.full((2,), float(rank)), group=dist.group.WORLD)
    assert whole.tolist() == [other for other in range(size) for _ in range(2)]
    parts = [torch.empty(3) for _ in range(size)] if rank == size - 1 else None
    of_group.gather(torch.full((3,), float(rank)), parts, dst=size - 1, group=dist.group.WORLD)
    assert not parts or all(part.eq(other).all() for other, part in enumerate(parts))
    sent = {"hidden": torch.arange(6.0).view(2, 3).T, "none": torch.empty(0, 4), "ids": torch.tensor([7])}
    if rank == 0:
        of_group.send_tensor_dict(sent, 1)
    elif rank == 1:
        came = of_group.recv_tensor_dict(0)
        assert list(came) == list(sent) and all(came[key].equal(sent[key]) for key in sent), came


if __name__ == "__main__":
    if sys.argv[1] != "deepspeed":
        dist.init_process_group("gloo", timeout=timedelta(seconds=240))
    {"deepspeed": deepspeed, "sglang": sglang, "vllm": vllm}[sys.argv[1]](int(os.environ["RANK"]),
                                                                         int(os.environ["WORLD_SIZE"]))
    dist.destroy_process_group()
