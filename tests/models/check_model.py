#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""check_model.py - does a Spin model hold, and do its mutants fail? TAP, one case per line of the model's table.

check_model.py CC MODEL.pml

The model's opening comment has a table of cases, one a line, with the options of spin's preprocessor:

    holds: -DM=8                  every state that can be reached is visited, and no assertion fails anywhere
    fails: -DM=8 -DNO_SWEEP       a mutant, which lacks the part that the option names: an error must be found

Deadlocks and failed assertions are errors, and with "pan: -a" in the table so are cycles that break a never claim.
A search that was cut off (depth, memory) proves nothing, so it is "not ok" either way. Without spin it is skipped.
"""
import os
import re
import shutil
import subprocess
import sys
import tempfile

DEPTH = 2000000  # steps of one run; a search that gets there says so
TIMEOUT = 100    # seconds of one command


def table(path):
    """The cases ("holds" or "fails", options), and the options of pan."""
    with open(path, encoding="utf-8") as file:
        comment = file.read().split("*/\n", 2)[1]
    cases = re.findall(r"^ \* +(holds|fails):((?: +-D\w+(?:=\w+)?)*)", comment, re.M)
    options = re.findall(r"^ \* +pan:((?: +-\w+)+)", comment, re.M)
    return [(verdict, defines.split()) for verdict, defines in cases], [o for line in options for o in line.split()]


def run(command, folder):
    result = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=TIMEOUT,
                            stdin=subprocess.DEVNULL)
    return result.returncode, result.stdout + result.stderr


def search(cc, model, defines, options):
    """(errors found, or None if the search is no proof; what the tools said)"""
    claims = "-a" in options
    with tempfile.TemporaryDirectory() as folder:
        # To compile the search takes longer than it runs: TCC takes a fiftieth of the time, and searches are as quick.
        compiler = ["tcc"] if shutil.which("tcc") else [*cc, "-O0"]
        for command in (["spin", *defines, "-a", model],
                        [*compiler, "-w", *([] if claims else ["-DSAFETY"]), "-o", "pan", "pan.c"]):
            status, said = run(command, folder)
            if status:
                return None, said
        _, said = run(["./pan", f"-m{DEPTH}", *options], folder)
    found = re.search(r"^State-vector .* errors: (\d+)", said, re.M)
    errors = int(found.group(1)) if found else None
    cut_off = re.search(r"max search depth too small|out of memory|memory limit|truncated", said)
    return (None if cut_off or (errors == 0 and "Search not completed" in said) else errors), said


def states_of(said):
    """How many states a search has visited, for people."""
    found = re.search(r"^ *([\d.e+]+) states, stored", said, re.M)
    return f"{float(found.group(1)):.0f} states" if found else "no states"


def check(cc, model, case, options):
    """Complaints about one case, none if it is as the table says; and what was explored."""
    verdict, defines = case
    try:
        errors, said = search(cc, model, defines, options)
    except subprocess.TimeoutExpired as error:
        errors, said = None, f"{error.cmd[0]} took longer than {TIMEOUT} s"
    if errors is not None and (errors > 0) == (verdict == "fails"):
        return [], states_of(said)
    wrong = "the search is no proof" if errors is None else f"{errors} errors were found"
    return [wrong] + said.strip().splitlines()[:20], states_of(said)


def main():
    cc, model = sys.argv[1:-1], os.path.abspath(sys.argv[-1])
    name = os.path.splitext(os.path.basename(model))[0]
    if not shutil.which("spin"):
        print(f"1..0 # SKIP spin is not installed, so the model {name} is not checked; ./dev deps test installs it")
        return 0
    cases, options = table(model)
    verdicts = {verdict for verdict, _ in cases}
    print(f"1..{len(cases) + 1}")
    # A model without a mutant that fails has not shown that it can fail.
    print("ok" if verdicts == {"holds", "fails"} else "not ok", f"1 - {name} has cases that hold, and mutants")
    failed = verdicts != {"holds", "fails"}
    for number, case in enumerate(cases, 2):
        complaints, explored = check(cc, model, case, options)
        failed |= bool(complaints)
        print("not ok" if complaints else "ok", f"{number} - {name} {case[0]}: {' '.join(case[1])} # {explored}")
        for line in complaints:
            print("  # " + line)
    return 1 if failed else 0


sys.exit(main())
