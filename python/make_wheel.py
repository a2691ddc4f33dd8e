#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""make_wheel.py - the wheel of rondo-comm, for every Python 3, with the libraries it needs inside.

    make_wheel.py FOLDER OUTPUT    builds in FOLDER, puts the wheel into OUTPUT

meson-python tags a wheel for the one Python that built it, as it holds libraries; ours are loaded by ctypes and know
nothing of Python, so the tag becomes py3-none. auditwheel then puts hwloc and the like beside them, and finds out from
the versions of symbols what glibc is needed.
"""
import pathlib
import shutil
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
TOOLS = pathlib.Path(sys.executable).parent


def only(folder):
    """The one wheel of a folder."""
    found = list(folder.glob("*.whl"))
    assert len(found) == 1, f"{folder} should have one wheel, not {found}"
    return found[0]


def tool(name, *arguments):
    subprocess.run([str(TOOLS / name), *map(str, arguments)], check=True)


def main():
    build, output = pathlib.Path(sys.argv[1]).resolve(), pathlib.Path(sys.argv[2]).resolve()
    raw = build / "raw"
    shutil.rmtree(raw, ignore_errors=True)
    tool("pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation", "--wheel-dir", raw,
         f"--config-settings=build-dir={build / 'meson'}", ROOT)
    tool("wheel", "tags", "--python-tag=py3", "--abi-tag=none", "--remove", only(raw))
    shutil.rmtree(output, ignore_errors=True)
    # The tools of auditwheel are found on PATH, patchelf among them. librondo.so.0, which librondo-heap.so needs, is in
    # the wheel without its number, and preloaded with it (rondo torch-env).
    environment = {"PATH": f"{TOOLS}:/usr/local/bin:/usr/bin:/bin"}
    subprocess.run([TOOLS / "auditwheel", "repair", "--exclude", "librondo.so.0", "--wheel-dir", output, only(raw)],
                   env=environment, check=True)
    print(f"{only(output).name}: {only(output).stat().st_size / 2**20:.1f} MiB")


if __name__ == "__main__":
    main()
