# SPDX-License-Identifier: BSD-3-Clause
"""documents.py - how lint.py judges *.md and docs/errors.causes: files, functions, structs, options, settings and links
they name exist; settings that ranks compare are named as such."""
import fnmatch
import os
import re

ENDINGS = r"\.(?:c|h|cc|cu|inc|py|md|build|pml|xml)"
# Names of others, which our code need not contain.
THEIRS = {"nccl.h", "nccl_device.h", "summary.md", "machine.xml", "docs/gpu-results/2026-01-31-h100/",
          "ntasks-per-node"}
FOREIGN = re.compile(r"(cu|nccl|MPI|ibv|rdma|mpi|PMIx)_?[A-Z]|(cu|cuda|nccl|nvml|torch|MPI|ibv|rdma)\w*$")


def spans(text):
    """(line, words) of what stands in backticks, and in blocks of code."""
    block = False
    for number, line in enumerate(text.splitlines(), 1):
        if line.startswith("```"):
            block = not block
        elif not block:
            yield from ((number, span) for span in re.findall(r"`([^`]+)`", line))


def braces(path):
    """a/{b,c}.h stands for two paths."""
    match = re.search(r"\{([^{}]*,[^{}]*)\}", path)
    if not match:
        return [path]
    return [full for one in match.group(1).split(",")
            for full in braces(path[:match.start()] + one.strip() + path[match.end():])]


class Tree:
    """What a document may name: paths that git tracks, and the words of all files but documents."""

    def __init__(self, files):
        folders = {folder + "/" for path in files for folder in parents(path)}
        self.paths = set(files) | folders
        self.top = {path.split("/", 1)[0] for path in files if "/" in path}
        self.words, self.settings, self.options = set(), set(), set()
        for path in files:
            if path.endswith((".md", ".causes", ".svg", ".json", ".xml")) or "/lint/" in path:
                continue
            with open(path, encoding="utf-8", errors="replace") as file:
                text = file.read()
            self.words |= set(re.findall(r"\w+", text))
            if path.startswith(("include/", "base/setting")):
                self.settings |= set(re.findall(r"RONDO_\w+", text))
            self.options |= set(re.findall(r'(?:"|--)([a-z][a-z-]+)', text))

    def has_path(self, path):
        wanted = path if path in self.paths or path.endswith("/") else path.rstrip("/")
        return any(fnmatch.fnmatch(there, pattern) for pattern in (wanted, "*/" + wanted, wanted + "/")
                   for there in (self.paths if "*" in wanted else self.paths & {pattern})) or \
            any(there.endswith("/" + wanted) for there in self.paths)


def parents(path):
    while "/" in path:
        path = path.rsplit("/", 1)[0]
        yield path


def check_span(tree, span):
    """Sentences about the words of a span."""
    for path in re.findall(r"(?<![\w./<-])[\w.*{},-]+(?:/[\w.*{},-]+)*/?", span):
        inside = "/" in path and path.split("/", 1)[0] in tree.top
        if inside or re.fullmatch(r"[\w/*{},-]+" + ENDINGS, path):
            yield from (f"there is no {one}" for one in braces(path)
                        if one not in THEIRS and not tree.has_path(one))
    for name in re.findall(r"\b([a-z]\w+)\(", span):
        if name not in tree.words and not FOREIGN.match(name) and not name.startswith("rondo_"):
            yield f"nothing is called {name}()"
    for name in re.findall(r"\bstruct (\w+)", span):
        if name not in tree.words:
            yield f"there is no struct {name}"
    for name in re.findall(r"(?<![\w-])--([a-z][a-z-]+)", span):
        if name not in tree.options and name not in THEIRS:
            yield f"there is no option --{name}"


def check_agreement(complain):
    """docs/configuration.md names the settings that ranks are compared by when they meet."""
    page = "docs/configuration.md"
    with open("comm/settings.c", encoding="utf-8") as file:
        compared = sorted(set(re.findall(r"\b(RONDO_[A-Z_]+)=%", file.read())))
    with open(page, encoding="utf-8") as file:
        named = file.read().split("must be the same on every rank")[0]
    for name in compared:
        if f"`{name}`" not in named:
            complain(page, 1, f"{name} has to be the same on every rank, too: tests/base/configuration.c")


def check(files, complain):
    if "comm/settings.c" in files:
        check_agreement(complain)
    tree = Tree(files)
    for path in (path for path in files if path.endswith((".md", ".causes"))):
        with open(path, encoding="utf-8") as file:
            text = file.read()
        for line, span in spans(text):
            for sentence in check_span(tree, span):
                complain(path, line, sentence)
        for line, words in enumerate(text.splitlines(), 1):
            for name in re.findall(r"\b(rondo_\w+)\(", words):
                if name not in tree.words:
                    complain(path, line, f"nothing is called {name}()")
            for name in re.findall(r"\bRONDO_[A-Z_]*[A-Z]\b(?!_)", words):
                if name not in tree.settings:
                    complain(path, line, f"{name} is no setting, nor in a public header")
            for link in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", words):
                if not os.path.exists(os.path.join(os.path.dirname(path), link)):
                    complain(path, line, f"{link} does not exist")
