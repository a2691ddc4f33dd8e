# SPDX-License-Identifier: BSD-3-Clause
"""test_trace_files.py - which files `rondo trace FILE` takes for ranks of a job, and what it says of others. Arguments
as of test_trace.py."""
import os
import subprocess
import sys
import tempfile

import test_trace
from test_trace import Job, cases


class Folder(tempfile.TemporaryDirectory):
    """One whose name has all signs that mean something in a pattern."""

    def __init__(self):
        super().__init__(suffix="[1]*?\\x")


def a_name_is_no_pattern():
    job = Job(folder=Folder())
    assert len(job.sums()) == 2


def said_of(job):
    done = subprocess.run([test_trace.RONDO, "trace", job.file], capture_output=True, text=True,
                          timeout=cases.patience(test_trace.PATIENCE))
    assert done.returncode == 0 and "1 process on 1 machine" in done.stdout, done
    return done.stderr


def a_rank_whose_file_cannot_be_taken_is_named():
    job = Job()
    path = job.file + ".1"
    with open(path, "rb") as file:
        whole = file.read()
    with open(job.file + ".json", "w", encoding="utf-8") as file:
        file.write("{}")
    version = 8  # bytes of the magic number before it
    for content, why in ((whole[:-4096], "it is cut off"), (whole[:4096], "it is cut off, or no trace"),
                         (b"", "it is cut off, or no trace"), (bytes(len(whole)), "it is no trace"),
                         (whole[:version] + b"\xff" + whole[version + 1:], "another version of Rondo wrote it")):
        with open(path, "wb") as file:
            file.write(content)
        said = said_of(job)
        assert said == f"rondo trace: {path} is left out: {why}\n", said
    os.unlink(path)
    assert said_of(job) == ""


if __name__ == "__main__":
    sys.exit(cases.run(cases.named([a_name_is_no_pattern, a_rank_whose_file_cannot_be_taken_is_named])))
