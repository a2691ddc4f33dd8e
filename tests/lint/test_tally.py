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
        status, lines = self.tally([BAD, OTHER], [GOOD] * tally.AGAIN)
        self.assertEqual((status, lines[-1]), (0, "3 passed, 0 failed"))
        self.assertTrue(lines[0].startswith("UNSTEADY"), lines)

    def test_it_has_to_be_right_each_time(self):
        self.assertEqual(self.tally([BAD], [GOOD, GOOD, BAD])[0], 1)
        self.assertEqual(self.tally([BAD], [GOOD] * (tally.AGAIN - 1))[0], 1)
        self.assertEqual(self.tally([BAD], [OTHER] * tally.AGAIN)[0], 1)

    def test_no_log_is_a_failure(self):
        self.assertEqual(self.tally(None)[0], 1)
        self.assertEqual(self.tally([])[0], 1)

    def test_few_failures_are_run_again(self):
        self.assertEqual(tally.failed_tests([GOOD, OTHER]), [])
        self.assertEqual(tally.failed_tests([BAD, OTHER]), ["calls"])
        self.assertEqual(tally.failed_tests([BAD] * (tally.UNSTEADY_MOST + 1)), [])


if __name__ == "__main__":
    unittest.main()
