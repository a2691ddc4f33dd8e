#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""check.py - is the manual complete? Usage: check.py ROOT

Every option in the tables of cli/COMMAND.c, cli/COMMAND/ and COMMAND/options.c is in rondo-COMMAND.1 and the other
way round, every setting of base/setting.c and every page of a command is in rondo.1, every public function is in
rondo.3 or rondo_ddp.3, and mandoc, where it is installed, has no complaint.
"""
import pathlib
import re
import shutil
import subprocess
import sys

root = pathlib.Path(sys.argv[1])
complaints = []


def same(what, wanted, found):
    complaints.extend(f"{what}: {name} is missing" for name in sorted(wanted - found))
    complaints.extend(f"{what}: there is no {name}" for name in sorted(found - wanted))


for page in sorted((root / "docs" / "man").glob("rondo-*.1")):
    command = page.stem.removeprefix("rondo-")
    sources = [root / "cli" / f"{command}.c", *(root / "cli" / command).rglob("*.c"),
               root / command / "options.c"]  # of a command with a room of its own
    text = "\n".join(source.read_text() for source in sources if source.exists())
    if not text:
        complaints.append(f"{page.name}: there is no command {command}")
        continue
    options = set(re.findall(r'\{"([a-z][a-z-]+)",\s*(?:\'\w\'|[A-Z_]+|0),\s*(?:"[^"]*"|NULL|0),', text))
    items = "\n".join(re.findall(r"^\.It (Fl .*)$", page.read_text(), re.M))
    same(page.name, options, set(re.findall(r"Fl -([a-z][a-z-]+)", items)))

settings = set(re.findall(r'\{"(RONDO_\w+)"', (root / "base" / "setting.c").read_text()))
same("rondo.1", settings, set(re.findall(r"RONDO_\w+", (root / "docs" / "man" / "rondo.1").read_text())))

pages = {page.stem for page in (root / "docs" / "man").glob("rondo-*.1")}
see_also = (root / "docs" / "man" / "rondo.1").read_text().split("\n.Sh SEE ALSO\n")[1]
same("rondo.1, SEE ALSO", pages, set(re.findall(r"^\.Xr (rondo-\w+) 1", see_also, re.M)))

for page, headers in {"rondo.3": ["rondo.h", "bindings.h", "collectives.h", "p2p.h"],
                      "rondo_ddp.3": ["ddp.h", "elastic.h", "train.h"]}.items():
    text = "".join((root / "include" / "rondo" / header).read_text() for header in headers)
    named = re.findall(r"^(?:\.Fn|\.Fo|\.Pq until Fn) (rondo_\w+)", (root / "docs" / "man" / page).read_text(), re.M)
    same(page, set(re.findall(r"RONDO_API[^;(]*?(rondo_\w+)\(", text)), set(named))

if shutil.which("mandoc"):
    for page in sorted((root / "docs" / "man").glob("rondo*.[13]")):
        lint = subprocess.run(["mandoc", "-Tlint", "-Wwarning", str(page)], capture_output=True, text=True)
        complaints.extend(line for line in lint.stdout.splitlines() if "outdated" not in line)

print("\n".join(complaints) or "the manual is complete")
sys.exit(1 if complaints else 0)
