#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""examples.py - the examples, unchanged, under every launcher: `rondo run`, mpirun of both MPIs, and the variables that
torchrun and srun set. Usage: examples.py FOLDER_OF_EXAMPLES RONDO; prints TAP."""
import os
import re
import shutil
import socket
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import cases  # noqa: E402  tests/cases.py

FOLDER, RONDO = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2])


def environment(**more):
    clean = cases.clean_environment()
    return {**clean, **{k: str(v) for k, v in more.items()}}


def program(name):
    return os.path.join(FOLDER, "example_" + name)


def output_of(command):
    result = subprocess.run(command, capture_output=True, text=True, timeout=60, env=environment(), check=False)
    assert result.returncode == 0, f"{command[0]}: status {result.returncode}\n{result.stdout}{result.stderr}"
    return sorted(line for line in result.stdout.splitlines() if line.startswith("rank"))


def output_by_variables(path, ranks, variables):
    """Start the ranks ourselves, each with the variables that a launcher would give it."""
    processes = [subprocess.Popen([path], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                  env=environment(**variables(rank))) for rank in range(ranks)]
    lines = []
    for process in processes:
        out, err = process.communicate(timeout=60)
        assert process.returncode == 0, err
        lines += out.splitlines()
    return sorted(lines)


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def sums(ranks):
    return [f"rank {r} of {ranks}: {ranks} {2 * ranks}" for r in range(ranks)]


def under_rondo_run():
    assert output_of([RONDO, "run", "-n", "3", "--", program("01_all_reduce")]) == sums(3)


def opening_is_three_lines_of_the_log_and_of_rank_0():
    result = subprocess.run([RONDO, "run", "-n", "4", "--bind", "none", "--", program("01_all_reduce")], timeout=60,
                            capture_output=True, text=True, check=True,
                            env=environment(RONDO_LOG="info", RONDO_GROUPS="2x2"))
    lines = [line for line in result.stderr.splitlines() if line.startswith("rondo[")]
    opening = [line for line in lines if " comm: " in line or " comm/rendezvous: " in line]
    assert all(line.startswith("rondo[0] info: ") for line in lines), lines
    assert len(opening) == 3 and lines[:3] == opening, lines
    assert "started by: rondo run" in opening[0] and "ranks in 2 groups: " in opening[1], lines
    assert "latency " in opening[2] and "from group to group: " in opening[2], lines


def said_of_settings(**variables):
    """What two ranks say on stderr about names of variables."""
    result = subprocess.run([RONDO, "run", "-n", "2", "--bind", "none", "--", program("01_all_reduce")], timeout=60,
                            capture_output=True, text=True, env=environment(**variables), check=True)
    return [line for line in result.stderr.splitlines() if "no setting" in line]


def misspelt_setting_is_told_once_by_each_process():
    lines = said_of_settings(RONDO_TIMOUT=50)
    sentence = "RONDO_TIMOUT is no setting of Rondo; did you mean RONDO_TIMEOUT?"
    assert len(lines) == 2 and all(line.endswith(sentence) for line in lines), lines
    assert not said_of_settings(RONDO_TIMOUT=50, RONDO_LOG="none")
    assert not said_of_settings(), "launchers set settings only"


def under_mpirun(name, *options):
    found = shutil.which(name)
    if not found:
        return f"{name} is not installed"
    assert output_of([found, *options, "-n", "3", program("01_all_reduce")]) == sums(3)
    return None


def under_open_mpi():
    return under_mpirun("mpirun.openmpi", *cases.openmpi_options())


def under_mpich():
    return under_mpirun("mpirun.mpich")


def under_torchrun_variables():
    port = free_port()
    lines = output_by_variables(program("01_all_reduce"), 3, lambda r: {
        "RANK": r, "WORLD_SIZE": 3, "LOCAL_RANK": r, "LOCAL_WORLD_SIZE": 3, "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": port, "TORCHELASTIC_RUN_ID": "none"})
    assert lines == sums(3), lines


def under_srun_variables():
    lines = output_by_variables(program("01_all_reduce"), 3, lambda r: {
        "SLURM_PROCID": r, "SLURM_NTASKS": 3, "SLURM_LOCALID": r, "SLURM_JOB_ID": os.getpid(), "SLURM_STEP_ID": 0,
        "SLURM_NNODES": 1, "SLURM_JOB_NODELIST": "localhost", "SLURM_STEP_NODELIST": "localhost",
        "SLURM_TASKS_PER_NODE": "3", "SLURM_STEP_TASKS_PER_NODE": "3"})
    assert lines == sums(3), lines


def alone():
    assert output_of([program("01_all_reduce")]) == sums(1)


def threads_in_one_process():
    assert output_of([program("02_threads")]) == [f"rank {r} has 1 2 3 4" for r in range(4)]


def streams():
    lines = output_of([RONDO, "run", "-n", "3", "--", program("03_streams")])
    assert lines == sorted([f"rank {r}: the first sum is 6" for r in range(3)] +
                           [f"rank {r}: the second maximum is 3" for r in range(3)]), lines


def send_and_receive():
    lines = output_of([RONDO, "run", "-n", "4", "--", program("04_send_recv_ring")])
    assert lines == [f"rank {r} of 4: from 100 to 103" for r in range(4)], lines


def user_operation():
    lines = output_of([RONDO, "run", "-n", "4", "--", program("05_user_operation")])
    # 2(2(2(2x + 0) + 1) + 2) + 3
    assert lines == [f"rank {r} of 4: x -> 16x + 11" for r in range(4)], lines


def split():
    lines = output_of([RONDO, "run", "-n", "5", "--", program("06_split")])
    assert lines == [f"rank {r} of 5: my part sums to {4 if r % 2 else 6}, all to 10" for r in range(5)], lines


def pipeline():
    for n in (1, 2, 4):
        lines = output_of([RONDO, "run", "-n", str(n), "--", program("07_pipeline")])
        assert lines == [f"rank {r} of {n}: layer {r}, 6 micro-batches, gradients as in one process"
                         for r in range(n)], lines


def tensor_parallelism():
    for n in (1, 3, 4):
        lines = output_of([RONDO, "run", "-n", str(n), "--", program("08_tensor_parallel")])
        cuts = [30 * r // n for r in range(n + 1)]
        assert lines == [f"rank {r} of {n}: hidden units {cuts[r]} to {cuts[r + 1] - 1}, y[0][0] = -11, "
                         "as with whole matrices" for r in range(n)], lines


def shards():
    result = subprocess.run([RONDO, "run", "-n", "4", "--", program("09_shards")], capture_output=True, text=True,
                            timeout=60, env=environment(), check=True)
    lines = re.findall(r"level (\d): loss ([\d.]+), KiB per rank: parameters (\d+), gradients (\d+), states (\d+)",
                       result.stdout)
    assert [line[0] for line in lines] == ["1", "2", "3"], result.stdout
    assert len({line[1] for line in lines}) == 1, "losses differ: " + result.stdout
    whole = 4 * 10000 * 4 / 1024
    wanted = [(whole, whole * 5 / 4, whole / 2), (whole, whole / 4, whole / 2), (whole / 4, whole / 4, whole / 2)]
    for line, sizes in zip(lines, wanted):
        assert all(size - 1 < int(found) < size + 2 for found, size in zip(line[2:], sizes)), line


def going_on_without_a_killed_rank():
    lines = output_of([program("10_go_on")])
    assert "rank 2 of 4 has failed in step 3" in lines, lines
    left = [line for line in lines if "sum" in line]
    assert left == [f"rank {i} of 3, which was {r}: the sum is 7" for i, r in enumerate((0, 1, 3))], lines


def going_on_ends_where_rank_0_cannot_begin():
    result = subprocess.run([program("10_go_on")], capture_output=True, text=True, timeout=60,
                            env=environment(RONDO_TIMEOUT="abc"), check=False)
    assert result.returncode == 1 and "RONDO_TIMEOUT" in result.stderr, result


def wrapper_of_cpp():
    if not os.path.exists(program("11_wrapper")):
        return "there is no compiler of C++"
    lines = output_of([RONDO, "run", "-n", "3", "--", program("11_wrapper")])
    assert lines == [f"rank {r} of 3: the first sum is 3, the last maximum {65535 + 2}" for r in range(3)], lines
    return None


def main():
    tests = [under_rondo_run, opening_is_three_lines_of_the_log_and_of_rank_0,
             misspelt_setting_is_told_once_by_each_process, under_open_mpi, under_mpich,
             under_torchrun_variables, under_srun_variables, alone, threads_in_one_process, streams, send_and_receive,
             user_operation, split, pipeline, tensor_parallelism, shards, going_on_without_a_killed_rank,
             going_on_ends_where_rank_0_cannot_begin, wrapper_of_cpp]
    return cases.run(cases.named(tests))


if __name__ == "__main__":
    sys.exit(main())
