#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""terminal.py - what `rondo bench` prints to a terminal: colours, --watch. Usage: terminal.py PROGRAM"""
import os
import pty
import re
import subprocess
import sys

LINE = [sys.argv[1], *"all_reduce -n 2 --bytes 64,1K --rounds 3 --seconds 0.01".split()]


def shown(*options, **environment):
    """All that a terminal gets."""
    ours, theirs = pty.openpty()
    with subprocess.Popen(LINE + list(options), stdout=theirs, stderr=subprocess.PIPE,
                          env={**os.environ, **environment}) as run:
        os.close(theirs)
        text = b""
        while True:
            try:
                piece = os.read(ours, 65536)
            except OSError:  # nobody writes any more
                break
            text += piece
        assert run.wait() == 0, run.stderr.read()
    os.close(ours)
    return text.decode()


ESCAPE = "\033["
plain = shown(NO_COLOR="1")
assert "# wrong values: 0 OK" in plain and ESCAPE not in plain, repr(plain)
coloured = shown(NO_COLOR="")
assert f"{ESCAPE}1m#" in coloured and f"{ESCAPE}32mOK{ESCAPE}0m" in coloured, repr(coloured)

# Each size has a row after each of three rounds, which replaces the one before, and then the row that stays.
rows = re.findall(r"\r\033\[K(\033\[\?7l)?  +(\d+) ", shown("--watch", NO_COLOR="1"))
assert [size for live, size in rows] == ["64"] * 4 + ["1024"] * 4, rows
assert [bool(live) for live, size in rows] == 2 * [True, True, True, False], rows

to_file = subprocess.run(LINE, capture_output=True, text=True, check=True)
assert ESCAPE not in to_file.stdout + to_file.stderr
refused = subprocess.run(LINE + ["--watch"], capture_output=True, text=True)
assert refused.returncode == 2 and "stdout is none" in refused.stderr and not refused.stdout, refused
print("terminals and files get what they should")
