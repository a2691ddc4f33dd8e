#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""table.py - is the table of functions in docs/nccl.md true?

table.py LIBRARY DOCUMENT TEST_SOURCE...: each function that the library exports as nccl* is in exactly one row, no row
names another one, and each test that a row names exists. A row of functions of the device names no exported one.
"""
import re
import subprocess
import sys


def exported(library):
    lines = subprocess.run(["nm", "-D", "--defined-only", library], capture_output=True, text=True,
                           check=True).stdout.splitlines()
    return {name for name in (line.split()[-1] for line in lines) if name.startswith("nccl")}


def existing_tests(sources):
    """suite/name of every test of Criterion in these files."""
    tests = set()
    for source in sources:
        with open(source, encoding="utf-8") as file:
            tests |= {"/".join(found) for found in re.findall(r"^Test\((\w+), (\w+)", file.read(), re.M)}
    return tests


def rows(document, heading):
    """The rows of the tables under a heading, as lists of cells."""
    with open(document, encoding="utf-8") as file:
        text = file.read()
    if f"\n## {heading}\n" not in text:
        sys.exit(f"table: there is no part \"{heading}\" in {document}")
    part = re.split(r"^## ", text.split(f"\n## {heading}\n")[1], flags=re.M)[0]
    lines = [line for line in part.splitlines() if line.startswith("|") and not set(line) <= set("|- ")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]


def functions_of(cell):
    return re.findall(r"`(nccl[A-Z]\w*)`", cell)


def main():
    library, document, *sources = sys.argv[1:]
    names, tests = exported(library), existing_tests(sources)
    wrong, seen = [], []
    for row in rows(document, "Every function"):
        functions = functions_of(row[0])
        if not functions:
            continue
        seen += functions
        shown = re.findall(r"`(\w+/\w+)`", row[-1])
        if len(row) != 3 or not shown:
            wrong.append(f"the row of {functions[0]} has {len(row)} cells and names {len(shown)} tests")
        wrong += [f"{functions[0]}: there is no test {test}" for test in shown if test not in tests]
    wrong += [f"{name} is in {seen.count(name)} rows" for name in sorted(set(seen)) if seen.count(name) > 1]
    wrong += [f"{name} is in the table and not exported" for name in sorted(set(seen) - names)]
    wrong += [f"{name} is exported and not in the table" for name in sorted(names - set(seen))]
    device = [name for row in rows(document, "The device interface") for name in functions_of(row[0])]
    wrong += [f"{name} is said to be of the device, and is exported" for name in sorted(names & set(device))]
    print("\n".join(wrong))
    print(f"table: {len(seen)} functions of hosts, {len(device)} names of devices, {len(wrong)} complaints")
    return 1 if wrong or len(seen) < 80 or len(device) < 5 else 0


if __name__ == "__main__":
    sys.exit(main())
