#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""harness.py FOLDER - does run-gpu-checks keep what it knows, whatever its checks do? On made-up bundles; prints TAP.

FOLDER has the scripts. A made-up bundle has a `rondo` and test programs that are a line of shell each.
"""
import csv
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import cases  # noqa: E402  tests/cases.py

SCRIPTS = pathlib.Path(sys.argv[1]).resolve()
DOCTOR = 'ok    GPU: 0 is made up, 4096 MiB, compute capability 9.0'
# Writes the file that --csv names, says which GPUs it sees.
RONDO = """case $1 in
doctor) echo "$DOCTOR" ;;
bench)
    echo "sees $CUDA_VISIBLE_DEVICES"
    while [ $# -gt 1 ]; do [ "$1" = --csv ] && echo a,b >"$2"; shift; done ;;
esac"""
PATIENCE, LONG = 200, 300  # seconds: of a run, and of a check that must not be waited for
QUICK = ["--quick", "--section", "suite"]


def program(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("#!/bin/sh\n" + text + "\n")
    path.chmod(0o755)


def bundle(tests, rondo=RONDO):
    here = pathlib.Path("bundle")
    here.mkdir()
    for script in ("run-gpu-checks", "gpu-sections"):
        shutil.copy(SCRIPTS / script, here / script)
    program(here / "bin" / "rondo", rondo)
    (here / "VERSION").write_text("made up\n")
    (here / "tests").mkdir()
    for name, text in tests.items():
        program(here / "tests" / f"test_{name}", text)
    lines = [f"{name}\ttest_{name}\tNOTHING=\t--tap\n" for name in tests]
    (here / "tests" / "tests.txt").write_text("".join(lines))


def environment(devices=1):
    clean = {name: value for name, value in os.environ.items() if not name.startswith(("CUDA_", "NCCL_"))}
    return {**clean, "DOCTOR": "\n".join([DOCTOR] * devices)}


def run(*options, status=0, devices=1):
    result = subprocess.run(["bundle/run-gpu-checks", *options, "out"], capture_output=True, text=True,
                            timeout=PATIENCE, check=False, stdin=subprocess.DEVNULL, env=environment(devices))
    assert result.returncode == status, f"status {result.returncode}, not {status}\n{result.stdout}{result.stderr}"
    return result.stdout + result.stderr


def results():
    with open("out/results.tsv", encoding="utf-8") as file:
        return {row[4]: row[1] for row in csv.reader(file, delimiter="\t")}


def summary():
    return pathlib.Path("out/summary.md").read_text()


def each_result_is_counted_and_logged_whole():
    bundle({"good": "echo fine", "bad": "seq 1000; exit 3", "absent": "echo there is no second GPU; exit 77"})
    said = run(*QUICK, status=1)
    assert results() == {"good": "passed", "bad": "failed", "absent": "skipped"}, results()
    assert "1 passed, 1 failed, 1 skipped." in said and "| suite | 1 | 1 | 1 |" in summary(), said
    assert "**FAIL**: bad (exit status 3; logs/002-suite.log)" in summary()
    assert "skipped: absent: there is no second GPU" in summary()
    log = pathlib.Path("out/logs/002-suite.log").read_text().splitlines()
    assert log[1:] == [str(number) for number in range(1, 1001)], "the log is not whole"
    assert "\n1000\n" in summary() and "\n100\n" not in summary()


def nothing_that_hangs_stops_the_rest():
    bundle({"deaf": "trap '' TERM; while :; do sleep 1; done", "leaves_one": f"sleep {LONG} & echo left a child",
            "last": "echo fine"})
    seconds = str(round(cases.patience(2)))
    run(*QUICK, "--check-seconds", seconds, status=1)
    assert results() == {"deaf": "failed", "leaves_one": "passed", "last": "passed"}, results()
    assert f"not done after {seconds} s" in summary()


def the_time_for_all_of_it_is_kept():
    bundle({"first": "exec sleep 1", "long": f"exec sleep {LONG}", "never": "echo fine"})
    seconds = str(round(cases.patience(4)))
    run(*QUICK, "--seconds", seconds)
    assert results() == {"first": "passed", "long": "skipped", "never": "skipped"}, results()
    up = f"the {seconds} s of --seconds were up"
    assert f"as {up}" in summary() and f"never: {up}" in summary()


def a_run_that_is_cut_off_keeps_what_it_has():
    for number, kept in ((signal.SIGTERM, "Cut off by a signal"), (signal.SIGKILL, "- ok: first")):
        shutil.rmtree("bundle", ignore_errors=True)
        shutil.rmtree("out", ignore_errors=True)
        bundle({"first": "echo fine", "long": f"exec sleep {LONG}"})
        with subprocess.Popen(["bundle/run-gpu-checks", *QUICK, "out"], stdout=subprocess.DEVNULL,
                              env=environment()) as job:
            while not list(pathlib.Path("out/logs").glob("002-*")) and job.poll() is None:
                time.sleep(0.05)
            job.send_signal(number)
            assert job.wait(timeout=PATIENCE) != 0
        assert results() == {"first": "passed"}, results()
        assert kept in summary() and "- ok: first" in summary(), summary()


def speed_comes_first_with_a_table_of_each_sweep():
    bundle({})
    run("--quick", "--section", "speed", "--python", "/nowhere/python", "--nccl", "/nowhere/libnccl.so.2", devices=2)
    done = results()
    assert list(done)[0] == "all_reduce, 2 ranks as processes on one GPU", done
    one = {how: f"out/csv/one-gpu-{how}-{ranks}.csv" for how in ("processes", "threads") for ranks in (2, 3, 4)}
    assert all(pathlib.Path(path).read_text() == "a,b\n" for path in one.values())
    assert "all_reduce, 2 ranks as threads on a GPU each" in done and "all_reduce, 4 ranks as threads on a GPU each" \
        not in done, done
    logs = "".join(path.read_text() for path in sorted(pathlib.Path("out/logs").glob("0*.log")))
    assert "sees 0\n" in logs and "sees 0,1\n" in logs, logs


def a_client_that_took_another_nccl_fails():
    bundle({})
    program(pathlib.Path("tests/all_reduce_perf"), 'echo "fast" # without a word of Rondo')
    program(pathlib.Path("tests/all_gather_perf"), 'echo "rondo[0] info: preloaded" "$LD_PRELOAD"')
    pathlib.Path("bundle/nccl").mkdir()
    shutil.copy("/bin/true", "bundle/nccl/libnccl.so.2")
    run("--quick", "--section", "clients", "--nccl-tests", "tests", "--python", "/nowhere/python", status=1)
    said = summary()
    assert "nccl-tests: all_reduce_perf on 1 GPUs did not run on our libnccl.so.2" in said, said
    assert "ok: nccl-tests: all_gather_perf on 1 GPUs" in said and "all_gather_perf on 1 GPUs did not" not in said
    assert "skipped: PyTorch: /nowhere/python has no torch that finds a GPU" in said


def a_machine_without_a_gpu_skips_all_but_its_facts():
    bundle({"good": "echo fine"})
    run("--quick", devices=0)
    assert set(results().values()) == {"passed", "skipped"} and results()["suite"] == "skipped", results()
    assert "suite: CUDA finds no GPU here" in summary()
    assert "==== processors" in pathlib.Path("out/machine.txt").read_text()


def results_are_never_overwritten():
    bundle({"good": "echo fine"})
    run(*QUICK)
    assert "is not empty" in run(*QUICK, status=2)
    assert "1 passed, 0 failed, 0 skipped." in summary()


def wrong_options_are_told():
    bundle({})
    for options, words in ((["--section", "sped"], "there is no section 'sped'"), (["--fast"], "no option --fast"),
                           (["--seconds", "1h"], "no number of seconds"), (["one"], "more than one folder")):
        assert words in run(*options, status=2), options
    assert not pathlib.Path("out").exists()


CASES = (each_result_is_counted_and_logged_whole, nothing_that_hangs_stops_the_rest, the_time_for_all_of_it_is_kept,
         a_run_that_is_cut_off_keeps_what_it_has, speed_comes_first_with_a_table_of_each_sweep,
         a_client_that_took_another_nccl_fails, a_machine_without_a_gpu_skips_all_but_its_facts,
         results_are_never_overwritten, wrong_options_are_told)


def main():
    return cases.run_in_scratch(CASES)


if __name__ == "__main__":
    sys.exit(main())
