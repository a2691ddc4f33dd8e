#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""tutorial.py - a page of docs/ shows what is true: its diffs are those of the programs in examples/, and its outputs
are what they print. Usage: tutorial.py PAGE SOURCE BUILD RONDO; prints TAP. With --write the page gets both anew."""
import difflib
import functools
import os
import re
import subprocess
import sys

import cases

ARGUMENTS = [argument for argument in sys.argv[1:] if argument != "--write"]
SOURCE, BUILD, RONDO = (os.path.abspath(path) for path in ARGUMENTS[1:])
PAGE = os.path.join(SOURCE, "docs", ARGUMENTS[0])
BLOCK = re.compile(r"^```(diff|console)([^\n]*)\n(.*?)^```$", re.M | re.S)
# What differs from run to run: numbers of processes, and which rank was the first to notice.
CHANGING = re.compile(r"(process|while rank) \d+")
FAILURE = re.compile(r"\w+\.c:\d+: ")  # what a RONDO_CHECK() says; the page shows it on purpose
FOLDER = re.compile(rf"^\S*/(?={FAILURE.pattern})", re.M)  # of its source


def source_lines(name):
    with open(os.path.join(SOURCE, "examples", name), encoding="utf-8") as file:
        return file.readlines()


def diff_of(before, after):
    lines = list(difflib.unified_diff(source_lines(before), source_lines(after), n=2))[2:]
    return "".join("@@\n" if line.startswith("@@") else line.rstrip() + "\n" for line in lines)


def find(program):
    for folder in ("examples/example_", "tests/ddp/"):
        path = os.path.join(BUILD, folder + program)
        if os.path.exists(path):
            return path
    raise AssertionError(f"there is no program {program}")


def output_of(command):
    """The lines of a command as the page has it, and the status."""
    words = [find(word[2:]) if word.startswith("./") else word for word in command.split()]
    if words[0] == "rondo":
        words[0] = RONDO
    clean = cases.clean_environment()
    done = subprocess.run(words, capture_output=True, text=True, timeout=60, env=clean, check=False)
    lines = [CHANGING.sub(r"\1 N", line) for line in FOLDER.sub("", done.stdout + done.stderr).splitlines()
             if not line.startswith("rondo run:")]
    return lines, done.returncode


def check_diff(names, shown):
    assert shown == diff_of(*names.split()), f"the diff of {names} is another one: tutorial.py --write"


def check_console(shown):
    command, *wanted = shown.splitlines()
    lines, status = output_of(command.removeprefix("$ "))
    if any(FAILURE.match(line) for line in wanted):  # the first rank to fail ends the others, who then may say nothing
        assert status and lines and set(lines) <= set(wanted), f"status {status}: {lines}"
    else:
        assert not status and sorted(lines) == sorted(wanted), f"status {status}: {lines}"


def in_order(lines, status):
    return sorted(set(lines) if status else lines, key=lambda line: re.sub(r"^epoch", "0", line))


def write():
    def anew(match):
        kind, names, shown = match.groups()
        if kind == "diff":
            shown = diff_of(*names.split())
        else:
            command = shown.splitlines()[0]
            shown = "\n".join([command] + in_order(*output_of(command.removeprefix("$ ")))) + "\n"
        return f"```{kind}{names}\n{shown}```"

    with open(PAGE, encoding="utf-8") as file:
        text = file.read()
    with open(PAGE, "w", encoding="utf-8") as file:
        file.write(BLOCK.sub(anew, text))


def main():
    if "--write" in sys.argv:
        write()
        return 0
    with open(PAGE, encoding="utf-8") as file:
        blocks = BLOCK.findall(file.read())
    return cases.run([(names.strip(), functools.partial(check_diff, names, shown)) if kind == "diff" else
                      (shown.splitlines()[0], functools.partial(check_console, shown))
                      for kind, names, shown in blocks])


if __name__ == "__main__":
    sys.exit(main())
