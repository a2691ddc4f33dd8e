#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""test_examples.py - programs of examples/python on 3 ranks: what they print. TAP."""
import importlib.util
import os
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import cases  # noqa: E402  tests/cases.py

EXAMPLES = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "examples", "python")
WANTED = {
    "all_reduce.py": [f"rank {rank} of 3: 3 6" for rank in range(3)],
    "background.py": [f"rank {rank}: 4 averages" for rank in range(3)],
    "go_on.py": ["rank 0 of 2: 2", "rank 1 of 2: 2"],
    "jax_sum.py": [f"rank {rank}: 4 weights are the same everywhere" for rank in range(3)],
    "mpi_habits.py": [f"rank {rank}: 3 rows" for rank in range(3)],
}


def trying(name):
    def try_it():
        if name.startswith("jax") and importlib.util.find_spec("jax") is None:
            return "this Python has no JAX, which the example shows"
        command = [os.environ["TESTED_RONDO"], "run", "-n", "3", sys.executable, os.path.join(EXAMPLES, name)]
        result = subprocess.run(command, capture_output=True, text=True, timeout=240, check=False)
        said = [line for line in result.stdout.splitlines() if "has ended" not in line]
        assert result.returncode == 0 and sorted(said) == WANTED[name], result.stdout + result.stderr
        return None
    return try_it


def every_example_is_tried():
    assert sorted(os.listdir(EXAMPLES)) == sorted(WANTED), os.listdir(EXAMPLES)


if __name__ == "__main__":
    try:
        import numpy  # noqa: F401
    except ImportError:
        print("1..0 # SKIP this Python has no NumPy, which the examples use")
        sys.exit(0)
    sys.exit(cases.run(cases.named([every_example_is_tried]) + [(name, trying(name)) for name in WANTED]))
