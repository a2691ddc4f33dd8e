#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""kernel_usage.py USAGE PAGE [--write]: does the page's table say what each kernel takes of a device?

USAGE is what nvcc's assembler said (cuda/kernels/compile.sh). Compilers differ by a few registers, so the comparison is
loose; spills of a kernel are a failure. With --write the table is made anew.
"""
import re
import sys

BEGIN, END = "<!-- kernel usage -->\n", "<!-- end of kernel usage -->\n"
DEVICES = ["sm_80", "sm_90", "sm_100"]
MORE_REGISTERS = 24
MORE_SHARED = 1.1


def read_usage(path):
    """{kernel: {device: {registers, shared, stack, spills}}}"""
    kernels, at, function = {}, None, None
    for line in open(path):
        if found := re.search(r"Compiling entry function '(\w+)' for '(\w+)'", line):
            kernel = found.group(1)
            at = kernels.setdefault(kernel, {}).setdefault(found.group(2), {"shared": 0, "spills": 0, "stack": 0})
        elif found := re.search(r"Function properties for (\S+)", line):
            function = found.group(1)
        elif found := re.search(r"(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads", line):
            if at is not None and function == kernel:
                at["spills"] = int(found.group(2)) + int(found.group(3))
        elif found := re.search(r"Used (\d+) registers(.*)", line):
            at["registers"] = int(found.group(1))
            for word, pattern in ("shared", r"(\d+) bytes smem"), ("stack", r"(\d+) bytes cumulative stack"):
                if size := re.search(pattern, found.group(2)):
                    at[word] = int(size.group(1))
    return kernels


def make_table(kernels):
    rows = ["| kernel | " + " | ".join(f"{device}: registers | shared | stack" for device in DEVICES) + " |\n"]
    rows.append("|---" * (1 + 3 * len(DEVICES)) + "|\n")
    for name, devices in sorted(kernels.items()):
        cells = [f"{devices[d]['registers']} | {devices[d]['shared']} | {devices[d]['stack']}" for d in DEVICES]
        rows.append(f"| `{name}` | " + " | ".join(cells) + " |\n")
    return "".join(rows)


def read_table(text):
    table = {}
    for line in text.splitlines():
        if found := re.match(r"\| `(\w+)` \| (.*) \|$", line):
            numbers = [int(cell) for cell in found.group(2).split(" | ")]
            table[found.group(1)] = {d: numbers[3 * i:3 * i + 3] for i, d in enumerate(DEVICES)}
    return table


def complaints(kernels, table):
    for name in sorted(set(kernels) | set(table)):
        if name not in table or name not in kernels:
            yield f"{name} is {'not in the table' if name in kernels else 'in the table and not in the image'}"
            continue
        for device in DEVICES:
            usage = kernels[name].get(device)
            if not usage:
                yield f"{name} was not compiled for {device}"
                continue
            registers, shared, _ = table[name][device]
            if usage["spills"]:
                yield f"{name} spills {usage['spills']} bytes on {device}"
            if usage["registers"] > registers + MORE_REGISTERS:
                yield f"{name} takes {usage['registers']} registers on {device}, the table says {registers}"
            if usage["shared"] > shared * MORE_SHARED:
                yield f"{name} takes {usage['shared']} bytes of shared memory on {device}, the table says {shared}"


def main():
    usage, page = sys.argv[1:3]
    kernels = read_usage(usage)
    text = open(page).read()
    before, rest = text.split(BEGIN)
    table, after = rest.split(END)
    if "--write" in sys.argv:
        open(page, "w").write(before + BEGIN + make_table(kernels) + END + after)
        return 0
    found = list(complaints(kernels, read_table(table)))
    if not kernels:
        found.append(f"{usage} names no kernel")
    for complaint in found:
        print(f"{page}: {complaint}")
    return 1 if found else 0


sys.exit(main())
