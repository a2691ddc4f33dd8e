#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""abi.py - is the binary interface of librondo.so the one that include/librondo.abi describes?

abi.py ROOT LIBRARY: compares, by abidiff of abigail-tools; abi.py --keep ROOT LIBRARY: writes the description anew.
"""
import os
import shutil
import subprocess
import sys

WRITE = ["abidw", "--exported-interfaces-only", "--drop-private-types", "--no-corpus-path", "--no-comp-dir-path",
         "--no-show-locs", "--no-elf-needed", "--type-id-style", "hash", "--headers-dir"]
COMPARE = ["abidiff", "--exported-interfaces-only", "--drop-private-types", "--no-show-locs", "--headers-dir2"]
BROKEN = 8  # abidiff's bits: 1 and 2 are errors of its own, 4 a change, 8 one that breaks programs
REMEDY = ("was it wanted? Then tell users in CHANGELOG.md, give new names a version of their own in "
          "include/librondo.map once 0.1 is released, and run ./dev abi.")


def main():
    keep = sys.argv[1] == "--keep"
    root, library = sys.argv[1 + keep:3 + keep]
    headers, kept = os.path.join(root, "include/rondo"), os.path.join(root, "include/librondo.abi")
    if not shutil.which("abidiff"):
        print("abigail-tools is not installed: nothing was compared")
        return 77
    if keep:
        with open(kept, "w", encoding="utf-8") as file:
            return subprocess.run([*WRITE, headers, os.path.realpath(library)], stdout=file, check=False).returncode
    result = subprocess.run([*COMPARE, headers, kept, library], capture_output=True, text=True, check=False)
    print(result.stdout + result.stderr, end="")
    if result.returncode:
        kind = "breaks programs that were built before" if result.returncode & BROKEN else "has changed"
        print(f"The binary interface {kind}: {REMEDY}")
    return result.returncode != 0


if __name__ == "__main__":
    sys.exit(main())
