#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""course.py - a lesson of docs/course does what it says. Usage: course.py LESSON SOURCE BUILD; prints TAP.

Its blocks run from top to bottom in one empty folder that has the scripts of the course:
  python, json, c with title="F"   the file F is written
  sh                               every line runs and succeeds
  console                          every line after "$ " runs and prints what follows; "..." stands for any lines
  text                             for people: figures of a machine, and drawings
With --write the outputs of console blocks that have no "..." are put into the page anew.
"""
import functools
import os
import re
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import cases  # pylint: disable=wrong-import-position

ARGUMENTS = [argument for argument in sys.argv[1:] if argument != "--write"]
SOURCE, BUILD = (os.path.abspath(path) for path in ARGUMENTS[1:])
COURSE = os.path.join(SOURCE, "docs", "course")
PAGE = os.path.join(COURSE, ARGUMENTS[0])
BLOCK = re.compile(r'^```(\w+)(?: title="([^"]+)")?\n(.*?)^```$', re.M | re.S)
KNOWN = {"python", "json", "c", "sh", "console", "text"}


def environment():
    library = os.path.join(BUILD, "include")
    return {**cases.clean_environment(), "PATH": os.path.join(BUILD, "cli") + ":" + os.environ["PATH"],
            "LD_LIBRARY_PATH": library, "PKG_CONFIG_PATH": os.path.join(BUILD, "meson-uninstalled"),
            "TERM": "dumb", "NO_COLOR": "1", "LC_ALL": "C.UTF-8"}


def prepare(folder):
    for name in os.listdir(COURSE):
        if name.endswith(".py"):
            shutil.copy(os.path.join(COURSE, name), folder)
    os.symlink(os.path.join(SOURCE, "examples"), os.path.join(folder, "examples"))


def shell(command, folder):
    done = subprocess.run(["bash", "-c", command], cwd=folder, env=environment(), stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True, stdin=subprocess.DEVNULL, timeout=600, check=False)
    return done.returncode, [line.rstrip() for line in done.stdout.rstrip().splitlines()]


def write_file(folder, name, text):
    with open(os.path.join(folder, name), "w", encoding="utf-8") as file:
        file.write(text)


def check_sh(folder, text):
    for command in text.splitlines():
        status, lines = shell(command, folder)
        assert status == 0, "\n".join([f"{command}: status {status}"] + lines[-15:])


def commands_of(text):
    """(command, lines it prints) of a console block."""
    pairs = []
    for line in text.splitlines():
        if line.startswith("$ "):
            pairs.append((line[2:], []))
        else:
            pairs[-1][1].append(line.rstrip())
    return pairs


def like(wanted):
    """The pattern of lines among which "..." are any."""
    return "".join(r"(?:.*\n)*?" if line == "..." else re.escape(line) + r"\n" for line in wanted)


def check_console(folder, text):
    for command, wanted in commands_of(text):
        _, lines = shell(command, folder)
        printed = "".join(line + "\n" for line in lines)
        assert re.fullmatch(like(wanted), printed), f"$ {command}\n{printed}is printed, the page has\n" + \
            "\n".join(wanted)


def steps_of(text, folder):
    """(name, function) of each block."""
    for kind, title, body in BLOCK.findall(text):
        assert kind in KNOWN, f"a block of {kind}"
        if title:
            yield f"{title} is written", functools.partial(write_file, folder, title, body)
        elif kind == "sh":
            yield body.splitlines()[0], functools.partial(check_sh, folder, body)
        elif kind == "console":
            yield body.splitlines()[0].replace("#", ""), functools.partial(check_console, folder, body)


def graded(text):
    """A lesson has at least a plan that is proved, and a wrong one that is refused."""
    grades = [lines for kind, _, body in BLOCK.findall(text) if kind == "console"
              for command, lines in commands_of(body) if "rondo verify --plan" in command]
    assert any("proved for" in line for lines in grades for line in lines), "no exercise is graded as right"
    assert any("is wrong" in line for lines in grades for line in lines), "no wrong plan is refused"


def write(text, folder):
    def anew(match):
        kind, title, body = match.groups()
        if title:
            write_file(folder, title, body)
        elif kind == "sh":
            check_sh(folder, body)
        elif kind == "console":
            new = ""
            for command, wanted in commands_of(body):
                lines = wanted if "..." in wanted else shell(command, folder)[1]
                new += "".join(line + "\n" for line in ["$ " + command] + lines)
            return match.group(0).replace(body, new)
        return match.group(0)
    with open(PAGE, "w", encoding="utf-8") as file:
        file.write(BLOCK.sub(anew, text))


def main():
    with open(PAGE, encoding="utf-8") as file:
        text = file.read()
    with tempfile.TemporaryDirectory(dir=cases.scratch_place()) as folder:
        prepare(folder)
        if "--write" in sys.argv:
            write(text, folder)
            return 0
        lesson = [("exercises are graded", functools.partial(graded, text))] if re.match(r"\d", ARGUMENTS[0]) else []
        return cases.run(lesson + list(steps_of(text, folder)))


if __name__ == "__main__":
    sys.exit(main())
