#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""test_figures.py - docs/course/figures.py understands files of several sweeps, with and without other libraries."""
import contextlib
import io
import json
import os
import sys
import tempfile
import unittest
from unittest import mock

sys.dont_write_bytecode = True  # documents are installed as they lie there
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../docs/course"))
import figures  # pylint: disable=wrong-import-position


def row(library, algorithm, times, ratio=None):
    """Four rounds of 1, 2, 3 and 4 us, times `times`; `ratio` to the first library."""
    rounds = [times * us for us in (1, 2, 3, 4)]
    return {"library": library, "algorithm": algorithm, "collective": "all_reduce", "ranks": 2, "bytes": 1000,
            "available": True, "rounds_us": rounds, "fastest_us": rounds, "median_us": 2.5 * times, "min_us": times,
            "algbw_GBps": 0.4 / times, "busbw_GBps": 0.4 / times, "spread": 0.4, "ratio": ratio, "ratio_low": ratio,
            "ratio_high": ratio, "ratio_confidence": ratio and 0.875}


def unavailable(library, algorithm):
    return {"library": library, "algorithm": algorithm, "collective": "all_reduce", "ranks": 2, "bytes": 1000,
            "available": False, "rounds_us": [], "fastest_us": []}


class Figures(unittest.TestCase):
    def judge(self, rows):
        with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
            json.dump({"rows": rows}, file)
            file.flush()
            output = io.StringIO()
            with mock.patch.object(sys, "argv", ["figures.py", file.name]), contextlib.redirect_stdout(output):
                figures.main()
        return output.getvalue().splitlines()[-1]

    def test_each_algorithm_is_compared_in_its_own_turns(self):
        self.assertEqual(self.judge([row("rondo", "ring", 1), row("openmpi", "-", 3, 3),
                                     row("rondo", "tree", 2), row("openmpi", "-", 4, 2)]),
                         "4 rows, 0 figures are not what the samples give")

    def test_two_algorithms_without_another_library_are_not_compared(self):
        self.assertEqual(self.judge([row("rondo", "ring", 1), row("rondo", "tree", 2)]),
                         "2 rows, 0 figures are not what the samples give")

    def test_beside_an_algorithm_that_has_no_time_there_is_no_ratio(self):
        self.assertEqual(self.judge([row("rondo", "ring", 1), row("openmpi", "-", 3, 3),
                                     unavailable("rondo", "tree"), row("openmpi", "-", 4)]),
                         "3 rows, 0 figures are not what the samples give")

    def test_a_wrong_ratio_is_found(self):
        self.assertEqual(self.judge([row("rondo", "ring", 1), row("openmpi", "-", 3, 4)]),
                         "2 rows, 3 figures are not what the samples give")


if __name__ == "__main__":
    unittest.main()
