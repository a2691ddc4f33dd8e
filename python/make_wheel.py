#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""make_wheel.py - the wheel of rondo-comm, for every Python 3, with the libraries it needs inside.

    make_wheel.py FOLDER OUTPUT    builds in FOLDER, puts the wheel into OUTPUT

meson-python tags a wheel for the one Python that built it, as it holds libraries; ours are loaded by ctypes and know
nothing of Python, so the tag becomes py3-none. All is linked by old_glibc.py with static libraries: Debian's, and
hwloc's from its source, as Debian's is for programs only. auditwheel finds out from the versions of symbols what glibc
is needed, and says so in the wheel's name.
"""
import hashlib
import os
import pathlib
import shutil
import subprocess
import sys
import tarfile
import urllib.request

import old_glibc

ROOT = pathlib.Path(__file__).resolve().parent.parent
TOOLS = pathlib.Path(sys.executable).parent
TAG = "manylinux_" + old_glibc.GLIBC.replace(".", "_")
HWLOC = "http://deb.debian.org/debian/pool/main/h/hwloc/hwloc_2.9.0.orig.tar.bz2"
HWLOC_SHA256 = "b3fb1a43a14d8fbcd8e976de5ede2ea7ce1d768ed173adb33c7ceaaf098dc970"
# What Rondo does not ask it for, and would need libraries.
HWLOC_WITHOUT = ("libudev", "libxml2", "pci", "opencl", "cuda", "nvml", "rsmi", "levelzero", "gl", "cairo", "shared")


def only(folder):
    """The one wheel of a folder."""
    found = list(folder.glob("*.whl"))
    assert len(found) == 1, f"{folder} should have one wheel, not {found}"
    return found[0]


def tool(name, *arguments, **variables):
    subprocess.run([str(TOOLS / name), *map(str, arguments)], env={**os.environ, **variables}, check=True)


def compiler(name):
    return f"{sys.executable} {old_glibc.__file__} {name}"


def make_hwloc(folder):
    """A static library that goes into shared ones; returns where pkg-config finds it."""
    installed, archive = folder / "installed", folder / "hwloc.tar.bz2"
    if (installed / "lib/libhwloc.a").exists():
        return installed / "lib/pkgconfig"
    folder.mkdir(parents=True, exist_ok=True)
    urllib.request.urlretrieve(HWLOC, archive)
    assert hashlib.sha256(archive.read_bytes()).hexdigest() == HWLOC_SHA256, f"{HWLOC} is not what it was"
    with tarfile.open(archive) as packed:
        packed.extractall(folder)
    source = next(folder.glob("hwloc-*/"))
    for command in (["./configure", "--quiet", f"--prefix={installed}", "--libdir=${prefix}/lib", "--enable-static",
                     "--with-pic", *("--disable-" + name for name in HWLOC_WITHOUT)],
                    ["make", "-s", "-j2", "SUBDIRS=include hwloc", "install"]):
        subprocess.run(command, cwd=source, stdout=subprocess.DEVNULL, check=True)
    return installed / "lib/pkgconfig"


def refuse_slow(folder):
    """zig's runtime in place of gcc's would be right and many times slower: its processor model knows of no AVX, and
    its memcpy() comes before glibc's.
    """
    for name in ("librondo.so", "libnccl.so.2", "rondo-command"):
        symbols = subprocess.run(["nm", "-D", folder / name], check=True, capture_output=True, text=True).stdout
        assert "U memcpy@GLIBC" in symbols, f"{name} has a memcpy() of its own, slower than glibc's"
    report = subprocess.run([folder / "rondo-command", "doctor"], capture_output=True, text=True).stdout
    assert "arithmetic: kernels for" in report, f"`rondo doctor` does not say what kernels there are:\n{report}"
    if "avx2" in pathlib.Path("/proc/cpuinfo").read_text().split():
        assert "kernels for plain" not in report, f"the kernels do not find the AVX of this machine:\n{report}"


def main():
    build, output = pathlib.Path(sys.argv[1]).resolve(), pathlib.Path(sys.argv[2]).resolve()
    raw, meson, unpacked = build / "raw", build / TAG, build / "unpacked"
    shutil.rmtree(raw, ignore_errors=True)
    tool("pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation", "--wheel-dir", raw,
         f"--config-settings=build-dir={meson}", ROOT, CC=compiler("gcc"), CXX=compiler("g++"),
         PKG_CONFIG_PATH=str(make_hwloc(build / "hwloc")))
    tool("wheel", "tags", "--python-tag=py3", "--abi-tag=none", "--remove", only(raw))
    shutil.rmtree(unpacked, ignore_errors=True)
    tool("wheel", "unpack", "--dest", unpacked, only(raw))
    refuse_slow(next(unpacked.glob("*/rondo")))
    shutil.rmtree(output, ignore_errors=True)
    # The tools of auditwheel are found on PATH, patchelf among them. librondo.so.0, which librondo-heap.so needs, is in
    # the wheel without its number, and preloaded with it (rondo torch-env).
    tool("auditwheel", "repair", "--exclude", "librondo.so.0", "--wheel-dir", output, only(raw),
         PATH=f"{TOOLS}:/usr/local/bin:/usr/bin:/bin")
    assert TAG in only(output).name, f"{only(output).name} is not for {TAG}: `auditwheel show` tells why"
    print(f"{only(output).name}: {only(output).stat().st_size / 2**20:.1f} MiB")


if __name__ == "__main__":
    main()
