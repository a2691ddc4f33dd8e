#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""test_package.py - what the package takes as buffers, its errors, and ends; needs nothing but Python. TAP."""
import array
import ctypes
import gc
import os
import pickle
import subprocess
import sys
import tempfile
import threading
import time

import rondo
import world
from world import cases, processes, raises, ranks


# ---- buffers ---------------------------------------------------------------------------------------------------------


def the_constants_are_those_of_the_header():
    if not os.path.exists(os.path.join(world.ROOT, "python", "make_abi.py")):
        return "the source is not here"
    subprocess.run([sys.executable, os.path.join(world.ROOT, "python", "make_abi.py"), "--check"], check=True)
    assert rondo.Op.BXOR == 7 and rondo.Type.FLOAT8_E5M2.name == "FLOAT8_E5M2" and rondo.Result.OK == 0


def elements_have_the_size_that_the_library_knows():
    from rondo import _buffers, _library
    for kind in rondo.Type:
        assert _buffers.SIZES[kind] == _library.lib.type_size(kind), kind
        assert _library.lib.type_name(kind).decode().replace("e4m3", "e4m3fn") in _buffers.NAMES, kind


def whatever_has_the_buffer_protocol_is_taken():
    def body(comm):
        numbers = array.array("i", [comm.rank, 1])
        comm.all_reduce(numbers)
        assert list(numbers) == [3, 3]
        raw = bytearray(b"abc" if comm.rank == 0 else b"xyz")
        assert comm.broadcast(raw) is raw and raw == b"abc"
        fixed = (ctypes.c_double * 3)(comm.rank, 2, 3)
        comm.all_reduce(fixed, op="max")
        assert list(fixed) == [2, 2, 3]
        gathered = bytearray(2 * comm.size)
        comm.all_gather(b"%02d" % comm.rank, gathered)  # input may be read-only
        assert gathered == b"000102"
        view = memoryview(array.array("f", range(6)))[2:5]
        comm.all_reduce(view)
        assert view.tolist() == [6, 9, 12]
        empty = array.array("d")
        assert comm.all_reduce(empty) is empty
        raises(ValueError, lambda: comm.broadcast(b"read-only", root=(comm.rank + 1) % 3), "read-only")
        raises(ValueError, lambda: comm.all_reduce(memoryview(bytearray(8))[::2]), "contiguous")
        raises(ValueError, lambda: comm.all_gather(b"12"), "give `out`")
        raises(TypeError, lambda: comm.all_reduce(7), "int")
    ranks(3, body)


class Packed:
    """Has DLPack and nothing else."""

    def __init__(self, values, device=1):
        self.values, self.device = values, device

    def __dlpack__(self, stream=None):
        return self.values.__dlpack__()

    def __dlpack_device__(self):
        return self.device, 0


def dlpack_is_read_where_it_is():
    try:
        import numpy
    except ImportError:
        return "NumPy makes the DLPack objects of this test"

    def body(comm):
        values = numpy.arange(6, dtype="float64").reshape(2, 3)
        comm.all_reduce(Packed(values))
        assert values[1, 2] == 10
        raises(ValueError, lambda: comm.all_reduce(Packed(values.T)), "contiguous")
        comm.all_reduce(Packed(values[1:]))
        assert values[1, 2] == 20 and values[0, 1] == 2
        raises(ValueError, lambda: comm.all_reduce(Packed(values, device=2)), "device")
    ranks(2, body)
    small = Packed(numpy.arange(6, dtype="uint8"))
    from rondo._buffers import _DLTensor, _capsule_pointer, describe
    capsule = small.__dlpack__()
    _DLTensor.from_address(_capsule_pointer(capsule, b"dltensor")).bits = 4
    small.__dlpack__ = lambda stream=None: capsule
    raises(rondo.InvalidArgument, lambda: describe(small), "4 bits")


def memory_of_the_shared_heap_is_freed_with_its_array():
    def body(comm):
        for count in (0, 1, 5, 3000):
            shared = rondo.empty(count)
            for i in range(count):
                shared[i] = i
            comm.all_reduce(shared)
            assert all(shared[i] == 2 * i for i in range(count))
        raises(ValueError, lambda: rondo.empty(-1), "-1")
    ranks(2, body)
    before = resident()
    for _ in range(200):  # 1.6 GB, were they kept
        shared = rondo.empty(1 << 20, "float64")
        shared[5] = 1
    del shared
    gc.collect()
    assert resident() - before < 200 << 20, f"{(resident() - before) >> 20} MiB are left"


REGISTERED = """
import rondo
with rondo.init().register(bytearray(1 << 26)):  # so much is given back to the system as soon as it is freed
    pass
comm = rondo.init()
memory = bytearray(1 << 26)
comm.register(memory)
del memory
comm.barrier()
comm.close()
print("survived")
"""


def registered_memory_is_kept_until_it_is_private_again():
    assert processes(1, REGISTERED) == "survived\n"
    with rondo.init() as comm, rondo.Stream() as stream:
        memory, go = bytearray(1 << 20), threading.Event()
        registered = comm.register(memory)
        stream.call(go.wait)
        refused = stream.call(registered.close)
        comm.broadcast(memory, stream=stream)
        go.set()
        raises(rondo.InvalidArgument, refused.wait, "queued")
        assert len(comm._registered) == 1
        stream.synchronize()
        registered.close()
        registered.close()
        assert not comm._registered


def a_communicator_stays_open_while_a_group_needs_what_it_registered():
    with rondo.init() as comm:
        memory, other = bytearray(1 << 20), comm.dup()
        other.register(memory)

        def close_in_group():
            with rondo.group():
                comm.broadcast(memory)
                other.close()
        raises(rondo.InvalidArgument, close_in_group, "stays open")
        assert other._registered and other.size == 1
        other.barrier()
        other.close()
        assert not other._registered


def resident():
    with open("/proc/self/statm", encoding="ascii") as file:
        return int(file.read().split()[1]) * 4096


# ---- errors ----------------------------------------------------------------------------------------------------------


def a_mismatch_names_both_calls():
    def body(comm):
        x = array.array("f", [0] * 3)
        error = raises(rondo.Mismatch, lambda: comm.all_reduce(x, op="sum" if comm.rank else "max"))
        assert error.result == rondo.Result.ERROR_MISMATCH and error.rank == comm.rank
        assert error.sentence == str(error) and "sum" in str(error) and "max" in str(error), error
        assert comm.error is not None
        again = pickle.loads(pickle.dumps(error))
        assert (type(again), again.sentence, again.rank) == (type(error), error.sentence, error.rank)
    ranks(2, body)


def an_abort_from_another_thread_ends_a_call():
    def body(comm):
        if comm.rank == 0:
            threading.Thread(target=lambda: (cases.await_quiet(), comm.abort())).start()
        raises(rondo.Aborted, lambda: comm.recv(bytearray(4), 1 - comm.rank), "abort")
    ranks(2, body)


def a_silent_peer_is_a_timeout():
    def body(comm):
        comm.set_timeout(0.3)
        if comm.rank == 0:
            error = raises(rondo.Timeout, lambda: comm.recv(bytearray(4), 1))
            assert isinstance(error, TimeoutError)
            silent.set()
        else:
            assert silent.wait(world.PATIENCE)
    silent = threading.Event()
    ranks(2, body)


KILLED = """
import array, os, signal, rondo
comm = rondo.init()
if comm.rank == 1:
    comm.barrier()
    os.kill(os.getpid(), signal.SIGKILL)
comm.barrier()
try:
    comm.all_reduce(array.array("f", [1]))
except rondo.PeerFailed as error:
    assert error.peer == 1 and error.failed == (1,), error.failed
    flags, failed = comm.agree(6 + comm.rank)
    assert failed == (1,) and flags == 6 & 8, (flags, failed)
    left = comm.shrink()
    x = array.array("f", [1])
    left.all_reduce(x)
    print("left", left.rank, left.size, x[0], error, flush=True)
"""


def survivors_know_who_died_and_go_on():
    said = processes(3, KILLED, status=None).splitlines()
    left = sorted(line for line in said if line.startswith("left"))
    assert len(left) == 2 and left[0].startswith("left 0 2 2.0") and left[1].startswith("left 1 2 2.0"), said
    assert all("Rank 1" in line for line in left), said


# ---- communicators ---------------------------------------------------------------------------------------------------


def communicators_are_split_copied_and_chosen():
    def body(comm):
        part = comm.split(comm.rank % 2, key=-comm.rank)
        assert part.size == (2 if comm.rank % 2 == 0 else 1) and comm.split(-1) is None
        chosen = comm.open_among([2, 0]) if comm.rank != 1 else None
        if chosen:
            assert chosen.rank == (0 if comm.rank == 2 else 1)
            chosen.close()
        with comm.dup() as other:
            other.barrier()
        comm.finalize()
        assert "rank" in repr(comm) and comm.local_size == 3 and comm.local_rank == comm.rank
        part.close()
        part.close()
        raises(ValueError, lambda: part.all_reduce(array.array("f", [1])), "NULL")
        raises(ValueError, lambda: comm.split(0, colour=1), "colour")
    ranks(3, body, timeout=world.PATIENCE)


def joined_by(name):
    made = [None] * 2

    def join(rank):
        made[rank] = rondo.join(name, 2, rank, timeout=world.PATIENCE, deterministic=1)

    threads = [threading.Thread(target=join, args=(rank,)) for rank in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(world.PATIENCE)
    assert [comm.rank for comm in made] == [0, 1]
    for comm in made:
        comm.close()


def an_id_is_served_where_other_hosts_reach_it_if_it_is_for_them():
    os.environ["RONDO_INTERFACE"] = "lo"
    try:
        name = rondo.unique_id(across_hosts=True)
    finally:
        del os.environ["RONDO_INTERFACE"]
    assert b"127.0.0.1:" in name and b"unix:" in rondo.unique_id()
    joined_by(name)
    os.environ["RONDO_ADDRESS"] = "localhost:0"
    try:
        assert b"localhost:" in rondo.unique_id(across_hosts=True)
    finally:
        del os.environ["RONDO_ADDRESS"]


def ranks_join_by_id_and_newcomers_come():
    raises(ValueError, lambda: rondo.join(b"short", 1, 0), "bytes")
    with rondo.group():
        raises(rondo.InvalidArgument, lambda: rondo.join(rondo.unique_id(), 1, 0), "group")
    joined_by(rondo.unique_id())
    alone = rondo.init()
    assert (alone.rank, alone.size) == (0, 1)
    newer, grown = rondo.unique_id(), []
    thread = threading.Thread(target=lambda: grown.append(rondo.join_running(newer, 2, 1)))
    thread.start()
    both = alone.grow(newer, 2)
    thread.join(world.PATIENCE)
    assert both.size == 2 and grown[0].rank == 1
    grown[0].close()
    both.close()
    alone.close()


def hundreds_of_communicators_leave_nothing_behind():
    def round_of(times):
        for _ in range(times):
            for comm in rondo.open_all(2):
                comm.close()
        gc.collect()
        return len(os.listdir("/proc/self/fd")), len(os.listdir("/proc/self/task")), resident()

    before = round_of(50)
    after = round_of(150)
    assert after[:2] == before[:2], f"fds, threads: {before}, then {after}"
    assert after[2] - before[2] < 32 << 20, f"{(after[2] - before[2]) >> 20} MiB are left"


def spans_are_in_the_trace():
    with tempfile.TemporaryDirectory() as folder:
        file = os.path.join(folder, "t")
        processes(2, f"""import os
os.environ["RONDO_TRACE"] = {file!r}
import rondo
comm = rondo.init()
with rondo.span("a training", 3):
    with rondo.span("a step"):
        comm.barrier()""")
        report = subprocess.run([os.environ["TESTED_RONDO"], "trace", file], capture_output=True, text=True,
                                timeout=world.PATIENCE, check=True).stdout
        names = [line.split("  ")[-1] for line in report.splitlines() if line.endswith(("a training", "a step"))]
        assert sorted(names) == ["a step", "a training"], report


if __name__ == "__main__":
    sys.exit(cases.run(cases.named([
        the_constants_are_those_of_the_header, elements_have_the_size_that_the_library_knows,
        whatever_has_the_buffer_protocol_is_taken, dlpack_is_read_where_it_is,
        memory_of_the_shared_heap_is_freed_with_its_array, registered_memory_is_kept_until_it_is_private_again,
        a_communicator_stays_open_while_a_group_needs_what_it_registered,
        a_mismatch_names_both_calls,
        an_abort_from_another_thread_ends_a_call, a_silent_peer_is_a_timeout, survivors_know_who_died_and_go_on,
        communicators_are_split_copied_and_chosen, an_id_is_served_where_other_hosts_reach_it_if_it_is_for_them,
        ranks_join_by_id_and_newcomers_come, hundreds_of_communicators_leave_nothing_behind,
        spans_are_in_the_trace])))
