#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""test_tally.py - what tally.py makes of logs: what failed, and what is unsteady."""
import contextlib
import io
import json
import os
import tempfile
import unittest

import tally

GOOD = {"name": "rondo:gpu / calls", "result": "OK", "stdout": "1..2\nok 1 a\nok 2 b\n"}
BAD = {"name": "rondo:gpu / calls", "result": "ERROR", "stdout": "1..2\nok 1 a\nnot ok 2 b\n  why\n"}
OTHER = {"name": "rondo:comm+stress / turn", "result": "OK", "stdout": ""}


class Tally(unittest.TestCase):
    def tally(self, tests, again=None):
        with tempfile.TemporaryDirectory() as folder:
            for name, logged in (("testlog", tests), ("again", again)):
                if logged is not None:
                    with open(os.path.join(folder, name + ".json"), "w", encoding="utf-8") as file:
                        file.writelines(json.dumps(test) + "\n" for test in logged)
            output = io.StringIO()
            with contextlib.redirect_stdout(output):
                status = tally.tally([os.path.join(folder, "testlog.json")])
        return status, output.getvalue().splitlines()

    def test_cases_are_counted(self):
        self.assertEqual(self.tally([GOOD, OTHER])[0], 0)
        self.assertEqual(self.tally([GOOD, OTHER])[1][-1], "3 passed, 0 failed")

    def test_a_failure_is_one_and_is_quoted(self):
        status, lines = self.tally([BAD, OTHER])
        self.assertEqual((status, lines[-1]), (1, "2 passed, 1 failed"))
        self.assertIn("      why", lines)

    def test_a_program_that_is_right_alone_is_unsteady_and_named(self):
        status, lines = self.tally([BAD, OTHER], [GOOD])
        self.assertEqual((status, lines[-1]), (0, "3 passed, 0 failed"))
        self.assertTrue(lines[0].startswith("UNSTEADY"), lines)
        self.assertIn("unsteady: calls: b: why", lines)

    def test_a_third_one_is_a_failure(self):
        tests = [dict(BAD, name=f"rondo:gpu / {name}") for name in "abc"]
        alone = [dict(GOOD, name=f"rondo:gpu / {name}") for name in "abc"]
        self.assertEqual(self.tally(tests[:2], alone)[0], 0)
        status, lines = self.tally(tests, alone)
        self.assertEqual((status, lines[-1]), (1, "6 passed, 3 failed"))

    def test_it_has_to_be_right_alone(self):
        self.assertEqual(self.tally([BAD], [BAD])[0], 1)
        self.assertEqual(self.tally([BAD], [OTHER])[0], 1)

    def test_the_end_says_what_failed_why_and_how_to_repeat_it(self):
        failed = dict(BAD, stdout="not ok 1 a\n  case a\n  Assertion failed: 1 is not 2\n")
        _, lines = self.tally([failed])
        self.assertIn("failed: calls: a: Assertion failed: 1 is not 2", lines)
        self.assertTrue(lines[lines.index("failed: calls: a: Assertion failed: 1 is not 2") + 1].endswith(" calls"))

    def test_what_failed_is_kept(self):
        with tempfile.TemporaryDirectory() as folder:
            total = tally.Tally()
            total.failed, total.unsteady = [("build-asan", BAD)], [("build-test", OTHER)]
            total.keep(folder)
            with open(os.path.join(folder, "failed"), encoding="utf-8") as file:
                self.assertEqual(file.read(), "build-asan calls\nbuild-test turn\n")
            self.assertTrue(os.path.exists(os.path.join(folder, "unsteady-build-test-turn.txt")))

    def test_a_line_tells_that_a_suite_is_over(self):
        with tempfile.NamedTemporaryFile("w", encoding="utf-8") as listed:
            listed.write("rondo:gpu / calls\nrondo:comm+stress / turn\nrondo:gpu / forms\n")
            listed.flush()
            output = io.StringIO()
            with contextlib.redirect_stdout(output):
                tally.watch(listed.name, ["1/3 rondo:gpu / calls   OK   2.00s  2 subtests passed\n",
                                          "2/3 rondo:comm+stress / turn  FAIL  1.00s exit status 1\n", "a word\n",
                                          "3/3 rondo:gpu / forms   OK   2.00s\n"])
        lines = output.getvalue().splitlines()
        self.assertEqual(len(lines), 3, lines)
        self.assertIn("turn: FAIL after 1.00 s", lines[0])
        self.assertIn("comm: 1 programs, 1 s; 2 of 3", lines[1])
        self.assertIn("gpu: 2 programs, 4 s; 3 of 3", lines[2])

    def test_no_log_is_a_failure(self):
        self.assertEqual(self.tally(None)[0], 1)
        self.assertEqual(self.tally([])[0], 1)

    def test_few_failures_are_run_again(self):
        self.assertEqual(tally.failed_tests([GOOD, OTHER]), [])
        self.assertEqual(tally.failed_tests([BAD, OTHER]), ["calls"])
        self.assertEqual(tally.failed_tests([BAD] * (tally.UNSTEADY_MOST + 1)), [])


if __name__ == "__main__":
    unittest.main()
