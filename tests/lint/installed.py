#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""installed.py - does what `meson install` puts down work for those who only have that?

installed.py ROOT BUILD CC: installs into a scratch folder, compiles and runs an example from it with a pkg-config that
knows no other package, and follows every path to libnccl.so.2 that README.md and docs/nccl.md give. Prints TAP.
"""
import os
import re
import shutil
import subprocess
import sys
import tempfile

CLIENT = """#include <stdio.h>
int ncclGetVersion(int *version);
int main(void)
{
    int version = 0;

    return ncclGetVersion(&version) || printf("version %d\\n", version) < 0;
}
"""
OTHER = "int ncclGetVersion(int *version) { *version = 1; return 0; }\n"


class Installed:
    """The installed tree, and an environment in which pkg-config finds its file and no other."""

    def __init__(self, build, scratch):
        self.scratch = scratch
        subprocess.run(["meson", "install", "-C", build, "--no-rebuild", "--quiet", "--destdir", scratch], check=True,
                       capture_output=True, text=True)
        found = [os.path.join(folder, "rondo.pc") for folder, _, names in os.walk(scratch) if "rondo.pc" in names]
        assert len(found) == 1, f"rondo.pc is installed as {found}"
        with open(found[0], encoding="utf-8") as file:
            prefix = scratch + re.search("^prefix=(.*)", file.read(), re.M).group(1)
        self.package = os.path.dirname(found[0])
        self.library = os.path.dirname(self.package)
        self.tools = os.path.join(scratch, "tools")
        os.mkdir(self.tools)
        # The tree is not where it believes to be, for the lack of root's rights.
        with open(os.path.join(self.tools, "pkg-config"), "w", encoding="utf-8") as file:
            file.write(f'#!/bin/sh\nexec {shutil.which("pkg-config")} --define-variable=prefix={prefix} "$@"\n')
        os.chmod(file.name, 0o755)
        self.programs = os.path.join(prefix, "bin")

    def environment(self, **more):
        clean = {name: value for name, value in os.environ.items()
                 if not name.startswith(("PKG_CONFIG", "LD_", "RONDO_"))}
        return {**clean, "PATH": f"{self.tools}:{self.programs}:{os.environ['PATH']}",
                "PKG_CONFIG_LIBDIR": self.package, **more}

    def run(self, command, **more):
        result = subprocess.run(["bash", "-c", command], cwd=self.scratch, env=self.environment(**more), text=True,
                                capture_output=True, stdin=subprocess.DEVNULL, timeout=100, check=False)
        assert result.returncode == 0, f"{command}: status {result.returncode}\n{result.stdout}{result.stderr}"
        return result.stdout


def pkg_config_needs_no_other_package(tree):
    said = tree.run("pkg-config --cflags --libs rondo").split()
    folders = {word[2:] for word in said if word[:2] in ("-I", "-L")}
    assert all(folder.startswith(tree.scratch) for folder in folders), f"foreign folders: {said}"
    assert [word for word in said if word[:2] == "-l"] == ["-lrondo"], said
    assert all(os.path.isdir(folder) for folder in folders), said


def an_example_is_compiled_and_runs(tree):
    example = os.path.join(ROOT, "examples/01_all_reduce.c")
    tree.run(f"{CC} -std=c17 {example} $(pkg-config --cflags --libs rondo) -o all_reduce")
    said = tree.run("rondo run -n 3 ./all_reduce", LD_LIBRARY_PATH=tree.library)
    assert sorted(said.split("\n")) == ["", "rank 0 of 3: 3 6", "rank 1 of 3: 3 6", "rank 2 of 3: 3 6"], said


def an_example_is_linked_with_the_archive(tree):
    example = os.path.join(ROOT, "examples/01_all_reduce.c")
    tree.run(f"{CC} -std=c17 {example} $(pkg-config --cflags rondo) -l:librondo.a $(pkg-config --static --libs rondo) "
             f"-L{tree.library} -o archived")
    assert "rank 0 of 1" in tree.run("./archived")


def the_training_and_the_benchmark_find_their_programs(tree):
    if os.path.exists(os.path.join(os.path.dirname(tree.programs), "libexec/rondo/rondo-train")):
        tree.run("rondo train -n 1 --digits 1 --steps 1 --samples 0 --width 16 --heads 2", LD_LIBRARY_PATH=tree.library)
    tree.run("rondo bench all_reduce -n 2 --bytes 8 --iterations 10", LD_LIBRARY_PATH=tree.library)


def ways_to_nccl(page):
    """The lines of fenced blocks that start or compile ./program with our NCCL, without what explains them."""
    with open(os.path.join(ROOT, page), encoding="utf-8") as file:
        fenced = re.findall(r"^```text\n(.*?)^```", file.read(), re.M | re.S)
    return [line.split("  #")[0].strip() for block in fenced for line in block.splitlines() if "nccl" in line]


def the_ways_to_nccl_in_the_pages_lead_to_ours(tree):
    """The client is linked with an NCCL of its own, which it finds by RUNPATH: that one says version 1."""
    for name, text in (("program.c", CLIENT), ("other.c", OTHER)):
        with open(os.path.join(tree.scratch, name), "w", encoding="utf-8") as file:
            file.write(text)
    tree.run(f"{CC} -shared -fPIC -Wl,-soname,libnccl.so.2 other.c -o libnccl.so.2 && "
             f"{CC} program.c ./libnccl.so.2 -Wl,-rpath,{tree.scratch} -Wl,--enable-new-dtags -o program")
    assert tree.run("./program") == "version 1\n"
    ways = [way for page in ("README.md", "docs/nccl.md") for way in ways_to_nccl(page)]
    assert len(ways) >= 4, ways
    for way in ways:
        command = way.replace("cc program.c", f"{CC} program.c") + ("" if "./program" in way else " -o own && ./own")
        said = tree.run(command)
        assert said == "version 22809\n", f"{way}: {said}"


def preloading_is_stronger_than_rpath(tree):
    """As PyTorch's wheels have it: then LD_LIBRARY_PATH is of no use."""
    tree.run(f"{CC} program.c ./libnccl.so.2 -Wl,-rpath,{tree.scratch} -Wl,--disable-new-dtags -o wheel")
    folder = os.path.join(tree.library, "rondo")
    assert tree.run("./wheel", LD_LIBRARY_PATH=folder) == "version 1\n"
    assert tree.run("LD_PRELOAD=$(pkg-config --variable=nccl rondo) ./wheel") == "version 22809\n"


CASES = (pkg_config_needs_no_other_package, an_example_is_compiled_and_runs, an_example_is_linked_with_the_archive,
         the_training_and_the_benchmark_find_their_programs, the_ways_to_nccl_in_the_pages_lead_to_ours,
         preloading_is_stronger_than_rpath)


def main():
    failed = 0
    print(f"1..{len(CASES)}")
    with tempfile.TemporaryDirectory() as scratch:
        tree = Installed(BUILD, scratch)
        for number, case in enumerate(CASES, 1):
            name = case.__name__.replace("_", " ")
            try:
                case(tree)
                print(f"ok {number} - {name}")
            except (AssertionError, subprocess.SubprocessError, OSError) as error:
                failed += 1
                print(f"not ok {number} - {name}")
                print("\n".join("# " + line for line in f"{type(error).__name__}: {error}".splitlines()))
    return 1 if failed else 0


if __name__ == "__main__":
    ROOT, BUILD, CC = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2]), sys.argv[3]
    sys.exit(main())
