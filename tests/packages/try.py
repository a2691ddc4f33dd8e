#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""try.py - do the Debian packages work on a machine that has nothing else? As root.

try.py ROOT FOLDER: makes an empty Debian in a scratch folder, installs the packages of FOLDER with what they ask for,
compiles README.md's program with pkg-config and with CMake, runs it, reads the manual, and purges. Prints TAP.
"""
import functools
import glob
import os
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import cases  # noqa: E402  tests/cases.py

TOOLS = "gcc,libc6-dev,pkg-config,cmake,make,man-db,bash-completion"
PACKAGES = ("librondo0", "librondo-dev", "rondo-tools")
CMAKE = """cmake_minimum_required(VERSION 3.18)
project(program C)
find_package(rondo 0.1 REQUIRED)
add_executable(program program.c)
target_link_libraries(program rondo::rondo)
"""
PROXIES = {name: value for name, value in os.environ.items() if name.lower().endswith("_proxy")}
MOUNTS = """mount -t proc proc "$1/proc" && mount --rbind /sys "$1/sys" && mount --rbind /dev "$1/dev" &&
exec chroot "$1" bash -ec "$2"
"""  # in a mount namespace of its own
EXPECTED = ["rank 0 of 2: 2 4", "rank 1 of 2: 2 4"]


def release():
    with open("/etc/os-release", encoding="utf-8") as file:
        return dict(line.rstrip().split("=", 1) for line in file if "=" in line)["VERSION_CODENAME"].strip('"')


class Empty:
    """A Debian without Rondo, made with this machine's sources of packages."""

    def __init__(self, scratch):
        self.root = os.path.join(scratch, "root")
        sources = [*glob.glob("/etc/apt/sources.list"), *glob.glob("/etc/apt/sources.list.d/*")]
        kept = "--dpkgopt=path-include=/usr/share/man/*"
        subprocess.run(["mmdebstrap", "--quiet", "--variant=minbase", f"--include={TOOLS}", kept, release(), self.root,
                        *sources], check=True)
        self.files = self.list_files()

    def run(self, command):
        environment = {**PROXIES, "PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "HOME": "/root", "LC_ALL": "C.UTF-8",
                       "DEBIAN_FRONTEND": "noninteractive"}
        result = subprocess.run(["unshare", "--mount", "bash", "-c", MOUNTS, "bash", self.root, command], text=True,
                                capture_output=True, stdin=subprocess.DEVNULL, timeout=300, check=False,
                                env=environment)
        assert result.returncode == 0, f"{command}: status {result.returncode}\n{result.stdout}{result.stderr}"
        return result.stdout

    def list_files(self):
        return set(self.run("find / -xdev -name '*rondo*' -not -path '/tmp/*' -not -path '/var/cache/*'").split())


def they_install(empty, folder):
    os.makedirs(os.path.join(empty.root, "tmp/packages"))
    for path in glob.glob(os.path.join(folder, "*.deb")):
        shutil.copy(path, os.path.join(empty.root, "tmp/packages"))
    # Names and ways to the mirror are this machine's.
    for path in ("/etc/resolv.conf", "/etc/hosts", *glob.glob("/etc/apt/apt.conf.d/*proxy*")):
        shutil.copy(path, empty.root + path)
    empty.run("apt-get update && cd /tmp/packages && apt-get install -y --no-install-recommends "
              + " ".join(f"./{name}_*.deb" for name in PACKAGES))


def the_program_of_the_readme_compiles_and_runs(empty):
    shutil.copy(os.path.join(ROOT, "examples/01_all_reduce.c"), os.path.join(empty.root, "tmp/program.c"))
    empty.run("cd /tmp && gcc -std=c17 program.c $(pkg-config --cflags --libs rondo) -o program")
    said = empty.run("cd /tmp && rondo run -n 2 ./program")
    assert sorted(said.split("\n"))[1:] == EXPECTED, said


def the_same_with_cmake(empty):
    folder = os.path.join(empty.root, "tmp/with-cmake")
    os.mkdir(folder)
    shutil.copy(os.path.join(ROOT, "examples/01_all_reduce.c"), os.path.join(folder, "program.c"))
    with open(os.path.join(folder, "CMakeLists.txt"), "w", encoding="utf-8") as file:
        file.write(CMAKE)
    empty.run("cd /tmp/with-cmake && cmake -S . -B build && cmake --build build")
    said = empty.run("rondo run -n 2 /tmp/with-cmake/build/program")
    assert sorted(said.split("\n"))[1:] == EXPECTED, said


def the_manual_has_a_page_for_a_function_and_for_a_command(empty):
    assert "fewer than n" in empty.run("man rondo_all_reduce | cat")
    assert "rondo_all_reduce" in empty.run("man rondo_scatter | cat"), "the alias does not lead to its page"
    assert "SYNOPSIS" in empty.run("man rondo-bench | cat")


def commands_work_and_complete(empty):
    empty.run("rondo bench all_reduce -n 2 --bytes 8 --iterations 10")
    empty.run("rondo verify all_reduce --ranks 2")
    said = empty.run(". /usr/share/bash-completion/completions/rondo; COMP_WORDS=(rondo ben); COMP_CWORD=1; _rondo; "
                     'echo "${COMPREPLY[@]}"')
    assert said == "bench\n", said


def purging_them_leaves_nothing(empty):
    empty.run("dpkg --purge " + " ".join(PACKAGES))
    left = empty.list_files() - empty.files
    assert not left, left


CASES = (the_program_of_the_readme_compiles_and_runs, the_same_with_cmake,
         the_manual_has_a_page_for_a_function_and_for_a_command, commands_work_and_complete,
         purging_them_leaves_nothing)


def main():
    with tempfile.TemporaryDirectory() as scratch:
        empty = Empty(scratch)
        install = functools.partial(they_install, empty, sys.argv[2])
        return cases.run([(cases.sentence(they_install), install),
                          *((cases.sentence(case), functools.partial(case, empty)) for case in CASES)])


if __name__ == "__main__":
    ROOT = os.path.abspath(sys.argv[1])
    sys.exit(main())
