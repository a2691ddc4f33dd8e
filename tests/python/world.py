# SPDX-License-Identifier: BSD-3-Clause
"""world.py - the frame of the package's tests: ranks as threads of this process, or as processes of `rondo run`."""
import contextlib
import os
import subprocess
import sys
import threading

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
sys.path.insert(0, os.path.join(ROOT, "tests"))
import cases  # noqa: E402  tests/cases.py
import rondo  # noqa: E402  by PYTHONPATH, or of the wheel

PATIENCE = 240  # seconds that a test waits for ranks, on a busy machine


def ranks(size, body, **settings):
    """Calls body(comm) for each rank in a thread of its own; what one raises is raised here. Returns all results."""
    comms, results, errors = rondo.open_all(size, **settings), [None] * size, []

    def run(comm):
        try:
            results[comm.rank] = body(comm)
        except BaseException as error:  # the others must not wait for this rank
            errors.append(error)
            comm.abort()

    threads = [threading.Thread(target=run, args=(comm,), daemon=True) for comm in comms]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENCE)
        assert not thread.is_alive(), "a rank hangs"
    for comm in comms:
        comm.close()
    if errors:
        raise AssertionError(f"{type(errors[0]).__name__}: {errors[0]}") from errors[0]
    return results


def raises(kind, function, *words):
    """The exception of the kind that function() raises, whose text has the words."""
    try:
        function()
    except kind as error:
        for word in words:
            assert word in str(error), f"no \"{word}\" in: {error}"
        return error
    raise AssertionError(f"no {kind.__name__} was raised")


def error_of(function):
    """What function() raises, or None."""
    try:
        function()
    except Exception as error:
        return error
    return None


@contextlib.contextmanager
def events_held_back():
    """Events are not reached before what this gives is set."""
    go, reach = threading.Event(), rondo.Event._reach

    def late(event):
        assert go.wait(PATIENCE)
        reach(event)

    rondo.Event._reach = late
    try:
        yield go
    finally:
        go.set()
        rondo.Event._reach = reach


def processes(size, program, *arguments, status=0):
    """What `rondo run -n SIZE` prints that runs program, a text, with this Python; `rondo` is TESTED_RONDO."""
    command = [os.environ["TESTED_RONDO"], "run", "-n", str(size), sys.executable, "-c", program, *arguments]
    kept = {name: os.environ[name] for name in ("LD_LIBRARY_PATH", "PYTHONPATH") if name in os.environ}
    result = subprocess.run(command, env={**cases.clean_environment(), **kept}, capture_output=True, text=True,
                            timeout=PATIENCE, check=False)
    assert result.returncode == status or status is None, f"status {result.returncode}\n{result.stdout}{result.stderr}"
    return result.stdout
