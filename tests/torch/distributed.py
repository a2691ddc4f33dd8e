#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""distributed.py - torch's own DistributedTest on the backend rondo.

    distributed.py NAME RANKS [WORD...]    those tests whose names have one of the words, or all
    TESTED_HOSTS=2 distributed.py ...      ranks on so many hosts, which are network namespaces (needs root)

NAME is `rondo`, or `gloo`: then rondo is registered under Gloo's name, and torch's tests, which skip names that they do
not know, skip less. torch is imported once; each test runs in freshly forked processes. Prints TAP. A test that fails
and is in known_failures.txt counts as skipped, with that reason; one that passes although it is listed fails.
"""
import contextlib
import ctypes
import os
import pathlib
import re
import signal
import socket
import sys
import tempfile
import time
import traceback

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "net"))
import hosts  # noqa: E402  tests/net/hosts.py

LIMIT = float(os.environ.get("TESTED_SECONDS", "180"))  # for one test, on a busy machine
GRACE = 5.0  # seconds for the other ranks after one has failed
FEATURES = ("ddp", "gpu", "subgroup", "plugin")


def prepare(name, ranks):
    """The environment that torch's tests read when they are imported; returns their folder."""
    scratch = tempfile.mkdtemp(prefix="rondo-torch-")
    for folder in ("barrier", "test_dir", "init_dir"):
        os.mkdir(os.path.join(scratch, folder))
    os.environ.update(BACKEND=name, WORLD_SIZE=str(ranks), TEMP_DIR=scratch, MASTER_ADDR="127.0.0.1",
                      OMP_NUM_THREADS="1", INIT_METHOD="env://")
    return scratch


def the_tests(name):
    """The class of torch's tests, after rondo was made known to them; and its codes for "skipped"."""
    import torch
    import torch.distributed as dist
    from torch.testing._internal.common_distributed import TEST_SKIPS, DistTestCases

    import rondo.torch
    torch.set_num_threads(1)
    rondo.torch.register()
    if name == "gloo":
        if rondo.torch.kind() == "compiled":
            import rondo_torch
            rondo_torch.set_title("gloo")
        else:
            from rondo.torch import backend
            backend.Backend.TITLE = "gloo"
        dist.Backend._plugins["GLOO"] = dist.Backend._plugins["RONDO"]
    else:
        for feature in FEATURES:
            DistTestCases.backend_feature[feature].add("rondo")
        DistTestCases.skip_collective["sendrecv anysource"].add("rondo")
    from torch.testing._internal.distributed import distributed_test

    class Tests(distributed_test.TestDistBackend, distributed_test.DistributedTest._DistTestBase):
        """What torch's launcher makes of both."""
    return Tests, {skip.exit_code: skip.message for skip in TEST_SKIPS.values()}


def enter(places, host):
    """This process is on that host from now on."""
    with open("/run/netns/" + places.name(host), encoding="ascii") as namespace:
        if ctypes.CDLL(None, use_errno=True).setns(namespace.fileno(), 0):
            raise OSError(ctypes.get_errno(), f"setns to {namespace.name}")
    os.environ.update(RONDO_HOST_ID=f"host {host}", MASTER_ADDR=places.address(0), GLOO_SOCKET_IFNAME=hosts.INTERFACE)


def rank_of_test(tests, test, rank, scratch, log, places):
    """In a forked process: one rank. Never returns."""
    import multiprocessing
    code = 1
    try:
        os.setsid()
        if places:
            enter(places, rank * places.count // int(os.environ["WORLD_SIZE"]))
        out = os.open(log, os.O_CREAT | os.O_WRONLY | os.O_APPEND, 0o600)
        os.dup2(out, 1)
        os.dup2(out, 2)
        os.environ["RANK"] = str(rank)
        pipe = multiprocessing.Pipe()  # the tests listen to it, so both ends have to stay
        tests._run(rank, test, os.path.join(scratch, "store_" + test), pipe[1])
        code = 0
    except SystemExit as leaving:
        code = leaving.code if isinstance(leaving.code, int) else 1
    except BaseException:
        traceback.print_exc()
        sys.stderr.flush()
    os._exit(code or 0)


def wait_for(pids, skips):
    """Exit codes by pid; after a failure the others have a moment left. Who is not in it was killed."""
    codes, end = {}, time.monotonic() + LIMIT
    while len(codes) < len(pids) and time.monotonic() < end:
        for pid in set(pids) - set(codes):
            found, status = os.waitpid(pid, os.WNOHANG)
            if found:
                codes[pid] = os.waitstatus_to_exitcode(status)
                if codes[pid] and codes[pid] not in skips:
                    end = min(end, time.monotonic() + GRACE)
        time.sleep(0.02)
    for pid in set(pids) - set(codes):
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
    return codes


def outcome(tests, test, ranks, scratch, skips, places):
    """("pass", "skip" or "fail", why)."""
    function = getattr(tests, test)
    if getattr(function, "__unittest_skip__", False):
        return "skip", getattr(function, "__unittest_skip_why__", "")
    for left in os.listdir(os.path.join(scratch, "barrier")):
        os.unlink(os.path.join(scratch, "barrier", left))
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        os.environ["MASTER_PORT"] = str(free.getsockname()[1])
    log, pids = os.path.join(scratch, test + ".log"), []
    sys.stdout.flush()
    for rank in range(ranks):
        pid = os.fork()
        if pid == 0:
            rank_of_test(tests, test, rank, scratch, log, places)
        pids.append(pid)
    codes = wait_for(pids, skips)
    if all(pid in codes and codes[pid] in skips for pid in pids):
        return "skip", skips[codes[pids[0]]]
    if all(codes.get(pid) == 0 or codes.get(pid) in skips for pid in pids):
        return "pass", ""
    text = pathlib.Path(log).read_text(errors="replace") if os.path.exists(log) else ""
    errors = [line for line in text.splitlines() if re.match(r"^\w*(\.\w+)*(Error|Exception|Failure)\b", line)]
    hung = "" if len(codes) == len(pids) else "ranks hang; "
    return "fail", hung + (errors[0] if errors else text[-300:].replace("\n", " | "))[:300]


def known(name):
    """Tests that torch does not let pass: name -> why."""
    import rondo.torch
    name = f"{rondo.torch.kind()}:{name}"
    found = {}
    for line in (HERE / "known_failures.txt").read_text(encoding="utf-8").splitlines():
        if line and not line.startswith("#"):
            names, test, why = line.split(None, 2)
            if name in names.split(","):
                found[test] = why
    return found


def run(name, ranks, words, places):
    scratch = prepare(name, ranks)
    tests, skips = the_tests(name)
    chosen = sorted(test for test in dir(tests) if test.startswith("test_") and
                    (not words or any(word in test for word in words)))
    expected, failed, counts = known(name), 0, {"pass": 0, "skip": 0, "fail": 0}
    print(f"1..{len(chosen)}", flush=True)
    for number, test in enumerate(chosen, 1):
        what, why = outcome(tests, test, ranks, scratch, skips, places)
        counts[what] += 1
        if test in expected and what == "pass":
            print(f"not ok {number} - {test}\n# it passes, but known_failures.txt has it", flush=True)
            failed += 1
        elif what == "fail" and test in expected:
            print(f"ok {number} - {test} # SKIP it fails: {expected[test]}", flush=True)
        elif what == "fail":
            print(f"not ok {number} - {test}\n# {why}", flush=True)
            failed += 1
        else:
            print(f"ok {number} - {test}" + (f" # SKIP {why}" if what == "skip" else ""), flush=True)
    print(f"# as {name}, {ranks} ranks: {counts['pass']} pass, {counts['skip']} skipped by torch, "
          f"{counts['fail']} fail, {counts['fail'] - failed} of them known")
    return 1 if failed else 0


def main():
    name, ranks, words = sys.argv[1], int(sys.argv[2]), sys.argv[3:]
    count = int(os.environ.get("TESTED_HOSTS", "1"))
    sys.argv = sys.argv[:1]
    if count == 1:
        return run(name, ranks, words, None)
    reason = hosts.why_not()
    if reason:
        print(f"1..0 # SKIP {reason}")
        return 0
    with hosts.Hosts(count) as places:
        return run(name, ranks, words, places)


if __name__ == "__main__":
    sys.exit(main())
