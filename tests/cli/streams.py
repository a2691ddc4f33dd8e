#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""streams.py - what a command inherits: a standard output that is full or closed, so that its exit status is not 0; and
SIGCHLD ignored, as some daemons leave it, so that it has to wait for its children all the same.
Usage: streams.py RONDO; prints TAP."""
import os
import signal
import subprocess
import sys

RONDO = os.path.abspath(sys.argv[1])
COMMANDS = (["--version"], ["--help"], ["topo"], ["doctor"], ["explain", "--list"],
            ["explain", "all_reduce", "-n", "3", "--algo", "ring"], ["verify", "all_reduce", "--ranks", "2"],
            ["explain", "--help"])


def status(command, **how):
    result = subprocess.run([RONDO, *command], stderr=subprocess.PIPE, text=True, timeout=60, check=False, **how)
    return result.returncode, result.stderr


def full(command):
    with open("/dev/full", "w") as disk:
        return status(command, stdout=disk)


def closed(command):
    return status(command, preexec_fn=lambda: os.close(1))


def ignoring(command):
    return status(command, preexec_fn=lambda: signal.signal(signal.SIGCHLD, signal.SIG_IGN))


def tell(good, what, words):
    print(f"{'ok' if good else 'not ok'} {number} - {what}")
    if not good:
        print(f"# {words}")
    return not good


print(f"1..{2 * len(COMMANDS) + 1}")
failures = number = 0
for command in COMMANDS:
    for where in (full, closed):
        number += 1
        code, words = where(command)
        failures += tell(code != 0, f"rondo {' '.join(command)} to a {where.__name__} output: {code}", words)
number += 1
code, words = ignoring(["run", "-n", "2", "--bind", "none", "sh", "-c", "exit 3"])
failures += tell(code == 3, f"rondo run in a process that ignores SIGCHLD: {code}", words)
sys.exit(failures > 0)
