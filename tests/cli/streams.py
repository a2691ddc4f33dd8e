#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""streams.py - what a command prints is there, or its exit status is not 0. Usage: streams.py RONDO; prints TAP."""
import os
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


print(f"1..{2 * len(COMMANDS)}")
failures = number = 0
for command in COMMANDS:
    for where in (full, closed):
        number += 1
        code, words = where(command)
        good = code != 0
        failures += not good
        print(f"{'ok' if good else 'not ok'} {number} - rondo {' '.join(command)} to a {where.__name__} output: {code}")
        if not good:
            print(f"# {words}")
sys.exit(failures > 0)
