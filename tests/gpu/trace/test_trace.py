# SPDX-License-Identifier: BSD-3-Clause
"""test_trace.py - calls on CUDA streams in traces. Arguments: the program whose calls are traced, and the rondo
command."""
import collections
import json
import os
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", ".."))
import cases  # noqa: E402  tests/cases.py

TRACED, RONDO = map(os.path.abspath, sys.argv[1:3])
PATIENCE = 60
IMAGE = {name: value for name, value in os.environ.items() if name == "RONDO_CUDA_IMAGE"}
TIMES, HELD, LATE = 20, 60000, 50000  # as traced.c has them
CLOCK = 0.003  # microseconds: times are rounded to nanoseconds


class Job:
    """A job that has run: what it measured, and rows of the time line by rank and stream."""

    def __init__(self, **more):
        with tempfile.TemporaryDirectory() as folder:
            file = os.path.join(folder, "t")
            environment = {**cases.clean_environment(), "RONDO_TRACE": file, "RONDO_TIMEOUT": "600", **IMAGE,
                           **more}
            done = self.run([RONDO, "run", "-n", "2", TRACED], environment)
            self.measured = collections.defaultdict(list)
            for line in done.splitlines():
                rank, name, microseconds = line.split()
                self.measured[int(rank), name].append(float(microseconds))
            self.report = self.run([RONDO, "trace", file])
            events = json.loads(self.run([RONDO, "trace", file, "--chrome", "-"]))["traceEvents"]
        named = {(event["pid"], event["tid"]) for event in events
                 if event["ph"] == "M" and event["args"].get("name", "").startswith("CUDA stream ")}
        self.rows = collections.defaultdict(list)
        for event in events:
            if event.get("cat") in ("queued", "device"):
                assert (event["pid"], event["tid"]) in named, event
                self.rows[event["pid"], event["tid"]].append(event)

    @staticmethod
    def run(command, environment=None):
        done = subprocess.run(command, env=environment, capture_output=True, text=True,
                              timeout=cases.patience(PATIENCE))
        assert done.returncode == 0, f"{command}: status {done.returncode}\n{done.stderr}"
        return done.stdout

    def rows_of(self, rank):
        """The first stream's, and the other's."""
        return [row for (process, _), row in sorted(self.rows.items()) if process == rank]


def end_of(event):
    return event["ts"] + event["dur"]


def check_row(row):
    """A stream comes to one call after the other, and each wait ends where its call begins."""
    for event, following in zip(row, row[1:]):
        assert end_of(event) <= following["ts"] + CLOCK, (event, following)
        if event["cat"] == "queued" and event["args"]["begun"]:
            assert following["cat"] == "device" and event["args"]["number"] == following["args"]["number"], row
            assert abs(end_of(event) - following["ts"]) <= CLOCK, (event, following)
            assert event["name"] == "in the stream: " + following["name"], (event, following)


def check_rank(job, rank):
    first, other = job.rows_of(rank)
    check_row(first)
    check_row(other)
    calls = [event for event in first if event["cat"] == "device"]
    names = ["alone"] * TIMES + ["held", "late", "pair"]
    assert len(calls) == len(names), calls
    measured = [microseconds for name in ("alone", "held", "late", "pair") for microseconds in job.measured[rank, name]]
    for name, call, microseconds in zip(names, calls, measured):
        kind = "2 messages" if name == "pair" else "all_reduce of 4096 float32, sum, "
        assert call["name"].startswith(kind) and call["args"]["begun"] and call["args"]["ended"], (name, call)
        assert call["args"]["waited"] >= 0 and call["dur"] >= 0, (name, call)
        assert call["args"]["waited"] + call["dur"] <= microseconds + CLOCK, f"{name}: {call} took {microseconds} us"
    held, late = calls[TIMES:TIMES + 2]
    assert held["args"]["waited"] >= 0.8 * HELD, held
    assert held["dur"] <= job.measured[rank, "held"][0] - 0.8 * HELD, held
    call, = [event for event in other if event["cat"] == "device"]
    assert call["args"]["waited"] + call["dur"] <= job.measured[rank, "other"][0] + CLOCK, call
    return late, [event for event in first if not event["args"]["begun"]]


def check(**more):
    job = Job(**more)
    early, waiting = check_rank(job, 0)
    late, none = check_rank(job, 1)
    assert end_of(early) >= late["ts"] - CLOCK, (early, late)
    assert len(waiting) == 1 and waiting[0]["args"]["waited"] >= 0.5 * LATE, waiting
    assert not none, none
    assert "Calls on CUDA streams: how long they waited there, and ran" in job.report, job.report
    row = next(row for row in job.report.splitlines() if "2 still waited at the end" in row)
    assert row.split()[0] == str(2 * (TIMES + 3) + 2), row
    assert any(row.endswith("  2 messages") and row.split()[0] == "2" for row in job.report.splitlines()), job.report


def streams_have_rows_with_waits_and_calls():
    check()


def so_have_streams_of_ranks_that_share_a_device():
    check(CUDA_STANDIN_DEVICES="1")


def operations_of_streams_are_timed_as_kernels_are():
    check(RONDO_ALGORITHM="zero_copy")


def calls_by_way_of_the_host_are_calls_of_their_communicator():
    job = Job(RONDO_CUDA="host")
    assert not job.rows and sum("all_reduce of 4096 float32, sum" in row for row in job.report.splitlines()), job.report


if __name__ == "__main__":
    sys.exit(cases.run(cases.named([streams_have_rows_with_waits_and_calls,
                                    so_have_streams_of_ranks_that_share_a_device,
                                    operations_of_streams_are_timed_as_kernels_are,
                                    calls_by_way_of_the_host_are_calls_of_their_communicator])))
