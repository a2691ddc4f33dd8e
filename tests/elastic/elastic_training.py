#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""elastic_training.py - `rondo train --elastic` as people use it.

Usage: elastic_training.py RONDO STUMBLES, the latter is the program of stumbles.c; prints TAP.

Ranks are killed and come while it goes on: is the course of the training that of an undisturbed one, step by step?
"""
import csv
import fcntl
import json
import os
import re
import signal
import socket
import subprocess
import sys
import time

TESTS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..")
sys.path[:0] = [TESTS, os.path.join(TESTS, "net")]
import cases  # noqa: E402  tests/cases.py
import hosts  # noqa: E402  tests/net/hosts.py

RONDO, STUMBLES = map(os.path.abspath, sys.argv[1:])
CALM = []  # rows of the undisturbed training
SMALL = ["--digits=2", "--width=32", "--heads=2", "--layers=2", "--samples=0", "--batch=8"]
STEPS, NOTICED = 250, 40  # steps; those after which something is done to it


def environment(**more):
    return {**cases.clean_environment(), "OPENBLAS_NUM_THREADS": "1", **{k: str(v) for k, v in more.items()}}


def start(*options, stderr=subprocess.PIPE, inside=(), **more):
    return subprocess.Popen([*inside, RONDO, "train", *SMALL, *options], stdout=subprocess.PIPE, stderr=stderr,
                            text=True, env=environment(**more))


def finish(job, status=0):
    output, said = job.communicate(timeout=100)
    assert job.returncode == status, f"status {job.returncode}, not {status}\n{output}{said}"
    return output, said


def rows(path):
    with open(path, encoding="utf-8") as file:
        return list(csv.DictReader(file))


def wait_for_steps(job, path, steps):
    while job.poll() is None:
        try:
            if len(rows(path)) >= steps:
                return
        except OSError:
            pass
        time.sleep(0.01)
    raise AssertionError("it ended too early: " + "".join(job.communicate()))


def same_course(path, tolerance=0.02):
    """Sums are added up in another order by other ranks, so losses differ a little, and more with time."""
    here, calm = rows(path), CALM
    assert [row["step"] for row in here] == [row["step"] for row in calm]
    assert all(row["rate"] == other["rate"] for row, other in zip(here, calm))
    for row, other in zip(here[:NOTICED + 20], calm):
        assert abs(float(row["loss"]) - float(other["loss"])) < tolerance, (row, other)
    assert abs(float(here[-1]["loss"]) - float(calm[-1]["loss"])) < 0.2


def counted_once(output):
    found = re.search(r"samples: (\d+), each counted once", output)
    assert found and int(found[1]) == STEPS * 4 * 8, output


def undisturbed():
    output, _ = finish(start("-n", "4", "--elastic", "2:4", f"--steps={STEPS}", "--csv=calm.csv"))
    counted_once(output)
    assert "ranks: 0 lost, 0 new; 0 steps done again" in output, output
    plain, _ = finish(start("-n", "4", f"--steps={STEPS}", "--csv=plain.csv"))
    assert "samples:" not in plain
    CALM.extend(rows("calm.csv"))
    for row, other in zip(rows("plain.csv")[:NOTICED], CALM):
        assert abs(float(row["loss"]) - float(other["loss"])) < 1e-3, (row, other)


def kill_and_compare(index, name):
    job = start("-n", "4", "--elastic", "2:4", f"--steps={STEPS}", f"--csv={name}.csv")
    wait_for_steps(job, f"{name}.csv", NOTICED)
    os.kill(cases.children_of(job.pid)[index], signal.SIGKILL)
    output, said = finish(job)
    counted_once(output)
    same_course(f"{name}.csv")
    assert "ranks: 1 lost, 0 new" in output, output
    assert f"rondo run: rank {index} " in said and "goes on with the 3 that are left" in said, said
    assert "1 lost, 0 new: goes on with 3 ranks after step" in said, said


def without_a_rank_that_is_killed_the_others_do_the_same_steps():
    kill_and_compare(2, "killed")


def rank_0_is_a_rank_like_others():
    kill_and_compare(0, "first")


def waits_in_write(process):
    number = {"x86_64": "1", "aarch64": "64"}[os.uname().machine]
    with open(f"/proc/{process}/syscall", encoding="ascii") as file:
        call, fd, *_ = [*file.read().split(), ""]
    return call == number and os.readlink(f"/proc/{process}/fd/{int(fd, 16)}").endswith(".csv")


def wait_until(condition, *arguments):
    while not condition(*arguments):
        time.sleep(0.001)


def rank_0_may_end_before_it_has_written_what_counts():
    """It writes to a pipe that nobody reads, so it stops just where a step counts and has no line yet."""
    os.mkfifo("last.csv")
    pipe = os.open("last.csv", os.O_RDONLY | os.O_NONBLOCK)
    fcntl.fcntl(pipe, fcntl.F_SETPIPE_SZ, 4096)
    job = start("-n", "4", "--elastic", "2:4", f"--steps={STEPS}", "--csv=last.csv")
    wait_until(lambda: len(cases.children_of(job.pid)) == 4)
    first, *others = cases.children_of(job.pid)
    wait_until(waits_in_write, first)
    for rank in others:
        os.kill(rank, signal.SIGSTOP)
        wait_until(lambda rank=rank: cases.state_of(rank) == "T")
    os.kill(first, signal.SIGKILL)
    wait_until(lambda: cases.state_of(first) in ("Z", "gone"))
    with open("written.csv", "wb") as file:
        file.write(os.read(pipe, 4096))
    os.rename("written.csv", "last.csv")
    for rank in others:
        os.kill(rank, signal.SIGCONT)
    output, _ = finish(job)
    os.close(pipe)
    counted_once(output)
    same_course("last.csv")


def newcomers_take_places():
    steps = 8 * STEPS
    with open("places.log", "a", encoding="utf-8") as log, open("places.log", encoding="utf-8") as text:
        job = start("-n", "4", "--elastic", "3:4", "--max-restarts=2", f"--steps={steps}", "--csv=places.csv",
                    "--json=places.json", stderr=log)
        said = ""
        for killed in (1, 2):
            wait_for_steps(job, "places.csv", killed * NOTICED)
            os.kill(cases.children_of(job.pid)[killed], signal.SIGKILL)
            while said.count("0 lost, 1 new: goes on with 4 ranks") < killed:  # two that are away are too many
                assert job.poll() is None, said
                time.sleep(0.01)
                said += text.read()
        output, _ = finish(job)
        said += text.read()
    assert "(restart 2 of 2)" in said, said
    with open("places.json", encoding="utf-8") as file:
        summary = json.load(file)
    assert (summary["lost"], summary["joined"], summary["ranks"]) == (2, 2, 4), summary
    assert summary["samples"] == steps * 4 * 8 and "each counted once" in output
    assert [int(row["step"]) for row in rows("places.csv")] == list(range(1, steps + 1))


def one_more_comes_when_asked_for():
    job = start("-n", "2", "--elastic", "1:3", f"--steps={3 * STEPS}", "--csv=more.csv")
    wait_for_steps(job, "more.csv", NOTICED)
    subprocess.run([RONDO, "run", "--join", str(job.pid)], check=True, capture_output=True)
    output, said = finish(job)
    assert "ranks: 0 lost, 1 new" in output and "goes on with 3 ranks" in said, output + said
    assert f"samples: {3 * STEPS * 2 * 8}, each counted once" in output, output


def newcomers_come_from_other_hosts():
    """A job of host 0 gets a rank of host 1, which alone goes on with it, and lets in one of host 0 again."""
    def rank(host, name, **more):
        with open(f"{name}.log", "wb") as log:
            ranks.append(start("--elastic=1:2", f"--steps={400 * STEPS}", f"--csv={name}.csv", RONDO_HOST_ID=host,
                               RONDO_DOOR=os.path.abspath("door"), stderr=log, inside=among.inside(host), **more))

    def says_of_newcomer(name):
        with open(f"{name}.log", encoding="utf-8") as log:
            said = log.read()
        assert all(one.poll() is None for one in ranks), said
        return "0 lost, 1 new: goes on with 2 ranks" in said

    if hosts.why_not():
        return hosts.why_not()
    os.mkdir("door")
    ranks = []
    with hosts.Hosts(2) as among:
        try:
            rank(0, "founder", RONDO_RANK=0, RONDO_SIZE=1)
            wait_for_steps(ranks[0], "founder.csv", NOTICED)
            rank(1, "second", RONDO_JOIN=1)
            wait_until(says_of_newcomer, "founder")
            wait_for_steps(ranks[0], "founder.csv", len(rows("founder.csv")) + 2)  # the second has the state, too
            ranks.pop(0).kill()
            rank(0, "third", RONDO_JOIN=1)
            wait_until(says_of_newcomer, "second")
        finally:
            for one in ranks:
                one.kill()
    return None


def ranks_may_keep_their_batches():
    job = start("-n", "4", "--elastic", "2:4", "--elastic-batch=rank", f"--steps={STEPS}", "--csv=rank.csv")
    wait_for_steps(job, "rank.csv", NOTICED)
    os.kill(cases.children_of(job.pid)[3], signal.SIGKILL)
    output, said = finish(job)
    told = re.findall(r"^step +(\d+)/\d+ .* (\d+) s left$", said, re.MULTILINE)
    assert told and all(int(step) <= STEPS for step, _ in told) and told[-1] == (str(STEPS), "0"), said
    taken = int(re.search(r"samples: (\d+), each counted once", output)[1])
    assert STEPS * 32 <= taken < STEPS * 32 + 32, output
    assert len(rows("rank.csv")) > STEPS, "steps of fewer ranks are shorter, so there are more"
    last, calm = rows("rank.csv")[STEPS // 2], CALM[STEPS // 2]
    assert float(last["rate"]) < float(calm["rate"]), (last, calm)


def a_checkpoint_that_cannot_be_written_does_not_end_it():
    """A rank that was stopped as it wrote, and left behind, holds the file; here this process does."""
    with open("held.ck.part", "wb") as part:
        fcntl.flock(part, fcntl.LOCK_EX)
        job = start("-n", "3", "--elastic", "2:3", f"--steps={STEPS}", "--checkpoint=held.ck", "--every=10",
                    "--csv=held.csv")
        wait_for_steps(job, "held.csv", 2 * NOTICED)
        assert not os.path.exists("held.ck")
    output, said = finish(job)
    assert "held.ck is just being written by another process" in said, said
    assert "there is no checkpoint of step 10\n" in said and f"of step {STEPS}\n" not in said, said
    assert os.path.exists("held.ck") and "each counted once" in output, output


def the_last_evaluation_may_fail_on_one_rank():
    """It is all that is left to do when a training goes on after its end, and all ranks do the same next."""
    options = ("--elastic=1:2", "--steps=20", "--checkpoint=through.ck")
    before, _ = finish(start("-n", "2", *options))
    command = [RONDO, "run", "-n", "2", "--elastic=1:2", STUMBLES, *SMALL, *options, "--resume"]
    after = subprocess.run(command, env=environment(), capture_output=True, text=True, timeout=100, check=False)
    assert after.returncode == 0, after
    for told in before, after.stdout:
        assert "accuracy" in told, told


def too_few_are_too_few():
    job = start("-n", "3", "--elastic", "3:3", f"--steps={100 * STEPS}", "--csv=few.csv")
    wait_for_steps(job, "few.csv", 5)
    os.kill(cases.children_of(job.pid)[1], signal.SIGKILL)
    _, said = finish(job, 128 + signal.SIGKILL)
    assert "2 of the job are left, --elastic wants 3 at least" in said, said
    assert "the 2 that are left are fewer than the 3 with which the job goes on" in said, said


def work_that_fails_everywhere_ends():
    _, said = finish(start("-n", "2", "--elastic", "1:2", "--rate=1e30", "--warmup=0", f"--steps={STEPS}"), 1)
    assert "not finite" in said, said


def who_fails_does_not_say_that_the_training_is_over():
    """The curve has no place, so each rank fails at its first step, which counted; then newcomers find nobody."""
    options = ("-n", "2", "--elastic=1:2", "--max-restarts=2", f"--steps={STEPS}", "--csv=nowhere/curve.csv")
    _, said = finish(start(*options), 1)
    assert "nowhere/curve.csv" in said and "is over" not in said, said


def who_comes_too_late_has_not_ended_well():
    os.mkdir("door")
    with open("door/over", "w", encoding="utf-8"):
        pass
    _, said = finish(start("--elastic=1:2", RONDO_JOIN=1, RONDO_DOOR="door"), 1)
    assert "The job of this newcomer is over" in said, said


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def torch_ranks(size, port, restarts, *options):
    """As torchrun starts them: after a failure all of them again, maybe fewer, with a higher count."""
    return [start("--elastic", "2:4", f"--steps={STEPS}", "--checkpoint=torch.ck", "--every=50", "--resume", *options,
                  RANK=rank, WORLD_SIZE=size, LOCAL_RANK=rank, LOCAL_WORLD_SIZE=size, MASTER_ADDR="127.0.0.1",
                  MASTER_PORT=port, TORCHELASTIC_RUN_ID="none", TORCHELASTIC_RESTART_COUNT=restarts)
            for rank in range(size)]


def under_torchrun_fewer_ranks_go_on_from_the_checkpoint():
    port = free_port()
    ranks = torch_ranks(4, port, 0, "--csv=torch.csv")
    wait_for_steps(ranks[0], "torch.csv", 2 * NOTICED)
    for rank in ranks:
        rank.kill()
        rank.communicate()
    ended = [finish(rank) for rank in torch_ranks(3, port, 1, "--csv=torch.csv")]
    counted_once(ended[0][0])
    assert "goes on after step" in ended[0][1], ended
    same_course("torch.csv")


AGENT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "like_torchrun.py")


def start_agent(name, *options):
    """Restarts as torchrun does them, with a checkpoint now and then."""
    return subprocess.Popen([sys.executable, AGENT, *options, RONDO, "train", *SMALL, "--elastic=2:4",
                             f"--csv={name}.csv", f"--steps={STEPS}", f"--checkpoint={name}.ck", "--every=25",
                             "--resume"],
                            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                            env=environment(RONDO_SECRET="0123456789abcdef" * 2))


def agents_kill(name, kills, *options):
    job = start_agent(name, *options)
    for kill in range(kills):
        wait_for_steps(job, f"{name}.csv", (kill + 1) * NOTICED)
        os.kill(cases.children_of(job.pid)[-1 - kill], signal.SIGKILL)
    output, said = finish(job)
    counted_once(output)
    same_course(f"{name}.csv")
    return said


def torchrun_restarts_a_node():
    said = agents_kill("node", 2)
    assert said.count("like_torchrun: 4 ranks on 1 nodes") == 3 and "goes on after step" in said, said


def torchrun_goes_on_without_a_node_and_with_it_again():
    """Each agent counts its own restarts, so the counts of the nodes differ then."""
    said = agents_kill("nodes", 1, "--nodes=2", "--ranks=2", "--away=1")
    worlds = re.findall(r"like_torchrun: (\d) ranks", said)
    assert worlds[:2] == ["4", "2"] and set(worlds[2:]) <= {"4"} and "goes on after step" in said, said


def what_does_not_go_together_is_said():
    for options, words in ((["--elastic=2"], "accepted is MIN:MAX"), (["--elastic=1:2", "--shard=full"], "a shard of"),
                           (["--elastic=1:2", "--deterministic"], "leave out --deterministic"),
                           (["-n", "5", "--elastic=2:4"], "not within --elastic 2:4"),
                           (["--max-restarts=1"], "--max-restarts needs --elastic"),
                           (["--elastic-batch=rank"], "--elastic-batch needs --elastic")):
        _, said = finish(start(*options), 2)
        assert words in said, said


CASES = (undisturbed, without_a_rank_that_is_killed_the_others_do_the_same_steps, rank_0_is_a_rank_like_others,
         rank_0_may_end_before_it_has_written_what_counts, newcomers_take_places, one_more_comes_when_asked_for,
         newcomers_come_from_other_hosts, ranks_may_keep_their_batches,
         a_checkpoint_that_cannot_be_written_does_not_end_it, the_last_evaluation_may_fail_on_one_rank,
         too_few_are_too_few,
         work_that_fails_everywhere_ends, who_fails_does_not_say_that_the_training_is_over,
         who_comes_too_late_has_not_ended_well, under_torchrun_fewer_ranks_go_on_from_the_checkpoint,
         torchrun_restarts_a_node, torchrun_goes_on_without_a_node_and_with_it_again,
         what_does_not_go_together_is_said)


if __name__ == "__main__":
    os.environ["RONDO_LOG"] = "none"
    sys.exit(cases.run_in_scratch(CASES))
