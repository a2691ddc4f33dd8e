#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""readme.py - is README.md true? Runs its commands, compares its program with the example, follows its links.

readme.py ROOT BUILD: runs every line of the blocks marked sh, with the build's command and library, in a scratch
folder; every ./dev word must exist; the block marked c must be examples/01_all_reduce.c; linked files must exist.
"""
import os
import re
import subprocess
import sys
import tempfile

ROOT, BUILD = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2])


def blocks(text, language):
    return re.findall(r"^```%s\n(.*?)^```" % language, text, re.M | re.S)


def environment():
    library = os.path.join(BUILD, "include")
    return {**os.environ, "PATH": os.path.join(BUILD, "cli") + ":" + os.environ["PATH"], "LD_LIBRARY_PATH": library,
            "PKG_CONFIG_PATH": os.path.join(BUILD, "meson-uninstalled")}


def run(command, folder):
    result = subprocess.run(["bash", "-c", command], cwd=folder, env=environment(), capture_output=True, text=True,
                            stdin=subprocess.DEVNULL, timeout=1200)
    return [] if result.returncode == 0 else [f"{command}: status {result.returncode}"] + \
        (result.stdout + result.stderr).splitlines()[-15:]


def check_commands(text):
    complaints = {}
    with tempfile.TemporaryDirectory() as folder:
        os.symlink(os.path.join(ROOT, "examples"), os.path.join(folder, "examples"))
        for block in blocks(text, "sh"):
            for command in block.splitlines():
                complaints["runs: " + command] = run(command, folder)
    return complaints


def check_program(text):
    with open(os.path.join(ROOT, "examples/01_all_reduce.c"), encoding="utf-8") as file:
        example = file.read().split("\n", 1)[1]
    return [] if blocks(text, "c") == [example] else ["the program differs from examples/01_all_reduce.c"]


def check_words(text):
    words = set()
    for path in ("dev", "tests/words.sh"):
        with open(os.path.join(ROOT, path), encoding="utf-8") as file:
            words |= set(re.findall(r"^word_(\w+)\(\)", file.read(), re.M))
    return [f"./dev {word} does not exist" for word in re.findall(r"\./dev (\w+)", text) if word not in words]


def check_links(text):
    links = [link for link in re.findall(r"\]\(([^)]+)\)", text) if not link.startswith("http")]
    return [f"{link} does not exist" for link in links
            if not os.path.exists(os.path.join(ROOT, link))]


def table_row(page, heading, first):
    """The cells of the row that begins with `first`, under a heading."""
    with open(os.path.join(ROOT, page), encoding="utf-8") as file:
        section = file.read().split(f"\n## {heading}\n")[1].split("\n## ")[0]
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in section.splitlines() if line.startswith("|")]
    names, row = rows[0], next(row for row in rows if row[0] == first)
    return dict(zip(names, row))


def check_figures(text):
    """Figures of the training are those of docs/performance.md."""
    measured = table_row("docs/performance.md", "Training", "2")
    claimed = re.search(r"two ranks are ([\d.]+) times as fast as one, and\s+(\d+ %) of the communication is hidden",
                        text)
    if not claimed:
        return ["there is no sentence on the speed of two ranks"]
    wanted = (measured["speed-up"], measured["communication hidden"])
    return [] if claimed.groups() == wanted else [f"README.md has {claimed.groups()}, docs/performance.md {wanted}"]


def check_algorithms():
    listing = subprocess.run(["rondo", "explain", "--list"], env=environment(), capture_output=True, text=True,
                             check=False).stdout
    with open(os.path.join(ROOT, "tests/api/values/matrix.c"), encoding="utf-8") as file:
        matrix = file.read()
    names = re.findall(r"^(\w+)", listing, re.M)
    folder = os.path.join(ROOT, "docs/algorithms")
    pages = ""
    for page in sorted(os.listdir(folder)):
        with open(os.path.join(folder, page), encoding="utf-8") as file:
            pages += file.read() if page.endswith(".md") else ""
    complaints = [] if names else ["rondo explain --list names no algorithm"]
    for name in names:
        # A relative of another algorithm may be explained on the page of that one.
        if not os.path.exists(os.path.join(folder, name + ".md")) and f"`{name}` " not in pages:
            complaints.append(f"{name} has no page in docs/algorithms, and no other says what it is")
        if f'"{name}"' not in matrix:
            complaints.append(f"tests/api/values/matrix.c does not know {name}")
    return complaints


def main():
    with open(os.path.join(ROOT, "README.md"), encoding="utf-8") as file:
        text = file.read()
    checks = {"the program is the first example": check_program(text), "every ./dev word exists": check_words(text),
              "every link leads to a file": check_links(text),
              "figures are those of docs/performance.md": check_figures(text),
              "every algorithm has a page and is in the test matrix": check_algorithms(), **check_commands(text)}
    print(f"1..{len(checks)}")
    for number, (name, complaints) in enumerate(checks.items(), 1):
        print(f"{'not ok' if complaints else 'ok'} {number} - {name.replace('#', '')}")
        for complaint in complaints:
            print("# " + complaint)
    return 1 if any(checks.values()) else 0


if __name__ == "__main__":
    sys.exit(main())
