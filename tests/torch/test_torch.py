#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""test_torch.py - the backend in torch, of the Python that runs this: scripts under torchrun. TAP."""
import collections
import csv
import importlib.util
import os
import pathlib
import platform
import re
import socket
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path[:0] = [str(ROOT / "tests"), str(ROOT / "tests/net")]
import cases  # noqa: E402  tests/cases.py
import hosts  # noqa: E402  tests/net/hosts.py

LIMIT = 500  # seconds for one script, on a busy machine
KINDS = ["python"] + ["compiled"] * bool(importlib.util.find_spec("rondo_torch"))


def torchrun(ranks, script, *arguments, **more):
    """What the ranks print; nothing of ours is imported by the scripts. A script that is no file is a module."""
    path = ROOT / script
    result = subprocess.run([sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", str(ranks),
                             "--master-port", "0", "--rdzv-backend", "c10d", "--rdzv-endpoint", "localhost:0",
                             *([str(path)] if path.exists() else ["-m", script]), *arguments],
                            capture_output=True, text=True, timeout=LIMIT,
                            env={**os.environ, "OMP_NUM_THREADS": "1", "PYTHONUNBUFFERED": "", **more}, check=False)
    assert result.returncode == 0, f"{script}: status {result.returncode}\n{(result.stdout + result.stderr)[-3000:]}"
    return result.stdout


def calls(what, kind, ranks=3):
    def call():
        torchrun(ranks, "tests/torch/calls.py", what, TORCH_RONDO=kind)
    return f"{what}, backend {kind}", call


def a_ddp_training_has_the_losses_of_gloo():
    ours, theirs = (torchrun(2, "examples/pytorch/ddp.py", backend) for backend in ("rondo", "gloo"))
    losses = re.findall(r"loss ([\d.]+)", ours)
    assert len(losses) == 3 and float(losses[2]) < float(losses[0]) and ours == theirs, f"{ours}\n{theirs}"


def the_training_of_rondo_train_has_its_losses_in_torch_too():
    """Those of docs/from_pytorch.md; the first values are other ones."""
    ours, theirs = (torchrun(2, "examples/pytorch/gpt.py", backend, "20") for backend in ("rondo", "gloo"))
    losses = [float(loss) for loss in re.findall(r"loss ([\d.]+)", ours)]
    assert ours == theirs and len(losses) == 3, f"{ours}\n{theirs}"
    assert abs(losses[0] - 2.55) < 0.1 and abs(losses[2] - 1.78) < 0.05, losses


def on_two_hosts(script, *arguments, **more):
    """What the first of two ranks prints, each on a host with its own torchrun; torch's store alone connects them."""
    with hosts.Hosts(2) as places:
        agents = [subprocess.Popen(
            [*places.inside(host), sys.executable, "-m", "torch.distributed.run", "--nnodes", "2", "--node-rank",
             str(host), "--master-addr", places.address(0), "--master-port", "29500", "--nproc-per-node", "1",
             str(ROOT / script), *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
            env={**os.environ, "OMP_NUM_THREADS": "1", "RONDO_HOST_ID": f"host {host}",
                 "GLOO_SOCKET_IFNAME": hosts.INTERFACE, **more}) for host in range(2)]
        said = [agent.communicate(timeout=LIMIT) for agent in agents]
    assert not any(agent.returncode for agent in agents), f"{more}: {said}"
    return said[0][0]


def a_training_on_two_hosts_has_the_losses_of_one_and_operators_are_right_there():
    reason = hosts.why_not()
    if reason:
        return reason
    on_one = torchrun(2, "examples/pytorch/ddp.py")
    for kind in KINDS:
        assert on_two_hosts("examples/pytorch/ddp.py", TORCH_RONDO=kind) == on_one, kind
    on_two_hosts("tests/torch/operators.py", "gloo")
    return None


def fsdp_zero_tensor_parallelism_and_a_pipeline_compute_what_one_process_does():
    said = torchrun(2, "examples/pytorch/parallel.py")
    assert len(said.splitlines()) == 4, said


def operators(backend, kind):
    """`kind` is python, for operators in Python, or nothing, for those that the wheel has compiled."""
    def call():
        torchrun(3, "tests/torch/operators.py", backend, TORCH_RONDO=kind)
    return f"operators and the hook of DDP, groups of {backend}, TORCH_RONDO={kind}", call


def engine(name, ranks):
    def call():
        torchrun(ranks, "tests/torch/engines.py", name)
    return f"what takes the place of collectives of {name}", call


def measured(ways, sizes, types):
    """`rondo.torch.bench` checks every result itself; DeepSpeed's operator is compiled where it was not yet."""
    with tempfile.NamedTemporaryFile("r", suffix=".csv") as file:
        said = torchrun(2, "rondo.torch.bench", *ways, "--bytes", ",".join(sizes), "--types", ",".join(types),
                        "--rounds", "2", "--seconds", "0.001", "--bind", "--csv", file.name).splitlines()
        rows = list(csv.DictReader(file))
    found = collections.defaultdict(list)
    for row in rows:
        found[row["what"], row["type"], row["bytes"]].append(row["way"])
        assert 0 < float(row["minimum_us"]) <= float(row["median_us"]) and row["ranks"] == "2", row
    with open("/proc/cpuinfo", encoding="utf-8") as processors:
        narrow = platform.machine() == "x86_64" and "avx512f" not in processors.read()
    wanted = {(what, dtype, size): [name for name in names if name != "deepspeed" or dtype == "float32" or not narrow]
              for what, names in ways.items() for dtype in types for size in sizes
              if dtype == "float32" or "alone" not in names}
    assert found == wanted, found
    for line, ((what, dtype, size), names) in zip(said, wanted.items(), strict=True):
        assert line.startswith(f"{what} {dtype} {size}: {names[0]} "), line


def each_way_that_is_measured_has_its_row():
    measured({"all_reduce": ["operator", "deepspeed", "rondo", "gloo"], "async": ["rondo", "gloo"],
              "functional": ["operator", "rondo", "gloo"], "round_trip": ["rondo", "gloo"],
              "ddp": ["hook", "rondo", "gloo", "alone"], "fsdp": ["rondo", "gloo", "alone"]},
             ("8", "70000"), ("float32", "bfloat16"))
    measured({"tensor_parallel": ["operator", "rondo", "gloo", "alone"]}, ("64",), ("float32",))
    try:
        torchrun(1, "rondo.torch.bench", "sum")
    except AssertionError as error:
        assert "unknown: sum; there are all_reduce, async" in str(error), error
    else:
        raise AssertionError("what nobody knows is not refused")


def what_is_to_be_reported_to_torch_is_still_so():
    text = (ROOT / "docs/torch_reports.md").read_text(encoding="utf-8")
    reports = re.findall(r"```python\n(.*?)```\s*```text\n(.*?)```", text, re.DOTALL)
    assert len(reports) == text.count("```python") == 4, len(reports)
    for program, wanted in reports:
        said = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=LIMIT,
                              check=False)
        assert said.stdout == wanted, f"{program}\n{said.stdout}{said.stderr}"


def debugging_of_torch_works():
    torchrun(2, "tests/torch/calls.py", "reductions", TORCH_DISTRIBUTED_DEBUG="DETAIL")


def tensors_are_in_memory_that_peers_map_with_the_heap():
    line = subprocess.run([sys.executable, "-m", "rondo", "torch-env", "heap"], capture_output=True, text=True,
                          timeout=LIMIT, check=True).stdout
    libraries = line.removeprefix("export LD_PRELOAD=").strip().strip("'")
    assert libraries.endswith("librondo-heap.so"), line
    for kind in KINDS:
        torchrun(2, "tests/torch/calls.py", "reductions", TORCH_RONDO=kind, LD_PRELOAD=libraries)


def by_hand(what, kinds):
    """What ranks print that have these kinds of the backend. Not under torchrun, which ends the others at once."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = str(free.getsockname()[1])
    ranks = [subprocess.Popen([sys.executable, str(ROOT / "tests/torch/calls.py"), what], text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                              env={**os.environ, "TORCH_RONDO": kind, "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port,
                                   "WORLD_SIZE": str(len(kinds)), "RANK": str(rank)})
             for rank, kind in enumerate(kinds)]
    return [rank.communicate(timeout=LIMIT)[0] for rank in ranks]


def survivors_of_a_death_have_its_sentence():
    for kind in KINDS:
        said = by_hand("death", [kind] * 3)
        assert "rank 0 knows" in said[0] and "rank 2 knows" in said[2], said


def ranks_with_different_kinds_of_the_backend_are_told_so():
    if "compiled" not in KINDS:
        return "rondo-torch is not installed"
    said = by_hand("barriers", ["compiled", "compiled", "python"])
    assert "Rank 0 has the backend in C++ and rank 2 the one in Python" in said[0], said  # then its store is gone
    return None


if __name__ == "__main__":
    sys.exit(cases.run(cases.named([
        a_ddp_training_has_the_losses_of_gloo, the_training_of_rondo_train_has_its_losses_in_torch_too,
        a_training_on_two_hosts_has_the_losses_of_one_and_operators_are_right_there,
        fsdp_zero_tensor_parallelism_and_a_pipeline_compute_what_one_process_does,
        each_way_that_is_measured_has_its_row, what_is_to_be_reported_to_torch_is_still_so, debugging_of_torch_works,
        tensors_are_in_memory_that_peers_map_with_the_heap, survivors_of_a_death_have_its_sentence,
        ranks_with_different_kinds_of_the_backend_are_told_so]) + [
            calls(what, kind) for kind in KINDS
            for what in ("messages", "short", "reductions", "inference", "callbacks", "barriers", "groups",
                         "again")] + [
                operators("gloo", ""), operators("rondo", "python"), engine("deepspeed", 2), engine("sglang", 3),
                engine("vllm", 3)]))
