#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""test_heap.py - programs with librondo-heap.so preloaded. Usage: test_heap.py LIBRARY PROGRAM RONDO. Prints TAP."""
import os
import pathlib
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../.."))
import cases  # noqa: E402  tests/cases.py

library, program, rondo = sys.argv[1:4]


def run(*words, **settings):
    # A heap that MALLOC_PERTURB_ does not reach would look as if it were wrong.
    environment = {**os.environ, "LD_PRELOAD": library, **settings}
    environment.pop("MALLOC_PERTURB_", None)
    done = subprocess.run(words, env=environment, capture_output=True, text=True, timeout=100)
    assert done.returncode == 0, f"{words}: status {done.returncode}\n{done.stdout}{done.stderr}"
    return done.stdout + done.stderr


def blocks_are_of_the_heap_where_they_are_large():
    run(program, "blocks")


def arrays_grow_within_their_pages_and_beyond():
    run(program, "growth")


def descriptors_of_a_program_that_has_closed_all_stay_its_own():
    run("sh", "-c", "ulimit -n 256 && exec \"$0\" descriptors", program)


def threads_allocate_and_free_side_by_side():
    run(program, "threads")


def a_forked_child_has_memory_of_its_own():
    run(program, "children")


def a_forked_child_without_memory_for_a_copy_never_writes_into_its_parent():
    assert "no memory for its own copy of 16777216 bytes" in run(program, "poor_children")


def handlers_of_fork_find_the_memory_of_the_child():
    run(program, "handlers")


def an_exhausted_heap_is_no_failure():
    run(program, "exhaustion", RONDO_HEAP_BYTES="64M")


def ranks_reduce_memory_of_malloc():
    run(rondo, "run", "-n", "3", "--", program, "rank")


def programs_without_rondo_run_as_ever():
    assert run("sh", "-c", "seq 200000 | sort -rn | head -n 1").strip() == "200000"
    code = "import os; x = bytearray(5 << 20); p = os.fork(); x[0] = p > 0; p and os.wait(); print(x[0])"
    assert sorted(run(sys.executable, "-c", code).split()) == ["0", "1"]


if __name__ == "__main__":
    sys.exit(cases.run(cases.named([
        blocks_are_of_the_heap_where_they_are_large, arrays_grow_within_their_pages_and_beyond,
        descriptors_of_a_program_that_has_closed_all_stay_its_own, threads_allocate_and_free_side_by_side,
        a_forked_child_has_memory_of_its_own, a_forked_child_without_memory_for_a_copy_never_writes_into_its_parent,
        handlers_of_fork_find_the_memory_of_the_child, an_exhausted_heap_is_no_failure, ranks_reduce_memory_of_malloc,
        programs_without_rondo_run_as_ever])))
