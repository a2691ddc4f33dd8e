#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""kill_and_join.py - `rondo train --elastic` while ranks are killed and others come, beside restarts from checkpoints.

Usage: kill_and_join.py RONDO [--seconds S] [--kill-every S] [--join-every S] [--every STEPS] [--batch N] [--alone]

1. undisturbed: how many steps are done in S seconds, and what was learned by then
2. the same number of steps, with a rank killed and another one started again and again
3. the same with restarts: a rank is killed, the job ends, and is begun again from the last checkpoint
With --alone only the second.

Prints, of the last two, how many steps were done again and how many seconds went by without work that counts, and
fails if a sample was lost or counted twice, or if something that was learned was lost with a rank.
"""
import argparse
import contextlib
import csv
import json
import os
import random
import re
import signal
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import cases  # noqa: E402  tests/cases.py

parser = argparse.ArgumentParser()
parser.add_argument("rondo")
parser.add_argument("--seconds", type=float, default=6)
parser.add_argument("--kill-every", type=float, default=1.5)
parser.add_argument("--join-every", type=float, default=2)
parser.add_argument("--every", type=int, default=50, help="steps between checkpoints")
parser.add_argument("--steps", type=int, default=0, help="0: as many as take about --seconds")
parser.add_argument("--batch", type=int, default=32)
parser.add_argument("--seed", type=int, default=1)
parser.add_argument("--alone", action="store_true", help="neither the undisturbed job nor restarts")
asked = parser.parse_args()
RONDO, RANKS = os.path.abspath(asked.rondo), 4
CHANCE = random.Random(asked.seed)
MODEL = ["--digits=1", "--width=32", "--heads=2", "--layers=2", "--samples=0", f"--batch={asked.batch}",
         "--evaluate=0", "--csv=steps.csv", "-n", str(RANKS)]
TINY_STEPS = 200
# Of 24 seeds, none had a loss above 0.006 after 700 steps of 16 samples a rank, and all began above 2.3. (Of sums of
# two digits one seed of ten stays at 0.8, whatever becomes of ranks.)
LEARNED_STEPS, FORGOTTEN_LOSS = 800, 0.5


def start(*options):
    environment = {**cases.clean_environment(), "OPENBLAS_NUM_THREADS": "1"}
    with open("said", "wb") as said:  # what an earlier job said would be taken for this one's
        return subprocess.Popen([RONDO, "train", *MODEL, *options], env=environment, text=True, stdout=subprocess.PIPE,
                                stderr=said)


def kill_one(job, killed):
    """The launcher's children are the ranks, and newcomers that wait to be let in: then nobody is killed, and neither
    while the others have not yet said that they noticed the last death, nor before newcomers have done a step, as
    ranks that have the state of the job may be few until then."""
    ranks, words = cases.children_of(job.pid), said()
    members = re.findall(r"goes on with (\d+) rank|rondo train: (\d+) ranks, a model", words)
    reached = re.findall(r"goes on with .* after step (\d+)", words)
    noticed = sum(int(lost) for lost in re.findall(r"rondo train: (\d+) lost", words))
    if members and len(ranks) == int("".join(members[-1])) > 2 and noticed == killed and \
            last_step() > int(reached[-1] if reached else 0):
        with contextlib.suppress(ProcessLookupError):  # it may have done its work by now
            os.kill(CHANCE.choice(ranks), signal.SIGKILL)
            return 1
    return 0


def join_one(job):
    done = subprocess.run([RONDO, "run", "--join", str(job.pid)], capture_output=True, text=True, check=False)
    return done.returncode == 0


def disturb(job, kills, joins):
    """Until the job ends. Returns how many were killed and how many have come."""
    began, killed, came = time.monotonic(), 0, 0
    next_kill, next_join = began + kills, began + joins
    while job.poll() is None:
        now = time.monotonic()
        if now >= next_kill:
            killed += kill_one(job, killed)
            next_kill += kills
        if now >= next_join:
            came += join_one(job)
            next_join += joins
        time.sleep(0.02)
    return killed, came


def end_of(job, name):
    output = job.communicate()[0]
    assert job.returncode == 0, f"{name}: status {job.returncode}\n{output}{said()[-6000:]}"
    with open("summary.json", encoding="utf-8") as file:
        return output, json.load(file)


def said():
    with open("said", encoding="utf-8", errors="replace") as file:
        return file.read()


def count_steps():
    """As many as make about the seconds asked for. Two jobs, so that what it takes to begin and to end is left out."""
    took = []
    for steps in (TINY_STEPS, 6 * TINY_STEPS):
        began = time.monotonic()
        end_of(start(f"--steps={steps}", "--elastic", f"2:{RANKS}", "--json=summary.json"), "how fast it is")
        took.append(time.monotonic() - began)
    return max(2 * LEARNED_STEPS, int(5 * TINY_STEPS * asked.seconds / max(0.1, took[1] - took[0])))


def rows():
    """Those since the job's last start: a step has its row when all ranks have done it."""
    try:
        with open("steps.csv", encoding="utf-8") as file:
            return list(csv.DictReader(file))
    except OSError:
        return []


def last_step():
    return max((int(row["step"]) for row in rows()), default=0)


def greatest_loss():
    return max(float(row["loss"]) for row in rows() if int(row["step"]) > LEARNED_STEPS)


def elastic(steps):
    job = start(f"--steps={steps}", "--elastic", f"2:{RANKS}", "--json=summary.json")
    killed, came = disturb(job, asked.kill_every, asked.join_every)
    output, summary = end_of(job, "elastic")
    print(f"elastic: {killed} killed, {came} came; by its own account {summary['lost']} lost, {summary['joined']} new")
    print("  " + "\n  ".join(line for line in output.splitlines() if line.startswith(("ranks:", "samples:"))))
    assert summary["steps"] == steps
    assert summary["samples"] == steps * RANKS * asked.batch
    assert re.search(r"samples: \d+, each counted once", output), output
    greatest = greatest_loss()
    assert greatest < FORGOTTEN_LOSS, f"after step {LEARNED_STEPS} there is a loss of {greatest}\n{said()[-6000:]}"
    assert killed > 0 and summary["lost"] > 0, "nobody was killed: make it longer"
    print(f"  held-out loss {summary['held_out_loss']:.4f}, accuracy {100 * summary['held_out_accuracy']:.1f} %; "
          f"per rank killed: {summary['undone'] / killed:.2f} steps and {summary['recovering'] / killed:.3f} s lost")
    return killed


def restarted(steps, kills):
    """As torchrun does it: all ranks end with the one that failed, and begin again from the checkpoint."""
    undone, idle, reached, kept = 0, 0.0, 0, 0
    for kill in range(kills + 1):
        began = time.monotonic()
        job = start(f"--steps={steps}", "--json=summary.json", "--checkpoint=restart.ck",
                    f"--every={asked.every}", *(["--resume"] if kill else []))
        while kill and job.poll() is None and kept + len(rows()) < max(reached, kept + 1):
            time.sleep(0.01)
        idle += time.monotonic() - killed if kill else 0
        while kill < kills and job.poll() is None and (time.monotonic() < began + asked.kill_every
                                                       or len(cases.children_of(job.pid)) < RANKS):
            time.sleep(0.02)
        if kill == kills or job.poll() is not None:
            return end_of(job, "restarted")[1], kill, undone, idle
        os.kill(CHANCE.choice(cases.children_of(job.pid)), signal.SIGKILL)
        killed = time.monotonic()
        job.communicate()
        reached = kept + len(rows())
        kept = reached - reached % asked.every
        undone += reached - kept
        if os.path.exists("steps.csv"):  # else it was killed before its first step
            os.remove("steps.csv")
    return None


def undisturbed(steps):
    began = time.monotonic()
    _, calm = end_of(start(f"--steps={steps}", "--elastic", f"2:{RANKS}", "--json=summary.json"), "undisturbed")
    print(f"undisturbed: {steps} steps in {time.monotonic() - began:.1f} s, held-out loss {calm['held_out_loss']:.4f}, "
          f"accuracy {100 * calm['held_out_accuracy']:.1f} %")


def compare_with_restarts(steps, killed):
    again, restarts, undone, idle = restarted(steps, max(1, min(killed, 5)))
    print(f"restarted from checkpoints of every {asked.every} steps: {restarts} killed; held-out loss "
          f"{again['held_out_loss']:.4f}, accuracy {100 * again['held_out_accuracy']:.1f} %; per rank killed: "
          f"{undone / max(1, restarts):.1f} steps and {idle / max(1, restarts):.2f} s lost")


def main():
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        steps = asked.steps or count_steps()
        if asked.alone:
            elastic(steps)
        else:
            undisturbed(steps)
            compare_with_restarts(steps, elastic(steps))
        os.chdir("/")


main()
