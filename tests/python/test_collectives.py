#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""test_collectives.py - every call of the package on NumPy's arrays, with what NumPy says it should give. TAP."""
import ctypes
import gc
import sys
import threading
import weakref

try:
    import numpy as np
except ImportError:
    print("1..0 # SKIP this Python has no NumPy")
    sys.exit(0)

import rondo
import world
from rondo import _buffers
from world import error_of, raises, ranks

SIZES = (1, 2, 3, 5)
COUNTS = (0, 1, 2, 7, 1001)
TYPES = ("int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64", "float16", "float32", "float64")


def of(rank, count, kind="float32"):
    """What a rank gives: small numbers, whose sums are exact in every type."""
    return ((np.arange(count) + rank) % 5 + 1).astype(kind)


def everywhere(size, count, kind="float32"):
    return np.stack([of(rank, count, kind) for rank in range(size)])


def same(found, wanted):
    equal = found.dtype == wanted.dtype and np.array_equal(found.reshape(-1), wanted.reshape(-1))
    assert equal, f"{found}, not {wanted}"


def every_operation_gives_what_numpy_gives():
    wanted = {"sum": np.sum, "prod": np.prod, "min": np.min, "max": np.max}
    bits = {"band": np.bitwise_and, "bor": np.bitwise_or, "bxor": np.bitwise_xor}

    def body(comm):
        for kind in TYPES:
            every = everywhere(comm.size, 7, kind)
            for name, function in wanted.items():
                same(comm.all_reduce(of(comm.rank, 7, kind), op=name), function(every, 0).astype(kind))
            for name, function in bits.items() if np.dtype(kind).kind in "iu" else ():
                same(comm.all_reduce(of(comm.rank, 7, kind), op=name), function.reduce(every))
        same(comm.all_reduce(of(comm.rank, 7), op=rondo.Op.AVG), everywhere(comm.size, 7).mean(0, dtype="float32"))
    for size in (1, 2, 4):
        ranks(size, body)


def all_reduce_works_in_place_and_beside():
    def body(comm):
        for count in COUNTS:
            x = of(comm.rank, count)
            wanted, out = everywhere(comm.size, count).sum(0), np.empty_like(x)
            assert comm.all_reduce(x, out) is out
            same(out, wanted)
            same(x, of(comm.rank, count))
            assert comm.all_reduce(x) is x
            same(x, wanted)
    for size in SIZES:
        ranks(size, body)


def rooted_calls_return_at_the_root_alone():
    def body(comm):
        for count in COUNTS:
            root, every = count % comm.size, everywhere(comm.size, count)
            for call, wanted in ((comm.reduce, every.sum(0)), (comm.gather, every)):
                out = call(of(comm.rank, count), root=root)
                assert (out is None) == (comm.rank != root)
                if out is not None:
                    same(out, wanted)
            x = of(comm.rank, count)
            assert comm.broadcast(x, root) is x
            same(x, of(root, count))
            source = every.copy() if comm.rank == root else None
            same(comm.scatter(source, np.empty(count, "float32"), root), of(comm.rank, count))
    for size in SIZES:
        ranks(size, body)


def gathering_and_scattering_make_arrays_of_the_right_shape():
    def body(comm):
        n = comm.size
        for count in COUNTS:
            x = np.stack([of(comm.rank, count), of(comm.rank + 1, count)])
            out = comm.all_gather(x)
            assert out.shape == (n, 2, count)
            same(out, np.stack([[of(r, count), of(r + 1, count)] for r in range(n)]))
            blocks = np.stack([of(comm.rank + block, count) for block in range(n)])
            out = comm.reduce_scatter(blocks)
            assert out.shape == (count,)
            same(out, sum(of(r + comm.rank, count) for r in range(n)))
            out = comm.all_to_all(blocks)
            assert out.shape == blocks.shape
            same(out, np.stack([of(r + comm.rank, count) for r in range(n)]))
    for size in SIZES:
        ranks(size, body)


def a_block_of_the_longer_array_is_in_place():
    def body(comm):
        every = np.zeros((comm.size, 33), "int64")
        every[comm.rank] = comm.rank + 1
        comm.all_gather(every[comm.rank], every)
        same(every, np.repeat(np.arange(comm.size, dtype="int64") + 1, 33))
        comm.reduce_scatter(every, every[comm.rank])
        same(every[comm.rank], np.full(33, comm.size * (comm.rank + 1), "int64"))
    ranks(4, body)


def messages_arrive_in_order_and_groups_exchange():
    def body(comm):
        right, left = (comm.rank + 1) % comm.size, (comm.rank - 1) % comm.size
        for count in COUNTS:
            with rondo.group():
                comm.send(of(comm.rank, count), right)
                comm.send(of(comm.rank + 1, count), right)
                first, second = comm.recv(np.empty(count, "float32"), left), np.empty(count, "float32")
                comm.recv(second, left)
            same(first, of(left, count))
            same(second, of(left + 1, count))
    for size in (2, 3):
        ranks(size, body)


def bool_is_any_and_all_and_complex_numbers_add():
    def body(comm):
        flags = np.array([comm.rank == 0, True, False])
        same(comm.all_reduce(flags.copy()), np.array([True, True, False]))
        same(comm.all_reduce(flags.copy(), op="prod"), np.array([comm.size == 1, True, False]))
        raises(ValueError, lambda: comm.all_reduce(flags, op="avg"), "bool")
        for kind in ("complex64", "complex128"):
            z = np.array([1 + 2j * comm.rank, 3], kind)
            raises(rondo.InvalidArgument, lambda: comm.all_reduce(z, op="max"), "complex")
            same(comm.all_reduce(z), np.array([comm.size + 1j * comm.size * (comm.size - 1), 3 * comm.size], kind))
    ranks(1, body)
    ranks(3, body)


def any_element_can_be_moved():
    kind = np.dtype([("when", "i4"), ("what", "S3")])

    def body(comm):
        same(comm.all_gather(np.array([(comm.rank, b"abc")], kind)),
             np.array([(r, b"abc") for r in range(comm.size)], kind))
        same(comm.broadcast(np.array([comm.rank], "datetime64[s]")), np.array([0], "datetime64[s]"))
        raises(ValueError, lambda: comm.all_reduce(np.zeros(1, kind)), "only be moved")
    ranks(3, body)


def operations_of_your_own_run_in_rank_order():
    def twice(lower, inout):
        inout[:] = lower * 2 + inout

    def body(comm):
        with comm.create_operation(twice, commutative=False) as op:
            one = comm.all_reduce(np.array([comm.rank + 1], "int32"), op=op)
        with comm.create_premul_sum(np.array([2.5], "float64")) as op:
            same(comm.all_reduce(np.ones(3), op=op), np.full(3, 2.5 * comm.size))
        raises(ValueError, lambda: comm.all_reduce(one, op=op), "closed")
        return one[0]
    assert ranks(2, body) == [4, 4]

    def fails(_lower, _inout):
        raise KeyError("mine")

    def broken(comm):
        with comm.create_operation(fails) as op:
            try:
                comm.all_reduce(np.ones(1), op=op)
            except KeyError:
                return True
        return False
    assert any(ranks(2, broken))


def operations_are_kept_until_their_calls_are_over():
    def body(comm):
        def made():
            def plus(lower, inout):
                inout += lower
            return comm.create_operation(plus), weakref.ref(plus)
        go = threading.Event()
        op, alive = made()
        with rondo.Stream() as stream:
            stream.call(go.wait)
            event = comm.all_reduce(np.ones(3), op=op, stream=stream)
            del op
            gc.collect()
            kept = alive() is not None
            go.set()
            assert kept, "the function of a queued call is gone"
            same(event.wait(), np.full(3, 2.0))
        op, alive = made()
        with rondo.group():
            with rondo.group():
                out = comm.all_reduce(np.ones(3), op=op)
            del op
            gc.collect()
            assert alive() is not None, "the function of a group's call is gone"
        same(out, np.full(3, 2.0))
    ranks(2, body)


def operations_raise_where_their_calls_are_waited_for():
    def body(comm):
        def fails(_lower, inout):
            if inout[0] < 0:
                raise KeyError("mine")
        x, failures = -np.ones(1), []

        def noted(call):
            try:
                call()
            except KeyError as error:
                failures.append(error)

        def in_groups(stream):
            with rondo.group() as group:
                with rondo.group():
                    comm.all_reduce(x, op=op, stream=stream)
            group.wait()

        with comm.create_operation(fails) as op, rondo.Stream() as stream:
            noted(lambda: comm.all_reduce(x, op=op, stream=stream).wait())
            noted(lambda: in_groups(None))
            noted(lambda: in_groups(stream))
            comm.all_reduce(np.ones(1), op=op)  # nothing is left of them
        return len(failures)
    assert max(ranks(2, body)) == 3


def operations_raise_in_the_call_that_they_were_raised_in():
    """The event of a call that failed is not reached before another call with its operation has ended."""
    def body(comm):
        def fails(_lower, inout):
            if inout[0] < 0:
                raise KeyError("mine")

        with comm.create_operation(fails) as op, rondo.Stream() as stream:
            event = comm.all_reduce(-np.ones(1), op=op, stream=stream)
            errors = [error_of(lambda: comm.all_reduce(np.ones(1), op=op))]
            ended.wait()
            go.set()
            return errors + [error_of(event.wait)]
    ended = threading.Barrier(2, timeout=world.PATIENCE)
    with world.events_held_back() as go:
        good, bad = zip(*ranks(2, body))
    assert good == (None, None) and any(isinstance(error, KeyError) for error in bad), (good, bad)


def operations_are_of_one_communicator_and_end_with_the_last_reference():
    def body(comm):
        with comm.dup() as other:
            op, x = comm.create_operation(lambda lower, inout: None), np.ones(1)
            theirs = other.create_operation(lambda lower, inout: None)
            for wrong in (lambda: other.all_reduce(x, op=op), lambda: comm.reduce(x, op=theirs),
                          lambda: other.reduce_scatter_v(np.ones(2), [1, 1], x, op=op)):
                raises(rondo.InvalidArgument, wrong, "another communicator")
            comm.all_reduce(x, op=op)
        for _ in range(300):  # more than a communicator holds
            op = comm.create_operation(lambda lower, inout: None)
            comm.create_premul_sum(np.ones(1))
    ranks(2, body)


def scalars_are_read_where_their_value_is():
    address, count, kind, keep = _buffers.describe(np.float64(2.5))
    others = [np.full(1, float(i)) for i in range(100)]
    assert (count, kind) == (1, rondo.Type.FLOAT64) and keep is not None and len(others) == 100
    assert ctypes.c_double.from_address(address).value == 2.5
    raises(rondo.InvalidArgument, lambda: _buffers.describe(np.float64(2.5), True), "read-only")


def counts_may_be_of_numpy():
    def body(comm):
        counts, out = np.full(comm.size, 2, "uint64"), np.zeros(2 * comm.size)
        comm.all_gather_v(np.full(2, float(comm.rank)), out, counts, 2 * np.arange(comm.size))
        same(out, np.repeat(np.arange(float(comm.size)), 2))
        raises(TypeError, lambda: comm.all_gather_v(np.ones(2), out, [2.0] * comm.size), "integer")
    ranks(2, body)


class OtherType:
    """What _buffers asks a dtype of ml_dtypes for."""
    isnative, hasobject, itemsize = True, False, 1

    def __init__(self, name):
        self.name = name


def types_with_infinities_are_not_taken_for_those_without():
    assert _buffers._numpy_type(OtherType("float8_e4m3")) >= _buffers.OTHER
    assert _buffers._numpy_type(OtherType("float8_e4m3fn")) == rondo.Type.FLOAT8_E4M3


def wrong_arguments_are_refused_and_nothing_is_started():
    def body(comm):
        x = np.ones(6, "float32")
        raises(ValueError, lambda: comm.all_reduce(x[::2]), "contiguous")
        raises(ValueError, lambda: comm.all_reduce(x.astype(">f4")), "byte order")
        raises(ValueError, lambda: comm.all_reduce(np.array([None])), "objects")
        raises(ValueError, lambda: comm.all_reduce(x, np.ones(6)), "different types")
        raises(ValueError, lambda: comm.all_gather(x, np.ones(6, "float32")), "18" if comm.size == 18 else "times")
        raises(ValueError, lambda: comm.all_reduce(np.frombuffer(b"1234", "int32")), "read-only")
        raises(ValueError, lambda: comm.all_reduce(x, op="mean"), "mean", "sum")
        raises(ValueError, lambda: comm.reduce(x, root=comm.size), "rank")
        raises(ValueError, lambda: comm.send(x, comm.size))
        raises(TypeError, lambda: comm.all_reduce([1, 2]), "list")
        raises(rondo.InvalidArgument, lambda: comm.scatter(None, x, root=-1), "-1")
        same(comm.all_reduce(x), np.full(6, comm.size, "float32"))
        assert comm.error is None
    ranks(3, body)


def blocks_may_differ_from_rank_to_rank():
    """Block r of rank s for rank t has s + 2 * t elements and its own numbers, also of types that nobody adds."""
    def block(source, to, kind):
        return (10 * source + to + np.arange((source + 2 * to) % 5)).astype(kind)

    def body(comm):
        every = range(comm.size)
        for kind in ("float32", "complex64", "bool", "datetime64[s]"):
            x = np.concatenate([block(comm.rank, to, kind) for to in every])
            wanted = np.concatenate([block(source, comm.rank, kind) for source in every])
            sent, received = ([len(block(comm.rank, other, kind)) for other in every],
                              [len(block(other, comm.rank, kind)) for other in every])
            out = np.empty_like(wanted)
            assert comm.all_to_all_v(x, sent, out, received) is out
            same(out, wanted)
            mine, whole = block(comm.rank, 1, kind), [block(other, 1, kind) for other in every]
            gathered = np.zeros(sum(map(len, whole)) + 1, kind)  # from its second element on
            begins = [1 + sum(map(len, whole[:other])) for other in every]
            comm.all_gather_v(mine, gathered, list(map(len, whole)), begins)
            same(gathered[1:], np.concatenate(whole))
    for size in SIZES:
        ranks(size, body)


def sums_may_be_scattered_in_blocks_of_any_length():
    def body(comm):
        counts = [(3 * other) % 4 for other in range(comm.size)]
        begin = sum(counts[:comm.rank])
        for kind in ("int64", "complex64"):
            every = everywhere(comm.size, sum(counts), kind)
            out = np.zeros(counts[comm.rank], kind)
            comm.reduce_scatter_v(of(comm.rank, sum(counts), kind), counts, out)
            same(out, every.sum(0)[begin:begin + counts[comm.rank]])
    for size in SIZES:
        ranks(size, body)


def blocks_outside_of_a_buffer_are_refused():
    def body(comm):
        x, out = np.zeros(4), np.zeros(4)
        raises(rondo.InvalidArgument, lambda: comm.all_to_all_v(x, [2, 3], out, [2, 2]), "input has 4", "behind 5")
        raises(rondo.InvalidArgument, lambda: comm.all_to_all_v(x, [2, 2], out, [1, 1], ([0, 2], [0, 4])), "behind 5")
        raises(rondo.InvalidArgument, lambda: comm.all_gather_v(x, out, [4]), "not 2 counts")
        raises(rondo.InvalidArgument, lambda: comm.all_gather_v(x, out, [1, 2]), "this rank's count is")
        raises(rondo.InvalidArgument, lambda: comm.reduce_scatter_v(x, [-1, 1], out), "from 0 up")
        comm.barrier()
    ranks(2, body)


def what_is_not_set_is_what_the_header_says():
    from rondo import _abi
    assert len(_abi.CONFIG_INIT) == len(_abi.Config._fields_) - 1
    unset = dict(zip((name for name, _ in _abi.Config._fields_[1:]), _abi.CONFIG_INIT))
    assert unset["copy_engines"] == unset["uniform"] == -1 and unset["algorithm"] is None, unset


if __name__ == "__main__":
    sys.exit(world.cases.run(world.cases.named([
        every_operation_gives_what_numpy_gives, all_reduce_works_in_place_and_beside,
        rooted_calls_return_at_the_root_alone, gathering_and_scattering_make_arrays_of_the_right_shape,
        a_block_of_the_longer_array_is_in_place, messages_arrive_in_order_and_groups_exchange,
        bool_is_any_and_all_and_complex_numbers_add, any_element_can_be_moved,
        blocks_may_differ_from_rank_to_rank, sums_may_be_scattered_in_blocks_of_any_length,
        blocks_outside_of_a_buffer_are_refused, what_is_not_set_is_what_the_header_says,
        operations_of_your_own_run_in_rank_order, operations_are_kept_until_their_calls_are_over,
        operations_raise_where_their_calls_are_waited_for, operations_raise_in_the_call_that_they_were_raised_in,
        operations_are_of_one_communicator_and_end_with_the_last_reference, scalars_are_read_where_their_value_is,
        counts_may_be_of_numpy, types_with_infinities_are_not_taken_for_those_without,
        wrong_arguments_are_refused_and_nothing_is_started])))
