#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""tally.py - adds up the test logs of several builds; its last line is "N passed, N failed".

tally.py [--keep DIR] LOG...    count cases in meson's testlog.json files: TAP lines of Criterion programs, or whole
                                programs; one that failed is unsteady if again.json beside the log says that it was
                                right when it ran alone; more than UNSTEADY_ALLOWED of these count as failed. DIR/failed
                                names what failed, for `./dev test --again`, and DIR has the output of unsteady programs
tally.py --failed LOG           print the names of programs that failed, if they are so few that they may be unsteady
tally.py --watch LIST           read what `meson test` prints, and print a line for each suite that has ended; LIST is a
                                file with what its --list prints
tally.py --suites FOLDER        print the suites of a build folder, one for each room
tally.py --targets FOLDER SUITE...
                                print the files that the tests of some suites need; a suite that begins with '-' is left
                                out, of all others; `installed` stands for the files that are installed
"""
import collections
import json
import os
import re
import subprocess
import sys
import time

UNSTEADY_MOST = 8  # programs of one build that are run again; more failures than that are no accident
UNSTEADY_ALLOWED = 2  # programs of all builds; whoever sees one mends its cause before anything else


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
        print(f"{log}: {error.strerror}; counted as one failure", file=sys.stderr)
        return []


def name_of(test):
    """Its name without the suites that meson writes before it."""
    return test["name"].split(" / ")[-1]


def failed_tests(tests):
    """Names of programs that failed; none if they are too many."""
    failed = [name_of(test) for test in tests if cases(test)[1]]
    return [] if len(failed) > UNSTEADY_MOST else failed


def steadied(log):
    """Names of programs that were right when they ran alone, after `log` was written, with that result."""
    log = os.path.join(os.path.dirname(log), "again.json")
    tests = read_log(log) if os.path.exists(log) else []
    return {name_of(test): test for test in tests if not cases(test)[1]}


def first_assertion(test):
    """The first case that failed, and the line that says what was not as it should be."""
    lines = [line.strip(" #") for line in reasons(test) if line.strip(" #")] or ["it said nothing"]
    case = re.match(r"not ok(?: \d+)?(?: - )? *(.*)", lines[0])
    rest = lines[1:] if case else lines
    why = [line for line in rest if re.search(r"assert|AddressSanitizer|runtime error|Error:|expected", line, re.I)]
    words = ([case[1]] if case else []) + (why or rest)[:1]
    return ": ".join(words)[:300]


class Tally:
    """Of the logs of all builds."""

    def __init__(self):
        self.passed = self.failures = 0
        self.failed, self.unsteady = [], []  # (folder, test)

    def add(self, log):
        tests = read_log(log)
        again = steadied(log)
        folder = os.path.relpath(log).split(os.sep)[0]
        part = [0, 0, 0] if tests else [0, 1, 0]
        unsteady = 0
        for test in tests:
            result = cases(test)
            if result[1]:
                known = name_of(test) in again
                word = "UNSTEADY, alone it is right:" if known else "FAILED"
                print(f"{word} {test['name']} ({test['result']}): {result[1]}")
                print("\n".join("    " + line[:2000] for line in reasons(test)))
                (self.unsteady if known else self.failed).append((folder, test))
                unsteady += known
                result = cases(again[name_of(test)]) if known else result
            part = [a + b for a, b in zip(part, result)]
        print(f"{log}: {part[0]} passed, {part[1]} failed, {part[2]} skipped, {unsteady} programs unsteady")
        self.passed += part[0]
        self.failures += part[1]

    def end(self):
        """The last lines: what failed, why, and how to repeat it."""
        for word, tests in (("failed", self.failed), ("unsteady", self.unsteady)):
            for folder, test in tests:
                print(f"{word}: {name_of(test)}: {first_assertion(test)}")
                print(f"    ./dev test {folder} {name_of(test)}")
        if len(self.unsteady) > UNSTEADY_ALLOWED:
            print(f"{len(self.unsteady)} programs were unsteady: more than {UNSTEADY_ALLOWED} count as failed")
            self.failures += len(self.unsteady)
        print(f"{self.passed} passed, {self.failures} failed")
        return 1 if self.failures else 0

    def keep(self, folder):
        with open(os.path.join(folder, "failed"), "w", encoding="utf-8") as file:
            file.writelines(f"{build} {name_of(test)}\n" for build, test in self.failed + self.unsteady)
        for build, test in self.unsteady:
            with open(os.path.join(folder, f"unsteady-{build}-{name_of(test)}.txt"), "w", encoding="utf-8") as file:
                file.write((test.get("stdout") or "") + (test.get("stderr") or ""))


def tally(logs, keep=None):
    total = Tally()
    for log in logs:
        total.add(log)
    if keep:
        total.keep(keep)
    return total.end()


# ---- While tests run -----------------------------------------------------------------------------------------------

def watch(listed, lines=sys.stdin):
    """`listed`: what `meson test --list` prints, to know when a suite is over."""
    begin = time.monotonic()
    with open(listed, encoding="utf-8") as file:
        left = collections.Counter(found[1] for line in file if (found := re.match(r"(?:\S+:)?(\w+)\S* / ", line)))
    programs, seconds = collections.Counter(left), collections.Counter()
    for line in lines:
        found = re.match(r" *(\d+)/(\d+) (?:\S+:)?(\w+)\S* / (\S+) +([A-Z]+(?: [A-Z]+)?) +([\d.]+)s", line)
        if not found:
            continue
        done, of, suite, name, result, took = found.groups()
        left[suite] -= 1
        seconds[suite] += float(took)
        if result not in ("OK", "SKIP", "EXPECTEDFAIL"):
            print(f"   {name}: {result} after {took} s", flush=True)
        if not left[suite]:
            spent = time.monotonic() - begin
            print(f"   {suite}: {programs[suite]} programs, {seconds[suite]:.0f} s; {done} of {of} are done in "
                  f"{spent:.0f} s, about {spent / int(done) * (int(of) - int(done)):.0f} s are left", flush=True)
    return 0


def tests_of(folder):
    return json.loads(subprocess.check_output(["meson", "introspect", "--tests", folder]))


def suites_of(test):
    return {suite.split(":")[-1] for suite in test["suite"]}


def suites(folder):
    print("\n".join(sorted(set().union(*map(suites_of, tests_of(folder))))))
    return 0


def targets(folder, *wanted):
    known = json.loads(subprocess.check_output(["meson", "introspect", "--targets", folder]))
    files = {target["id"]: target["filename"] for target in known}
    without = {suite[1:] for suite in wanted if suite.startswith("-")}
    needed = {target for test in tests_of(folder) for target in test["depends"]
              if suites_of(test) & set(wanted) or without and not suites_of(test) & without}
    needed |= {target["id"] for target in known if target["installed"] and "installed" in wanted}
    print("\n".join(sorted({os.path.relpath(file, os.path.abspath(folder)) for target in needed
                            for file in files[target]})))
    return 0


def print_failed(log):
    print("".join(name + "\n" for name in failed_tests(read_log(log))), end="")
    return 0


def main(arguments):
    words = {"--watch": watch, "--suites": suites, "--targets": targets, "--failed": print_failed}
    if arguments and arguments[0] in words:
        return words[arguments[0]](*arguments[1:])
    if arguments[:1] == ["--keep"]:
        return tally(arguments[2:], arguments[1])
    return tally(arguments)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
