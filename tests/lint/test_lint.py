#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""test_lint.py - does lint.py refuse what it says it refuses? Each case is one bad file in a tree of its own."""
import contextlib
import io
import os
import shutil
import tempfile
import unittest

import lint

HERE = os.path.dirname(os.path.abspath(__file__))
SPDX = "/* SPDX-License-Identifier: BSD-3-Clause */\n"


def judge(files):
    """Is a tree of these files accepted, and what is printed of it."""
    output = io.StringIO()
    with tempfile.TemporaryDirectory() as root:
        shutil.copy(os.path.join(HERE, "..", "..", ".clang-format"), root)
        for path, text in files.items():
            os.makedirs(os.path.join(root, os.path.dirname(path)), exist_ok=True)
            with open(os.path.join(root, path), "w", encoding="utf-8") as file:
                file.write(text)
        with contextlib.chdir(root), contextlib.redirect_stdout(output):
            accepted = lint.lint(None)
    return accepted, output.getvalue()


class Lint(unittest.TestCase):
    def refuses(self, path, text, words):
        self.refuses_files({path: text}, words)

    def refuses_files(self, files, words):
        accepted, output = judge(files)
        self.assertFalse(accepted, output)
        self.assertIn(words, output)

    def accepts(self, path, text):
        accepted, output = judge({path: text})
        self.assertTrue(accepted, output)

    def test_a_clean_file_passes(self):
        self.accepts("plan/a.c", SPDX + '#include "plan/a.h"\n#include "base/fail.h"\n#include <stdio.h>\n')

    def test_a_layout_of_its_own_is_refused_once(self):
        accepted, output = judge({"plan/a.c": SPDX + "int  a;\nint  b;\n", "plan/b.c": SPDX + "int c;\n"})
        self.assertFalse(accepted, output)
        self.assertIn("plan/a.c:2: layout differs", output)
        self.assertEqual(output.count("layout differs"), 1, output)

    def test_an_arrow_that_points_up_is_refused(self):
        self.refuses("plan/a.c", SPDX + '#include "comm/state/comm.h"\n', "plan/ may not include comm/state/comm.h")

    def test_an_arrow_that_points_up_within_a_room_is_refused(self):
        self.refuses("comm/failure/a.c", SPDX + '#include "comm/engine/run.h"\n', "comm/failure/ may not include")

    def test_folders_that_include_each_other_are_refused(self):
        self.refuses_files({"tests/a/a.h": SPDX + '#include "tests/b/b.h"\n',
                            "tests/b/b.h": SPDX + '#include "tests/c/c.h"\n',
                            "tests/c/c.h": SPDX + '#include "tests/a/a.h"\n'}, "include each other")

    def test_a_comment_that_needs_the_one_before_is_refused(self):
        for words in ("What was left of it.", "As a(), for others.", "Is it there?", "... and not any more.",
                      "Where the sum begins."):
            self.refuses("base/a.h", SPDX + f"/* {words} */\nint a(void);\n", "needs the sentence before it")

    def test_a_comment_that_is_a_sentence_passes(self):
        for words in ("True if it is there.", "Where ranks share cores, this returns 1."):
            self.accepts("base/a.h", SPDX + f"/* {words} */\nint a(void);\n")
        self.accepts("base/a.c", SPDX + "int a(void)\n{\n    /* What came goes back. */\n    return 0;\n}\n")

    def test_a_full_folder_is_refused(self):
        self.refuses_files({f"base/a{i}.h": SPDX for i in range(31)}, "31 files")

    def test_a_folder_of_the_command_does_not_look_into_another(self):
        self.refuses("cli/run/a.c", SPDX + '#include "cli/bench/a.h"\n', "cli/run/ may not include cli/bench/a.h")
        self.refuses("cli/a.c", SPDX + '#include "cli/bench/a.h"\n', "cli/ may not include cli/bench/a.h")
        self.accepts("cli/run/a.c", SPDX + '#include "cli/run/b.h"\n#include "cli/a.h"\n')

    def test_the_benchmark_sees_only_the_public_header(self):
        self.refuses("bench/a.c", SPDX + '#include "base/clock.h"\n', "bench/ may not include")

    def test_a_textbook_file_that_looks_behind_is_refused(self):
        self.refuses("collectives/a.c", SPDX + '#include "collectives/levels/compose.h"\n',
                     "may not include collectives/levels/compose.h")

    def test_a_missing_spdx_line_is_refused(self):
        self.refuses("base/a.c", "int a;\n", "SPDX")

    def test_a_long_file_is_refused(self):
        self.refuses("base/a.c", SPDX + "/* */\n" * 450, "451 lines")

    def test_a_long_function_is_refused(self):
        self.refuses("base/a.c", SPDX + "void f(void)\n{\n" + "    f();\n" * 60 + "}\n", "f() has 63 lines")

    def test_leaving_the_process_is_refused_in_the_library_only(self):
        text = SPDX + "void f(void)\n{\n    exit(1);\n}\n"
        self.refuses("comm/a.c", text, "never ends the process")
        self.accepts("cli/a.c", text)

    def test_stdout_is_refused_in_the_library(self):
        self.refuses("comm/a.c", SPDX + 'void f(void)\n{\n    printf("a");\n}\n', "never writes to stdout")

    def test_words_in_comments_and_strings_are_no_code(self):
        self.accepts("comm/a.c", SPDX + '/* exit(1), volatile */\nconst char *a = "exit(1); volatile";\n')

    def test_a_descriptor_that_may_be_stdout_is_refused_in_the_library(self):
        for call in ('open("a", 0)', 'socket(1, 2, 3)', 'eventfd(0, 0)', 'pipe2(ends, 0)', 'fopen("a", "r")',
                     "fcntl(0, F_DUPFD_CLOEXEC, 0)", "syscall(SYS_pidfd_open, 1, 0)"):
            self.refuses("comm/a.c", SPDX + f"int f(void)\n{{\n    return {call};\n}}\n", "may be 0, 1 or 2")

    def test_a_descriptor_that_was_lifted_is_accepted(self):
        self.accepts("comm/a.c", SPDX + "int f(void)\n{\n    return descriptor_above(socket(1, 2, 3));\n}\n")
        self.accepts("comm/b.c", SPDX + "int f(struct a *a)\n{\n    return a->open(a);\n}\n")
        self.accepts("cli/a.c", SPDX + "int f(void)\n{\n    return socket(1, 2, 3);\n}\n")

    def test_a_time_that_is_not_in_the_header_is_refused(self):
        for text in ("const struct timespec a = {0, 1000 * 1000};", "const struct timeval a = {.tv_sec = 1};",
                     "static const double look_time = 0.02, end_time = 0.3;", "static const double PATIENCE = 1;",
                     "#define A_SECONDS 2.0", "enum { A = 1, POLL_MS = 10 };",
                     "int f(void)\n{\n    return usleep(A);\n}", "int f(void)\n{\n    return poll(NULL, 0, 10);\n}",
                     "int f(void)\n{\n    return nanosleep(&a, NULL);\n}",
                     "double f(void)\n{\n    return clock_seconds() + 5;\n}",
                     "void f(void)\n{\n    doze_for(1e-3);\n}"):
            for path in ("comm/a.c", "cli/a.c", "ddp/a.c"):
                self.refuses(path, SPDX + text + "\n", "a time of its own")

    def test_what_is_no_time_of_its_own_passes(self):
        text = ("static const double latency = 1e-6;\nconst struct timespec none = {0, 0};\n\nint f(void)\n{\n"
                "    doze_for(DOZE_PEER);\n    return poll(a, 1, -1) + poll(a, 1, 0) + a->sleep(3);\n}\n")
        self.accepts("comm/a.c", SPDX + text)
        self.accepts("base/caller/times.h", SPDX + "#define PATIENCE 1.0\n")
        self.accepts("tests/a.c", SPDX + "const struct timespec doze = {0, 1000};\n")

    def test_volatile_is_refused(self):
        self.refuses("cli/a.c", SPDX + "volatile int a;\n", "volatile")

    def test_a_lock_without_a_level_is_refused(self):
        text = SPDX + "static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;\n"
        self.refuses("comm/a.c", text, "a lock has a level")
        self.refuses("base/a.c", SPDX + "void f(void)\n{\n    pthread_rwlock_rdlock(&a);\n}\n", "a lock has a level")
        self.accepts("base/lock.h", text)
        self.accepts("compat/a.c", text)  # it sees nothing of base/

    def test_a_lock_that_a_forked_child_may_find_taken_is_refused(self):
        text = SPDX + "static struct lock lock = LOCK_AT(LOCK_HEAP);\n"
        self.refuses("comm/a.c", text, "FORK_RENEWS")
        self.refuses("comm/a.c", SPDX + "static struct {\n    int a;\n} one = {.lock = LOCK_SHARED_AT(LOCK_HEAP)};\n",
                     "FORK_RENEWS")
        inside = "void f(void)\n{\n    static struct lock a = LOCK_AT(LOCK_HEAP);\n}\n"
        self.refuses("comm/a.c", SPDX + inside, "FORK_RENEWS")
        self.accepts("comm/a.c", text + "FORK_RENEWS({.lock = &lock});\n")
        self.accepts("comm/a.c", SPDX + "void f(void)\n{\n    struct lock lock = LOCK_AT(LOCK_HEAP);\n}\n")

    def test_an_atomic_without_order_is_refused(self):
        self.refuses("base/a.c", SPDX + "void f(void)\n{\n    atomic_store(&a, 1);\n}\n", "explicit order")
        self.refuses("base/a.c", SPDX + "void f(void)\n{\n    atomic_fetch_or(&a, 1);\n}\n", "explicit order")

    def test_atomics_with_an_order_pass(self):
        self.accepts("base/a.c", SPDX + "void f(void)\n{\n    atomic_fetch_add_explicit(&a, 1, b);\n}\n")

    def test_a_macro_with_return_is_refused(self):
        self.refuses("base/a.c", SPDX + "#define CHECK(x) \\\n    if (x)   \\\n    return x\n", "must not hide")

    def test_wide_lines_are_refused(self):
        self.refuses("base/a.c", SPDX + "/* " + "a" * 95 + " */\n", "columns")

    def test_unfinished_work_is_refused(self):
        self.refuses("base/a.c", SPDX + "/* TO" + "DO: later */\n", "unfinished")

    def test_a_plain_test_without_a_reason_is_refused(self):
        test = "# SPDX-License-Identifier: BSD-3-Clause\n{}test('a', a, suite: ['b', 'plain'])\n"
        self.refuses("tests/b/meson.build", test.format(""), "why it is")
        self.accepts("tests/b/meson.build", test.format("# Plain: it preloads a library.\n"))

    def test_a_header_that_does_not_compile_alone_is_refused(self):
        self.refuses("include/rondo/a.h", SPDX + "size_t a(void);\n", "does not compile alone")

    def test_a_document_names_what_there_is(self):
        there = {"base/a.c": SPDX + "void rondo_do(void);\n", "base/setting.c": SPDX + '/* "RONDO_LOG" "--bytes" */\n'}
        good = "`base/a.c`, `a.c`, `base/{a,setting}.c`, `rondo_do()`, RONDO_LOG, `--bytes`, [here](base/a.c)\n"
        accepted, output = judge({**there, "A.md": good})
        self.assertTrue(accepted, output)
        for bad, words in (("`base/b.c`", "there is no base/b.c"), ("`b.c`", "there is no b.c"),
                           ("`base/{a,b}.c`", "no base/b.c"), ("`rondo_undo()`", "nothing is called rondo_undo"),
                           ("RONDO_LOK", "RONDO_LOK is no setting"), ("`--byte`", "there is no option --byte"),
                           ("`struct a_b`", "there is no struct a_b"), ("[here](base/b.c)", "base/b.c does not exist")):
            self.refuses_files({**there, "A.md": bad}, words)
        self.refuses_files({**there, "docs/errors.causes": "# SPDX\nbase | rondo_undo() failed | wait"},
                           "errors.causes:2: nothing is called rondo_undo()")


if __name__ == "__main__":
    unittest.main(verbosity=2)
