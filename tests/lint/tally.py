#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""tally.py - adds up the test logs of several builds; its last line is "N passed, N failed".

tally.py LOG...           count cases in meson's testlog.json files: TAP lines of Criterion programs, else programs
tally.py --suites FOLDER  print the suites of a build folder, one for each room
tally.py --stress FOLDER  print target and test name of the stress programs of a build folder
"""
import json
import os
import re
import subprocess
import sys


def cases(test):
    """(passed, failed, skipped) of one program; one that ends badly without naming a case counts as one failure."""
    lines = (test.get("stdout") or "").splitlines()
    if not any(re.match(r"1\.\.\d+|ok |not ok ", line) for line in lines):
        lines = []
    failed = sum(line.startswith("not ok") for line in lines)
    skipped = sum(bool(re.match(r"ok .*# *skip", line, re.I)) for line in lines)
    passed = sum(line.startswith("ok") for line in lines) - skipped
    if test["result"] in ("SKIP", "IGNORED"):
        return 0, 0, max(1, skipped)
    if test["result"] not in ("OK", "EXPECTEDFAIL"):
        return passed, max(1, failed), skipped
    return (passed, failed, skipped) if lines else (1, failed, skipped)


def reasons(test):
    """What a failed program says about it: TAP's failed cases with what is indented below, or the last lines."""
    lines = (test.get("stdout") or "").splitlines()
    failed = []
    inside = False
    for line in lines:
        inside = line.startswith("not ok") or inside and line.startswith(("  ", "#"))
        failed += [line] if inside else []
    return failed[:40] or (lines + (test.get("stderr") or "").splitlines())[-20:]


def tally(logs):
    total = [0, 0, 0]
    for log in logs:
        part = [0, 0, 0]
        try:
            with open(log, encoding="utf-8") as file:
                tests = [json.loads(line) for line in file]
        except OSError as error:
            print(f"{log}: {error.strerror}; counted as one failure")
            tests = []
        if not tests:
            part[1] += 1
        for test in tests:
            result = cases(test)
            part = [a + b for a, b in zip(part, result)]
            if result[1]:
                print(f"FAILED {test['name']} ({test['result']}): {result[1]}")
                print("\n".join("    " + line[:300] for line in reasons(test)))
        print(f"{log}: {part[0]} passed, {part[1]} failed, {part[2]} skipped")
        total = [a + b for a, b in zip(total, part)]
    print(f"{total[0]} passed, {total[1]} failed")
    return 1 if total[1] else 0


def tests_of(folder):
    return json.loads(subprocess.check_output(["meson", "introspect", "--tests", folder]))


def suites(folder):
    print("\n".join(sorted({suite.split(":")[-1] for test in tests_of(folder) for suite in test["suite"]})))
    return 0


def stress(folder):
    for test in tests_of(folder):
        program = test["cmd"][0]
        if os.path.basename(program).startswith("stress_"):
            print(os.path.relpath(program, folder), test["name"], sep="\t")
    return 0


if __name__ == "__main__":
    if len(sys.argv) == 3 and sys.argv[1] == "--stress":
        sys.exit(stress(sys.argv[2]))
    if len(sys.argv) == 3 and sys.argv[1] == "--suites":
        sys.exit(suites(sys.argv[2]))
    sys.exit(tally(sys.argv[1:]))
