# SPDX-License-Identifier: BSD-3-Clause
"""cases.py - the frame of tests in Python: each case is a function, whose name is a sentence; TAP on stdout."""
import os
import subprocess
import sys
import tempfile
import threading
import time

LAUNCHER_VARIABLES = ("RONDO_", "OMPI_", "PMIX_", "PMI_", "SLURM_", "RANK", "WORLD_SIZE", "LOCAL_", "MASTER_")
FAILURES = (AssertionError, subprocess.SubprocessError, OSError, ValueError)


def clean_environment():
    """This one's without what a launcher or a caller has said to Rondo."""
    return {name: value for name, value in os.environ.items() if not name.startswith(LAUNCHER_VARIABLES)}


def openmpi_options():
    """Options of mpirun. A job has a folder of its own: two that make the usual one at the same time end."""
    return ["--allow-run-as-root", "--oversubscribe", "--mca", "orte_tmpdir_base", os.getcwd()]


def sentence(function):
    return function.__name__.replace("_", " ")


def named(functions):
    return [(sentence(function), function) for function in functions]


def describe(error):
    text = str(error) if isinstance(error, AssertionError) else f"{type(error).__name__}: {error}"
    return "\n".join("# " + line for line in text.splitlines())


def part_of(cases):
    """Those that this process runs: CASES=2/3 is the second of three parts, which may run side by side."""
    part, parts = map(int, os.environ.get("CASES", "1/1").split("/"))
    return cases[part - 1::parts]


def run(cases):
    """Runs (name, function) pairs; a function that returns a text is skipped for that reason. 1 if any failed."""
    failed = 0
    cases = part_of(cases)
    print(f"1..{len(cases)}", flush=True)
    for number, (name, function) in enumerate(cases, 1):
        began = time.monotonic()
        try:
            skipped = function()
            why = f"SKIP {skipped}" if isinstance(skipped, str) else f"{time.monotonic() - began:.1f} s"
            print(f"ok {number} - {name} # {why}")
        except FAILURES as error:
            failed += 1
            print(f"not ok {number} - {name}\n{describe(error)}")
        sys.stdout.flush()
    return 1 if failed or not cases else 0


def patience(seconds):
    """What to allow for something that takes so many seconds on an idle machine; as world_patience() of patience.h."""
    return seconds * min(20, 1 + os.getloadavg()[0] / os.cpu_count())


def state_of(thread):
    """The kernel's letter, S: it sleeps, Z: it has ended; "gone": so it has, and nobody asked for its status."""
    try:
        with open(f"/proc/{thread}/stat", encoding="ascii") as file:
            return file.read().rsplit(")", 1)[1].split()[0]
    except OSError:
        return "gone"


def await_quiet():
    """Returns when all other threads of this process have been found asleep in many looks: nothing that they were
    given to do before is on its way."""
    quiet = 0
    while quiet < 20:
        others = [int(thread) for thread in os.listdir("/proc/self/task") if int(thread) != threading.get_native_id()]
        quiet += all(state_of(thread) in ("S", "gone") for thread in others)
        time.sleep(0.0005)


def children_of(process):
    """Also of one that has ended: none."""
    try:
        with open(f"/proc/{process}/task/{process}/children", encoding="ascii") as file:
            return [int(child) for child in file.read().split()]
    except OSError:
        return []


def scratch_place():
    """Memory, where there is room: checkpoints are flushed, and ranks would wait for a disk that others use, too."""
    try:
        memory = os.statvfs("/dev/shm")
    except OSError:
        return None
    fits = memory.f_bavail * memory.f_frsize > 1 << 28 and not memory.f_flag & os.ST_NOEXEC
    return "/dev/shm" if fits and os.access("/dev/shm", os.W_OK) else None


def in_scratch(function):
    """Each call in an empty folder of its own, which is the current one."""
    def call():
        with tempfile.TemporaryDirectory(dir=scratch_place()) as folder:
            os.chdir(folder)
            try:
                return function()
            finally:
                os.chdir("/")
    return call


def run_in_scratch(functions):
    return run([(sentence(function), in_scratch(function)) for function in functions])
