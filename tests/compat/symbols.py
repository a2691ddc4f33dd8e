#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""symbols.py - does libnccl.so.2 have every function that clients may look for?

symbols.py LIBRARY LIST [HEADER...]: the names of LIST and all that the headers declare must be there as nccl*, weak,
and as pnccl*, strong, and nothing else but PLAIN; the soname is libnccl.so.2, and no symbol has a version.
"""
import re
import subprocess
import sys


PLAIN = {"ncclResetDebugInitInternal"}  # NCCL has it without a pnccl*


def output(*command):
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def listed(path):
    with open(path, encoding="utf-8") as file:
        return {line.strip() for line in file if line.strip() and not line.startswith("#")}


def declared(path):
    """Names of functions in a header, whatever their types: nccl, capital letter, parenthesis."""
    with open(path, encoding="utf-8") as file:
        text = re.sub(r"/\*.*?\*/|//[^\n]*|^\s*#(?:[^\n\\]|\\.|\\\n)*", " ", file.read(), flags=re.S | re.M)
    return set(re.findall(r"\b(nccl[A-Z]\w*)\s*\([^;{]*\)\s*;", text))


def main():
    library, names = sys.argv[1], listed(sys.argv[2])
    headers = sys.argv[3:]
    for header in headers:
        found = declared(header)
        if len(found) < 40:
            sys.exit(f"symbols: only {len(found)} functions were found in {header}")
        names |= found
    exported = {}
    for line in output("nm", "-D", "--defined-only", library).splitlines():
        *_, kind, name = line.split()
        exported[name] = kind
    wrong = [f"{name} is {exported.get(name, 'not there')}, not weak" for name in sorted(names)
             if exported.get(name) != "W"]
    wrong += [f"p{name} is {exported.get('p' + name, 'not there')}, not strong" for name in sorted(names)
              if exported.get("p" + name) != "T"]
    wrong += [f"{name} is {exported.get(name, 'not there')}, not strong" for name in PLAIN if exported.get(name) != "T"]
    # Sanitizers and coverage add symbols of their own.
    own = {name for name in exported if not name.startswith(("__asan", "__ubsan", "__odr_asan", "__gcov"))}
    wrong += [f"{name} is exported, and nobody asked for it" for name in
              sorted(own - names - PLAIN - {"p" + name for name in names})]
    if "SONAME" not in (dynamic := output("readelf", "-d", library)) or "[libnccl.so.2]" not in dynamic:
        wrong.append("the soname is not libnccl.so.2")
    if "[libcuda" in dynamic or "[libcudart" in dynamic:
        wrong.append("it is linked against CUDA, which must be loaded when it is wanted")
    print("\n".join(wrong))
    print(f"symbols: {len(names)} functions, {len(headers)} headers, {len(wrong)} complaints")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
