#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""nccl_tests.py - is `rondo bench --nccl-tests` the output of nccl-tests? Usage: nccl_tests.py PROGRAM

It knows the columns as nccl-tests documents them and nothing of Rondo: size (B), count (elements), type, redop, root,
then out-of-place time (us), algbw, busbw (GB/s), #wrong, then the same in-place; "# Out of bounds values : N OK" and
"# Avg bus bandwidth : X" at the end.
"""
import re
import subprocess
import sys


def parse(text):
    rows = [line.split() for line in text.splitlines() if line.strip() and not line.startswith("#")]
    bounds = re.search(r"^# Out of bounds values\s*:\s*(\d+) (OK|FAILED)$", text, re.M)
    average = re.search(r"^# Avg bus bandwidth\s*:\s*([\d.e+-]+)", text, re.M)
    assert bounds and average, text
    return rows, int(bounds[1]), bounds[2], float(average[1])


def run(*arguments):
    line = [sys.argv[1], *arguments, "-n", "2", "--rounds", "2", "--seconds", "0.01", "--nccl-tests"]
    done = subprocess.run(line, capture_output=True, text=True)
    assert done.returncode == 0, (arguments, done.returncode, done.stderr)
    return parse(done.stdout)


rows, wrong, verdict, average = run("all_reduce", "--bytes", "1K,64K,1M")
assert (wrong, verdict) == (0, "OK")
assert [row[:5] for row in rows] == [["1024", "256", "float", "sum", "-1"], ["65536", "16384", "float", "sum", "-1"],
                                     ["1048576", "262144", "float", "sum", "-1"]], rows
speeds = []
for row in rows:
    assert len(row) == 13, row
    size = int(row[0])
    for time, algbw, busbw, errors in (row[5:9], row[9:13]):
        assert errors == "0", row
        assert abs(float(algbw) - size / float(time) / 1e3) < 0.01 + 0.05 * float(algbw), row
        assert abs(float(busbw) - float(algbw)) < 0.02, row  # 2(n-1)/n is 1 of two ranks
        speeds.append(float(busbw))
assert abs(average - sum(speeds) / len(speeds)) < 0.02, (average, speeds)

rows, *_ = run("broadcast", "--bytes", "1K", "--dtype", "float64", "--root", "1")
assert rows[0][:5] == ["1024", "128", "double", "none", "1"], rows

rows, *_ = run("sendrecv", "--bytes", "1K")
assert rows[0][9:] == ["N/A"] * 4, "sendrecv has no place to be in"
print("nccl-tests' scripts can read it")
