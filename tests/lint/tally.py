#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""tally.py - adds up the test logs of several builds; its last line is "N passed, N failed".

tally.py LOG...           count cases in meson's testlog.json files: TAP lines of Criterion programs, else programs;
                          a program that failed is unsteady, not failed, if again.json beside the log says that it
                          passed AGAIN times alone
tally.py --failed LOG     print the names of the programs that failed, if they are so few that they may be unsteady
tally.py --suites FOLDER  print the suites of a build folder, one for each room
tally.py --stress FOLDER  print target and test name of the stress programs of a build folder
"""
import json
import os
import re
import subprocess
import sys

AGAIN = 3  # runs alone that a program has to pass after a failure beside others
UNSTEADY_MOST = 8  # programs of one build; more than that is no accident


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


def read_log(log):
    try:
        with open(log, encoding="utf-8") as file:
            return [json.loads(line) for line in file]
    except OSError as error:
        print(f"{log}: {error.strerror}; counted as one failure")
        return []


def name_of(test):
    """Its name without the suites that meson writes before it."""
    return test["name"].split(" / ")[-1]


def failed_tests(tests):
    """Names of programs that failed; none if they are too many."""
    failed = [name_of(test) for test in tests if cases(test)[1]]
    return [] if len(failed) > UNSTEADY_MOST else failed


def steadied(log):
    """Names of programs that passed all their runs alone, after `log` was written, with their last result."""
    log = os.path.join(os.path.dirname(log), "again.json")
    runs = {}
    for test in read_log(log) if os.path.exists(log) else []:
        runs.setdefault(name_of(test), []).append(test)
    return {name: tests[-1] for name, tests in runs.items()
            if len(tests) == AGAIN and not any(cases(test)[1] for test in tests)}


def tally_log(log):
    """(passed, failed, skipped) of one build, and how many of its programs were unsteady."""
    tests = read_log(log)
    again = steadied(log)
    part = [0, 0, 0] if tests else [0, 1, 0]
    unsteady = 0
    for test in tests:
        result = cases(test)
        if result[1]:
            known = name_of(test) in again
            word = f"UNSTEADY, {AGAIN} of {AGAIN} alone are right:" if known else "FAILED"
            print(f"{word} {test['name']} ({test['result']}): {result[1]}")
            print("\n".join("    " + line[:2000] for line in reasons(test)))
            unsteady += known
            result = cases(again[name_of(test)]) if known else result
        part = [a + b for a, b in zip(part, result)]
    print(f"{log}: {part[0]} passed, {part[1]} failed, {part[2]} skipped, {unsteady} programs unsteady")
    return part, unsteady


def tally(logs):
    parts = [tally_log(log) for log in logs]
    passed, failed, _ = (sum(numbers) for numbers in zip(*(part for part, _ in parts)))
    unsteady = sum(number for _, number in parts)
    if unsteady:
        print(f"{unsteady} programs failed once, and were right {AGAIN} times alone: each is a defect, or its test is")
    print(f"{passed} passed, {failed} failed")
    return 1 if failed else 0


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
    if len(sys.argv) == 3 and sys.argv[1] == "--failed":
        print("\n".join(failed_tests(read_log(sys.argv[2]))))
        sys.exit(0)
    if len(sys.argv) == 3 and sys.argv[1] == "--stress":
        sys.exit(stress(sys.argv[2]))
    if len(sys.argv) == 3 and sys.argv[1] == "--suites":
        sys.exit(suites(sys.argv[2]))
    sys.exit(tally(sys.argv[1:]))
