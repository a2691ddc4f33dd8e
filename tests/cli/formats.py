#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""formats.py - does `rondo bench --format` print as nccl-tests and the OSU benchmarks do? Usage: formats.py PROGRAM

It knows how those programs print, and nothing of Rondo. Of nccl-tests: a size is 12 wide, a count 14, type 10, redop 8,
root 8, then twice time 9, algbw, busbw and #wrong 8 each, with two blanks before each; "# Out of bounds values : N OK"
and "# Avg bus bandwidth : X " at the end. Of OSU: "# Size" in 10 columns, figures in 20 with two places.
"""
import re
import subprocess
import sys

WIDTHS = (12, 14, 10, 8, 8) + 2 * (9, 8, 8, 8)
HEADS = ("# %10s  %12s  %8s  %6s  %6s           out-of-place                       in-place          "
         % ("", "", "", "", ""),
         "# %10s  %12s  %8s  %6s  %6s  %7s  %6s  %6s  %6s  %7s  %6s  %6s  %6s "
         % ("size", "count", "type", "redop", "root", *2 * ("time", "algbw", "busbw", "#wrong")),
         "# %10s  %12s  %8s  %6s  %6s  %7s  %6s  %6s  %6s  %7s  %6s  %6s  %6s "
         % ("(B)", "(elements)", "", "", "", *2 * ("(us)", "(GB/s)", "(GB/s)", "")))


def cells(line):
    """The columns of a line, cut where nccl-tests' printf() ends them."""
    assert len(line) == sum(WIDTHS), line
    ends = [sum(WIDTHS[:i + 1]) for i in range(len(WIDTHS))]
    found = [line[end - width:end] for end, width in zip(ends, WIDTHS)]
    assert all(cell.startswith("  ") for cell in found[1:]), line
    return [cell.strip() for cell in found]


def parse(text):
    lines = text.splitlines()
    assert "\n".join(HEADS) in text, text
    rows = [cells(line) for line in lines if not line.startswith("#")]
    bounds = re.search(r"^# Out of bounds values : (\d+) (OK|FAILED)$", text, re.M)
    average = re.search(r"^# Avg bus bandwidth    : ([\d.e+-]+) $", text, re.M)
    assert bounds and average, text
    return rows, int(bounds[1]), bounds[2], float(average[1])


def bench(*arguments):
    line = [sys.argv[1], *arguments, "-n", "2", "--rounds", "2", "--seconds", "0.01"]
    done = subprocess.run(line, capture_output=True, text=True)
    assert done.returncode == 0, (arguments, done.returncode, done.stderr)
    return done.stdout


def run(*arguments):
    return parse(bench(*arguments, "--format", "nccl"))


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

rows, *_ = run("all_to_all", "-b", "1K", "-e", "16K", "-f", "4", "-w", "1", "-c", "0", "-d", "half", "-o", "max")
assert [row[:5] for row in rows] == [[str(size), str(size // 4), "half", "none", "-1"] for size in (1024, 4096, 16384)]
assert all(row[8] == "N/A" for row in rows), "-c 0 counts nothing"

rows, *_ = run("sendrecv", "--bytes", "1K")
assert rows[0][9:] == ["N/A"] * 4, "sendrecv has no place to be in"


def osu(*arguments):
    """The lines of an output: its head without what begins it, then the rows."""
    text = bench(*arguments, "--format", "osu")
    assert text.startswith("\n# OSU MPI "), text
    return text.splitlines()[1:]


title, datatype, head, *rows = osu("all_gather", "-b", "8,64K", "-d", "double")
assert title.startswith("# OSU MPI Allgather Latency Test"), title
assert datatype == "# Datatype: MPI_DOUBLE.", datatype
assert head == "# Size    " + "Avg Latency(us)".rjust(20), head
assert [row[:10] for row in rows] == ["32768".ljust(10)], "what each of two ranks sends; 8 B are less than one each"
assert all(re.fullmatch(r" +\d+\.\d\d", row[10:]) and len(row) == 30 for row in rows), rows

title, _, _, *rows = osu("all_to_all_v", "-b", "64K")
assert title.startswith("# OSU MPI All-to-Allv Personalized Exchange Latency Test"), title
assert [row[:10] for row in rows] == ["32768".ljust(10)], rows

_, _, head, *rows = osu("bandwidth", "-b", "1K")
assert head == "# Size    " + "Bandwidth (MB/s)".rjust(20) and len(rows) == 1, (head, rows)

_, _, head, row = osu("all_reduce", "-b", "1K", "--overlap")
assert head == "# Size    " + "".join(name.rjust(20) for name in ("Overall(us)", "Compute(us)", "Pure Comm.(us)",
                                                                  "Overlap(%)")), head
assert len(row) == 90, row

title, head, row = osu("barrier")
assert head == "# Avg Latency(us)" and re.fullmatch(r" +\d+\.\d\d", row) and len(row) == 17, (head, row)
print("scripts of nccl-tests and OSU can read it")
