#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""lint.py - the rules of the house that a machine can check; prints "FILE:LINE: what" and fails if there is any.

Who includes whom (the table ROOMS, and no circle of folders), files per folder, one SPDX line first, sizes, no way out
of the process and no stdout in the library, no volatile, explicit memory orders, no control flow hidden in macros,
width, layout, exported symbols, documents that name what there is, and a public header that compiles alone as C89, C17,
C++98 and C++17, or, as a wrapper, as C++11 and C++20. With --library FILE the symbols of that file are checked too.
"""
import argparse
import collections
import functools
import os
import re
import shutil
import subprocess
import sys
import tempfile

import documents
import words

# A folder may include its own headers, rondo/ and those of these folders; of a folder that is not named here, the one
# above it counts. Rooms that are not named at all see everything.
COLLECTIVES = {"collectives", "collectives/levels", "collectives/select"}
HOST = {"base", "base/trace", "kernels", "plan", "transport", "transport/link", "transport/memory"} | COLLECTIVES
ROOMS = {
    "include": set(),
    "base": set(),
    "base/caller": set(),
    "base/trace": {"base"},
    "base/net": {"base"},
    "topology": {"base"},
    "kernels": {"base"},
    "transport/link": {"base"},
    "transport/memory": {"base", "transport/link"},
    "transport/tcp": {"base", "base/net", "transport/link"},
    "transport/verbs": {"base", "topology", "transport/link", "transport/memory"},
    "transport": {"base", "transport/link"},
    "plan": {"base", "base/trace", "kernels", "transport/link"},
    "plan/verify": {"base", "plan"},
    "plan/explain": {"base", "plan", "plan/verify"},
    "plan/file": {"base", "plan"},
    "plan/msccl": {"base", "plan", "plan/file"},
    "plan/simulate": {"base", "plan"},
    "collectives": {"base", "plan"},  # the textbook: it knows of nothing behind it
    "collectives/levels": {"base", "plan", "collectives"},
    "collectives/select": {"base", "plan", "collectives", "collectives/levels"},
    "collectives/file": {"base", "plan", "plan/file", "plan/msccl", "plan/verify", "collectives"},
    "cuda": {"base", "kernels", "plan"},  # the last: what an executor reads
    "comm/rendezvous": {"base", "base/net"},
    "comm/recorder": {"base"},
    "comm/state": HOST | {"comm/recorder"},
    "comm/failure": HOST | {"comm/recorder", "comm/state"},
    "comm/recovery": HOST | {"comm/recorder", "comm/state", "comm/failure", "comm/engine"},
    "comm/p2p": HOST | {"comm/recorder", "comm/state", "comm/failure", "comm/engine"},
    "comm/engine": HOST | {"comm/recorder", "comm/state", "comm/failure"},
    "comm/gpu": HOST | {"base/net", "comm/recorder", "comm/state", "comm/failure", "comm/engine", "cuda", "topology"},
    "comm": HOST | {"base/net", "comm/recorder", "comm/state", "comm/failure", "comm/recovery", "comm/engine",
                    "comm/gpu", "comm/rendezvous", "topology", "collectives/file"},
    "cli": {"base", "plan", "plan/verify", "plan/explain", "plan/file", "plan/simulate", "collectives/file",
            "topology", "kernels",
            "cuda", "bench", "cli/common", "cli/msccl"} | COLLECTIVES,  # bench: what its workers speak
    "cli/msccl": {"base", "plan"},
    "cli/common": set(),  # of all programs
    "ddp": {"base/caller"},  # and only include/
    "ddp/elastic": {"ddp", "base/caller"},
    "ddp/shards": {"ddp"},
    "train": {"cli/common"},
    "compat": {"base/caller"},
    "bench": {"cli/common"},
    "examples": set(),
    "python": set(),
}
# Every command is by itself: its files see each other, and what lies above them.
for command in ("bench", "doctor", "explain", "ps", "run", "simulate", "topo", "trace", "verify"):
    ROOMS["cli/" + command] = ROOMS["cli"] | {"cli"}
ROOMS["cli/ps"] |= {"comm/recorder"}
ROOMS["cli/run"] |= {"comm/recorder"}
ROOMS["cli/trace"] |= {"base/trace"}
for folder in ROOMS:  # who sees base/, sees the header of base/caller, too
    if folder == "base" or "base" in ROOMS[folder]:
        ROOMS[folder] = ROOMS[folder] | {"base/caller"}
SOURCES = (".c", ".h", ".inc", ".cc", ".cu", ".hpp")
LIBRARY = ("base", "topology", "kernels", "cuda", "transport", "plan", "collectives", "comm", "ddp", "compat")
FILE_LINES, FUNCTION_LINES, FOLDER_FILES = 450, 60, 30
COLUMNS, SCRIPT_COLUMNS = 100, 120
UNFINISHED = re.compile(r"\b(%s)\b" % "|".join(("TO" + "DO", "FIX" + "ME", "X" + "XX")))
LEAVES = re.compile(r"\b(abort|exit|_exit|_Exit|quick_exit)\s*\(")
STDOUT = re.compile(r"\b(printf|vprintf|puts|putchar)\s*\(|\bstdout\b")
BARE_ATOMIC = re.compile(r"\batomic_(?!\w*_explicit\b)(load|store|exchange|compare_exchange|fetch|flag)\w*\s*\(")
SYNC = re.compile(r"\b__sync_\w+")
PLAIN_LOCK = re.compile(r"\b(pthread_(mutex|rwlock)_\w+|PTHREAD_(MUTEX|RWLOCK)_\w+)")
# What makes a descriptor: bare, unless descriptor_above() is right before it. Not methods, nor accept() of two.
DESCRIPTOR = re.compile(r"(?<![\w.>:])(?:open|openat|socket|accept4|epoll_create1?|eventfd|memfd_create|memfd_secret|"
                        r"timerfd_create|signalfd|inotify_init1?|mkstemp|mkostemp|dup|userfaultfd)\s*\(|"
                        r"(?<![\w.>:])(?:fopen|freopen|opendir|pipe|pipe2|socketpair|tmpfile|popen)\s*\(|"
                        r"\bsyscall\s*\(\s*SYS_(?:pidfd_\w+|memfd_\w+|openat2?|userfaultfd)|\bF_DUPFD\w*|"
                        r"(?<![\w.>:])accept\s*\([^(),]*,[^(),]*,")
LIFTED = re.compile(r"descriptor_above\(\s*(?:\(int\)\s*)?$|descriptor_above\([^;]*[?:]\s*(?:\(int\)\s*)?$|"
                    r"descriptor_above\([^;]*\bfcntl\([^;]*$")
DEFINED = re.compile(r"^\w[\w \*]*[\w\*]\s+\**$")  # of a function of that name
# Times are in base/caller/times.h. Seen are literals where something sleeps or waits, and constants whose name says it.
TIMES = "base/caller/times.h"
TIME = re.compile(r"\bstruct (?:timespec|timeval)\s+\w+\s*=\s*\{[^}]*[1-9]|\.tv_(?:sec|nsec|usec)\s*=\s*[1-9]|"
                  r"(?<![\w.>:])(?:(?:clock_)?nanosleep|usleep|sleep)\s*\(|\b(?:__nanosleep|doze_for)\s*\(\s*[\d.]|"
                  r"\bclock_seconds\(\)\s*[-+]\s*[\d.][\d.e-]*\s*[;,)<>]|"
                  r"(?<![\w.>:])(?:poll|epoll_wait)\s*\([^;{]*,\s*[1-9]\d*\s*\)|"
                  r"\bconst\s+(?:double|float|long|int|u?int64_t)\b[^;(]*"
                  r"(?:patience|(?:_|\b)(?:time|timeout|pause|nap|doze|seconds|ms|ns))\s*=\s*[\d.]|"
                  r"\benum\s*\{[^}]*(?:_|\b)(?:seconds|pause|ms|ns)\s*=\s*[\d.]|"
                  r"#[ \t]*define[ \t]+\w*(?:patience|seconds|pause|timeout|_ms|_ns)[ \t]+[\d.]", re.I)
VOLATILE = re.compile(r"(?<!asm )(?<!asm__ )\bvolatile\b")
# A lock of the whole process, as LOCK_AT() begins it.
PROCESS_LOCK = re.compile(r"^(?:\}|\s*static\b).*\bLOCK_(?:SHARED_)?AT\(")

complaints = []


def complain(path, line, text):
    complaints.append(f"{path}:{line}: {text}")


def tracked_files():
    listing = subprocess.run(["git", "ls-files", "--cached", "--others", "--exclude-standard"],
                             capture_output=True, text=True)
    if listing.returncode == 0 and listing.stdout:
        return [path for path in listing.stdout.splitlines() if os.path.isfile(path)]
    found = []
    for folder, folders, names in os.walk("."):
        folders[:] = [f for f in folders if not f.startswith((".git", "build")) and f != "out"]
        found += [os.path.relpath(os.path.join(folder, name)) for name in names]
    return found


def blank(match):
    return re.sub(r"[^\n]", " ", match.group(0))


def code_of(text):
    """The text with comments and the insides of strings made blank; lines keep their numbers."""
    tokens = r'//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\''
    keep = re.compile(r'#\s*include[^\n]*')
    includes = {m.start(): m.end() for m in keep.finditer(text)}

    def replace(match):
        inside = any(start <= match.start() < end for start, end in includes.items())
        return match.group(0) if inside and match.group(0)[0] == '"' else blank(match)

    return re.sub(tokens, replace, text, flags=re.S)


def room_of(path):
    return path.split("/", 1)[0] if "/" in path else ""


def folder_of(path):
    """The longest folder of the path that ROOMS names, else the room."""
    folder = os.path.dirname(path)
    while folder and folder not in ROOMS:
        folder = os.path.dirname(folder)
    return folder or room_of(path)


def includes_of(path, code):
    """(line, included file as seen from the root) of all that are the project's own."""
    for number, line in enumerate(code.splitlines(), 1):
        match = re.match(r'\s*#\s*include\s*"([^"]+)"', line)
        if match and "/" in match.group(1):
            yield number, match.group(1)
        elif match:
            yield number, os.path.join(os.path.dirname(path), match.group(1))


def check_arrows(path, code):
    folder = folder_of(path)
    if folder not in ROOMS:
        return
    for number, target in includes_of(path, code):
        other = folder_of(target)
        if other != folder and room_of(target) != "rondo" and other not in ROOMS[folder]:
            complain(path, number, f"{folder}/ may not include {target}")


def check_circles(codes):
    """Folders, each by itself, must not include each other in a circle."""
    arrows = {}
    for path, code in codes.items():
        for _, target in includes_of(path, code):
            if os.path.dirname(target) != os.path.dirname(path) and target in codes:
                arrows.setdefault(os.path.dirname(path), {})[os.path.dirname(target)] = (path, target)

    def reaches(start, wanted, seen):
        return start == wanted or any(next_one not in seen and not seen.add(next_one) and
                                      reaches(next_one, wanted, seen) for next_one in arrows.get(start, {}))

    for folder, others in arrows.items():
        for other, (path, target) in others.items():
            if reaches(other, folder, {other}):
                complain(path, 1, f"{folder}/ and {other}/ include each other, here {target}")


def check_folders(paths):
    folders = collections.Counter(os.path.dirname(path) for path in paths)
    for folder, count in folders.items():
        if folder and count > FOLDER_FILES:
            complain(folder, 0, f"{count} files, more than {FOLDER_FILES}: a folder has one subject")


def check_words(path, code):
    library = room_of(path) in LIBRARY
    ordered = library and "base" in ROOMS[room_of(path)] | {room_of(path)} and path != "base/lock.h"
    for number, line in enumerate(code.splitlines(), 1):
        if VOLATILE.search(line):
            complain(path, number, "volatile: use an atomic with an explicit order")
        if BARE_ATOMIC.search(line) or SYNC.search(line):
            complain(path, number, "atomic operation without an explicit order")
        if ordered and PLAIN_LOCK.search(line):
            complain(path, number, "a lock has a level: use base/lock.h")
        if library and PROCESS_LOCK.search(line) and "FORK_RENEWS(" not in code:
            complain(path, number, "a forked child may find this lock taken: list it by FORK_RENEWS()")
        if library and LEAVES.search(line):
            complain(path, number, "the library never ends the process: return an error")
        if library and STDOUT.search(line):
            complain(path, number, "the library never writes to stdout: use log_*()")


def check_descriptors(path, code):
    """The library's own descriptors are above 2: base/caller/descriptor.h."""
    if room_of(path) not in LIBRARY or path.startswith(("base/caller/", "cuda/kernels/")):
        return
    for match in DESCRIPTOR.finditer(code):
        before = code[:match.start()]
        line = before[before.rfind("\n") + 1:]
        if not LIFTED.search(before[-400:]) and not DEFINED.match(line):
            complain(path, before.count("\n") + 1,
                     "a descriptor that may be 0, 1 or 2: use base/caller/descriptor.h")


def check_times(path, code):
    if room_of(path) not in LIBRARY + ("cli", "train") or path == TIMES:
        return
    for match in TIME.finditer(code):
        complain(path, code.count("\n", 0, match.end()) + 1, f"a time of its own: all of them are in {TIMES}")


def check_macros(path, code):
    for match in re.finditer(r"^[ \t]*#[ \t]*define\b(?:[^\n\\]|\\\n|\\.)*", code, re.M):
        if re.search(r"\b(return|goto)\b", match.group(0)):
            complain(path, code.count("\n", 0, match.start()) + 1, "a macro must not hide return or goto")


def check_text(path, text):
    lines = text.splitlines()
    columns = COLUMNS if path.endswith(SOURCES) else SCRIPT_COLUMNS
    first = lines[1] if lines and lines[0].startswith("#!") and len(lines) > 1 else lines[0] if lines else ""
    if "SPDX-License-Identifier: BSD-3-Clause" not in first:
        complain(path, 1, "the first line should be the SPDX line")
    if len(lines) > FILE_LINES:
        complain(path, len(lines), f"{len(lines)} lines, more than {FILE_LINES}: one file, one subject")
    for number, line in enumerate(lines, 1):
        if len(line) > columns:
            complain(path, number, f"{len(line)} columns, more than {columns}")
        if line != line.rstrip() or "\t" in line and not path.endswith((".sh", "dev")):
            complain(path, number, "blank at the end of the line, or a tab")
        if UNFINISHED.search(line):
            complain(path, number, "unfinished work belongs into an issue")


def check_functions(paths):
    if not shutil.which("ctags"):
        print("lint: ctags is not installed, lengths of functions are not checked")
        return
    tags = subprocess.run(["ctags", "--languages=C", "--langmap=C:.c.h", "--kinds-C=f", "--fields=+ne", "-f", "-",
                           "-L", "-"], input="\n".join(paths), capture_output=True, text=True, check=True).stdout
    for tag in tags.splitlines():
        fields = tag.split("\t")
        begin, end = re.search(r"\tline:(\d+)", tag), re.search(r"\tend:(\d+)", tag)
        if begin and end and int(end.group(1)) - int(begin.group(1)) + 1 > FUNCTION_LINES:
            length = int(end.group(1)) - int(begin.group(1)) + 1
            complain(fields[1], begin.group(1), f"{fields[0]}() has {length} lines, more than {FUNCTION_LINES}")


@functools.cache
def clang_format():
    """The program of the one version whose layout is ours, or None."""
    tool = shutil.which("clang-format-14") or shutil.which("clang-format")
    version = subprocess.run([tool, "--version"], capture_output=True, text=True).stdout if tool else ""
    return tool if " 14." in version else None


def check_layout(paths):
    tool = clang_format()
    if not tool:
        print("lint: clang-format 14 is not installed, layout is not checked")
        return
    if not paths:
        return
    warnings = subprocess.run([tool, "--dry-run", *paths], capture_output=True, text=True, check=True).stderr
    complained = set()
    for path, line in re.findall(r"^(.+):(\d+):\d+: warning: .*clang-format-violations", warnings, re.MULTILINE):
        if path not in complained:
            complain(path, line, "layout differs from .clang-format: run ./dev format")
        complained.add(path)


def check_header(path):
    compilers = [["gcc", "-std=c17", "-x", "c"], ["clang", "-std=c17", "-x", "c"],
                 ["g++", "-std=c++17", "-x", "c++"], ["clang++", "-std=c++17", "-x", "c++"],
                 ["gcc", "-std=c89", "-x", "c"], ["g++", "-std=c++98", "-x", "c++"]]  # programs are older than Rondo
    if path.endswith(".hpp"):
        compilers = [[compiler, standard, "-x", "c++"] for compiler in ("g++", "clang++")
                     for standard in ("-std=c++11", "-std=c++20")]
    header = os.path.relpath(path, "include")
    for compiler in compilers:
        if not shutil.which(compiler[0]):
            print(f"lint: {compiler[0]} is not installed, {path} is not tried with it")
            continue
        with tempfile.NamedTemporaryFile("w", suffix=".c") as program:
            program.write(f'#include "{header}"\n')
            program.flush()
            result = subprocess.run(compiler + ["-Wall", "-Wextra", "-Wpedantic", "-Werror", "-fsyntax-only",
                                                "-Iinclude", program.name], capture_output=True, text=True)
        if result.returncode:
            complain(path, 1, f"does not compile alone with {' '.join(compiler[:2])}: {result.stderr.strip()}")


def check_symbols(library):
    names = subprocess.run(["nm", "-D", "--defined-only", library], capture_output=True, text=True, check=True).stdout
    symbols = (line.split() for line in names.splitlines() if line.split())
    found = {name.split("@")[0] for *_, kind, name in symbols if kind != "A"}  # A: the version itself
    for name in sorted(found):
        # Sanitizers and coverage add symbols of their own.
        if not name.startswith(("rondo_", "__asan", "__ubsan", "__gcov", "_init", "_fini")):
            complain(library, 0, f"exports {name}, only rondo_* may be public")
    promised = {}
    for header in sorted(os.listdir("include/rondo")):
        with open(os.path.join("include/rondo", header), encoding="utf-8") as file:
            for name in re.findall(r"RONDO_API[^;]*?\b(rondo_\w+)\s*\(", code_of(file.read())):
                promised[name] = header
    for name in sorted(set(promised) - found):
        complain(library, 0, f"{name}() is declared in {promised[name]}, but it is not there")
    for name in sorted(name for name in found - set(promised) if name.startswith("rondo_")):
        complain(library, 0, f"exports {name}(), which no public header declares")


def check_plain(path, text):
    """A test that runs without sanitizers (tests/words.sh), or without as well, has a comment above that says why."""
    reasons = set()
    for number, line in enumerate(text.splitlines(), 1):
        reasons |= set(re.findall(r"(Plain|Twice): \w", line.split("#", 1)[-1])) if "#" in line else set()
        for word in re.findall(r"'(plain|twice)'", line):
            if word.capitalize() not in reasons:
                complain(path, number, f"a {word} test needs a comment \"{word.capitalize()}: ...\" above, why it is")


def lint(library):
    """Judges the files of the current folder; true if there is nothing to complain about."""
    complaints.clear()
    files = tracked_files()
    sources = [path for path in files if path.endswith(SOURCES)]
    scripts = [path for path in files if path.endswith((".py", ".sh", "meson.build")) or path in ("dev", ".ci/run")]
    codes = {}
    for path in sources + scripts:
        with open(path, encoding="utf-8") as file:
            text = file.read()
        check_text(path, text)
        if path.endswith("meson.build"):
            check_plain(path, text)
        if path in sources:
            code = codes[path] = code_of(text)
            check_arrows(path, code)
            check_words(path, code)
            check_descriptors(path, code)
            check_times(path, code)
            check_macros(path, code)
            words.check_sentences(path, text, complain)
            words.check_gone(path, text, complain)
    documents.check(files, complain)
    check_circles(codes)
    check_folders(sources)
    c_files = [path for path in sources if path.endswith((".c", ".h"))]
    check_functions(c_files)
    check_layout(c_files + [path for path in sources if path.endswith(".hpp")])
    for header in files:
        if header.startswith("include/rondo/") and header.endswith((".h", ".hpp")):
            check_header(header)
    if library:
        check_symbols(library)
    print("\n".join(complaints))
    print(f"lint: {len(sources)} C files, {len(scripts)} scripts, {len(complaints)} complaints")
    return not complaints


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--library")
    arguments = parser.parse_args()
    library = os.path.abspath(arguments.library) if arguments.library else None
    os.chdir(os.path.join(os.path.dirname(__file__), "..", ".."))
    return 0 if lint(library) else 1


if __name__ == "__main__":
    sys.exit(main())
