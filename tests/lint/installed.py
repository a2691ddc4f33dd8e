#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""installed.py - does what `./dev install` puts down work for those who only have that?

installed.py ROOT BUILD CC: installs into a scratch folder, without root, compiles and runs an example from it with a
pkg-config that knows no other package, and follows every path to libnccl.so.2 that README.md and docs/nccl.md give.
Prints TAP.
"""
import functools
import glob
import os
import re
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import cases  # noqa: E402  tests/cases.py

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
        prefix = os.path.join(scratch, "tree")
        done = subprocess.run([os.path.join(ROOT, "dev"), "install", "tree", build], cwd=scratch, text=True,
                              capture_output=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
        # What it says to export is where things are.
        self.export = done.stdout.splitlines()[-1]
        said = dict(re.findall(r"(\w+)=([^\s$]+)", self.export))
        self.package, self.library = said["PKG_CONFIG_PATH"], said["LD_LIBRARY_PATH"]
        assert os.path.exists(os.path.join(self.package, "rondo.pc")), done.stdout
        assert said["CMAKE_PREFIX_PATH"] == prefix, done.stdout
        self.prefix, self.programs = prefix, os.path.join(prefix, "bin")

    def environment(self, **more):
        clean = {name: value for name, value in os.environ.items()
                 if not name.startswith(("PKG_CONFIG", "LD_", "RONDO_"))}
        return {**clean, "PATH": f"{self.programs}:{os.environ['PATH']}",
                "PKG_CONFIG_LIBDIR": self.package, **more}

    def run(self, command, **more):
        result = subprocess.run(["bash", "-c", command], cwd=self.scratch, env=self.environment(**more), text=True,
                                capture_output=True, stdin=subprocess.DEVNULL, timeout=1000, check=False)
        assert result.returncode == 0, f"{command}: status {result.returncode}\n{result.stdout}{result.stderr}"
        return result.stdout


def the_line_to_export_finds_the_command_and_keeps_what_was_set(tree):
    assert tree.run(f"PATH=/usr/bin:/bin; {tree.export}; rondo --version").startswith("rondo "), tree.export
    said = tree.run(f"{tree.export}; echo $LD_LIBRARY_PATH $CMAKE_PREFIX_PATH", LD_LIBRARY_PATH="/a:/b",
                    CMAKE_PREFIX_PATH="")
    assert said == f"{tree.library}:/a:/b {tree.prefix}\n", said


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


def line_of_the_readme(source):
    with open(os.path.join(ROOT, "README.md"), encoding="utf-8") as file:
        line = re.search(r"^cc (.*)examples/01_all_reduce\.c(.*) -o all_reduce$", file.read(), re.M)
    return f"{CC} {line.group(1)}{source}{line.group(2)} -o example"


def every_example_is_compiled_by_the_line_of_the_readme(tree):
    for source in sorted(glob.glob(os.path.join(ROOT, "examples/*.c"))):
        tree.run(line_of_the_readme(source))


def an_example_is_linked_with_the_archive(tree):
    example = os.path.join(ROOT, "examples/01_all_reduce.c")
    tree.run(f"{CC} -std=c17 {example} $(pkg-config --cflags rondo) -l:librondo.a $(pkg-config --static --libs rondo) "
             f"-L{tree.library} -o archived")
    assert "rank 0 of 1" in tree.run("./archived")


def the_wrapper_for_cpp_is_there(tree):
    if not shutil.which("g++"):
        return "there is no compiler of C++"
    example = os.path.join(ROOT, "examples/11_wrapper.cc")
    tree.run(f"g++ -std=c++11 {example} $(pkg-config --cflags --libs rondo) -o wrapper")
    assert "rank 0 of 1" in tree.run("./wrapper", LD_LIBRARY_PATH=tree.library)
    return None


def the_training_and_the_benchmark_find_their_programs(tree):
    if os.path.exists(os.path.join(tree.prefix, "libexec/rondo/rondo-train")):
        tree.run("rondo train -n 1 --digits 1 --steps 1 --samples 0 --width 16 --heads 2")
    tree.run("rondo bench all_reduce -n 2 --bytes 8 --iterations 10")


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


CMAKE = """cmake_minimum_required(VERSION 3.18)
project(program C)
find_package(rondo 0.1 REQUIRED)
add_executable(program ../all_reduce.c)
target_link_libraries(program rondo::rondo)
"""


def cmake_finds_the_library(tree):
    if not shutil.which("cmake"):
        return "cmake is not installed"
    folder = os.path.join(tree.scratch, "with-cmake")
    os.mkdir(folder)
    shutil.copy(os.path.join(ROOT, "examples/01_all_reduce.c"), os.path.join(tree.scratch, "all_reduce.c"))
    with open(os.path.join(folder, "CMakeLists.txt"), "w", encoding="utf-8") as file:
        file.write(CMAKE)
    tree.run(f"cmake -S with-cmake -B with-cmake/build -DCMAKE_C_COMPILER={CC} "
             f"-DCMAKE_PREFIX_PATH={tree.prefix} && cmake --build with-cmake/build")
    assert "rank 0 of 1" in tree.run("with-cmake/build/program")
    refused = tree.run("sed -i 's/rondo 0.1/rondo 0.2/' with-cmake/CMakeLists.txt && "
                       f"! cmake -S with-cmake -B with-cmake/later -Drondo_DIR={tree.library}/cmake/rondo 2>&1")
    assert "0.1.0" in refused, refused


def share(tree):
    return os.path.join(tree.prefix, "share")


def each_function_has_a_page(tree):
    folder = os.path.join(share(tree), "man/man3")
    exported = re.findall(r" T (rondo_\w+)@", tree.run(f"nm -D --defined-only {tree.library}/librondo.so"))
    missing = [name for name in exported if not os.path.exists(os.path.join(folder, name + ".3"))]
    assert len(exported) > 100 and not missing, missing
    said = tree.run(f"man -l {folder}/rondo_all_reduce.3 | cat", MANWIDTH="100", LC_ALL="C.UTF-8")
    assert "fewer than n" in said, said


def bash_completes(tree):
    script = os.path.join(share(tree), "bash-completion/completions/rondo")

    def offered(*words):
        line = " ".join(("rondo", *words, "''"))
        said = tree.run(f". {script}; COMP_WORDS=({line}); COMP_CWORD={len(words) + 1}; _rondo; "
                        'printf "%s\\n" "${COMPREPLY[@]}"', LD_LIBRARY_PATH=tree.library)
        return said.split()

    assert {"run", "bench", "explain"} <= set(offered()), offered()
    assert {"all_reduce", "all_to_all_v", "latency", "compare"} <= set(offered("bench")), offered("bench")
    assert "all_reduce" in offered("explain"), offered("explain")
    assert offered("bench", "--bytes") == [], "a value is no option"


def fish_and_zsh_can_read_theirs(tree):
    if not shutil.which("fish") or not shutil.which("zsh"):
        return "fish and zsh are not both installed"
    tree.run(f"zsh -n {share(tree)}/zsh/site-functions/_rondo")
    said = tree.run(f"fish -c 'source {share(tree)}/fish/vendor_completions.d/rondo.fish; complete -C \"rondo ben\"'",
                    LD_LIBRARY_PATH=tree.library)
    assert said.startswith("bench\t"), said


def links_of_the_pages_lead_to_what_is_installed(tree):
    pages = glob.glob(os.path.join(share(tree), "doc/rondo/**/*.md"), recursive=True)
    dead = []
    for page in pages:
        with open(page, encoding="utf-8") as file:
            links = re.findall(r"\]\(([^)#:\s]+)(?:#[^)]*)?\)", file.read())
        dead += [f"{page}: {link}" for link in links if not os.path.exists(os.path.join(os.path.dirname(page), link))]
    assert len(pages) > 40 and not dead, dead


CASES = (the_line_to_export_finds_the_command_and_keeps_what_was_set, pkg_config_needs_no_other_package,
         an_example_is_compiled_and_runs,
         every_example_is_compiled_by_the_line_of_the_readme, an_example_is_linked_with_the_archive,
         the_wrapper_for_cpp_is_there, the_training_and_the_benchmark_find_their_programs,
         the_ways_to_nccl_in_the_pages_lead_to_ours, preloading_is_stronger_than_rpath, cmake_finds_the_library,
         each_function_has_a_page, links_of_the_pages_lead_to_what_is_installed, bash_completes,
         fish_and_zsh_can_read_theirs)


def main():
    with tempfile.TemporaryDirectory() as scratch:
        tree = Installed(BUILD, scratch)
        return cases.run([(cases.sentence(case), functools.partial(case, tree)) for case in CASES])


if __name__ == "__main__":
    ROOT, BUILD, CC = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2]), sys.argv[3]
    sys.exit(main())
