#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""house.py ROOT... - what a tree is made of, one column for each: files and lines by room, and what lint.py refuses.

All trees are measured with the rules of this one, so the table in docs/design.md can be made again:
git worktree add /tmp/before c9dbac6 && python3 tests/lint/house.py /tmp/before .
"""
import os
import re
import subprocess
import sys

import lint
import words

PARTS = ("include", "base", "topology", "kernels", "transport", "plan", "collectives", "cuda", "comm", "ddp", "compat",
         "cli", "bench", "train", "examples", "standin", "tests")
LIBRARY = ("include", "base", "topology", "kernels", "transport", "plan", "collectives", "cuda", "comm")


def room_of(path):
    """tests/*_standin was what standin/ is now."""
    return "standin" if re.match(r"tests/\w+_standin/", path) else path.split("/", 1)[0]


def complaints_of(check):
    found = []
    check(lambda *complaint: found.append(complaint))
    return len(found)


def measure(root):
    os.chdir(root)
    listing = subprocess.run(["git", "ls-files"], capture_output=True, text=True, check=True).stdout.splitlines()
    texts = {}
    for path in (path for path in listing if path.endswith(lint.SOURCES)):
        with open(path, encoding="utf-8") as file:
            texts[path] = file.read()
    lines = {path: text.count("\n") for path, text in texts.items()}
    folders = {}
    for path in texts:
        folders.setdefault(os.path.dirname(path), []).append(path)
    largest = max(folders, key=lambda folder: len(folders[folder]))
    rows = {room: (sum(room_of(p) == room for p in texts), sum(n for p, n in lines.items() if room_of(p) == room))
            for room in PARTS}
    table = {f"`{room}/`": f"{files} / {count}" for room, (files, count) in rows.items()}
    table["library (`include` to `comm`), lines"] = sum(rows[room][1] for room in LIBRARY)
    table["all but tests and stand-in, lines"] = sum(rows[room][1] for room in PARTS[:-2])
    table["largest folder, files"] = f"{len(folders[largest])} (`{largest}/`)"
    table["folders of more than 30 files"] = sum(len(paths) > lint.FOLDER_FILES for paths in folders.values())
    table["longest file, lines"] = max(lines.values())
    table["lines with a word off the glossary"] = complaints_of(
        lambda complain: [words.check_gone(path, text, complain) for path, text in texts.items()])
    table["comments that do not stand alone"] = sum(
        words.is_elliptical(said, below) for text in texts.values() for _, said, below in words.comments_above(text))
    codes = {path: lint.code_of(text) for path, text in texts.items()}
    lint.complaints.clear()
    lint.check_circles(codes)
    table["circles of folders"] = len(lint.complaints)
    return table


def main():
    tables = [measure(os.path.abspath(root)) for root in sys.argv[1:]]
    for name in tables[0]:
        print("| " + " | ".join([name] + [str(table[name]) for table in tables]) + " |")


if __name__ == "__main__":
    main()
