#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""test_groups.py - the package's groups of calls, on streams and without; needs nothing but Python. TAP."""
import array
import gc
import sys
import threading
import weakref

import rondo
import world
from rondo._library import lib
from world import cases, events_held_back, raises, ranks


def in_a_group(*functions, group=None):
    """The group in which the functions were called."""
    with group or rondo.group() as group:
        for function in functions:
            function()
    return group


def an_exception_that_leaves_a_group_leaves_its_calls_unmade():
    def body(comm):
        inbox = bytearray(b"no")

        def receive(**on):
            comm.recv(inbox, 1 - comm.rank, **on)

        def within():
            raises(KeyError, lambda: in_a_group(receive, lambda: {}["nothing"]), "nothing")

        with rondo.Stream() as stream:
            within()
            error = raises(rondo.InvalidArgument, lambda: in_a_group(receive, within), "None of the group's calls")
            assert isinstance(error.__cause__, KeyError)
            group = rondo.group()
            raises(KeyError, lambda: in_a_group(lambda: receive(stream=stream), lambda: {}["nothing"], group=group))
            group.wait()
            assert comm.error is None and inbox == b"no"
            comm.barrier()
    ranks(2, body)


def a_group_on_a_stream_has_the_errors_of_all_its_communicators():
    def body(comm):
        with comm.dup() as other, rondo.Stream() as stream:
            x, y = array.array("i", [1]), array.array("i", [1] * (1 + comm.rank))
            group = in_a_group(lambda: comm.all_reduce(x, stream=stream), lambda: other.all_reduce(y, stream=stream))
            raises(rondo.Mismatch, group.wait, "all_reduce")
            stream.call(lambda: None).wait()
            assert x[0] == 2 and comm.error is None and other.error is not None
    ranks(2, body)


def a_group_on_several_streams_has_the_errors_of_its_own_calls():
    """Calls on one communicator all run on the stream of the first."""
    def body(comm):
        x = array.array("i", [1])

        def grouped(**more):
            return in_a_group(lambda: comm.barrier(stream=one), lambda: comm.all_reduce(x, stream=two, **more))

        with comm.create_operation(lambda lower, inout: None, commutative=False) as op, \
                rondo.Stream() as one, rondo.Stream() as two:
            raises(rondo.Unsupported, grouped(op=op).wait, "ring")
            raises(rondo.Unsupported, comm.all_reduce(x, op=op, stream=two).wait, "ring")
            grouped().wait()
            assert x[0] == 2
    ranks(2, body, algorithm="ring")


def a_group_that_waits_has_the_errors_of_its_calls_on_streams_whichever_thread_goes_on():
    def body(comm):
        with comm.dup() as other, rondo.init() as alone, rondo.Stream() as stream:
            x = array.array("i", [1] * (1 + comm.rank))

            def late(calls):
                failed = end_of(calls)
                thread = threading.Thread(target=lambda: alone.barrier(stream=stream), daemon=True)
                thread.start()
                thread.join(world.PATIENCE)
                return failed

            ends[threading.get_ident()] = late
            group = in_a_group(lambda: other.all_reduce(x, stream=stream), comm.barrier)
            raises(rondo.Mismatch, group.wait, "all_reduce")
    end_of, ends = rondo.groups._end_of, {}
    rondo.groups._end_of = lambda calls: ends.get(threading.get_ident(), end_of)(calls)
    try:
        ranks(2, body)
    finally:
        rondo.groups._end_of = end_of


def a_group_that_fails_keeps_what_its_streams_have_still_to_do():
    class Bytes(bytearray):
        """It can be referred to weakly."""

    def body(comm):
        other, go, group, kept = comm.dup(), threading.Event(), rondo.group(), []

        def on_the_stream():
            temporary = Bytes(4)
            kept.append(weakref.ref(temporary))
            other.broadcast(temporary, stream=stream)

        def mismatched():
            comm.all_reduce(array.array("i", [1] * (1 + comm.rank)))

        with rondo.Stream() as stream:
            stream.call(go.wait)
            try:
                error = raises(rondo.Mismatch, lambda: in_a_group(on_the_stream, mismatched, group=group))
                error.__traceback__ = None  # its frames have all calls
                gc.collect()
                assert kept[0]() is not None, "the buffer of a queued call is gone"
            finally:
                go.set()
            assert raises(rondo.Mismatch, group.wait) is error and other.error is None
        other.close()
    ranks(2, body)


def a_stream_stays_open_while_a_group_has_calls_on_it():
    def body(comm):
        x, stream, group = array.array("i", [1]), rondo.Stream(), rondo.group()

        def within():
            in_a_group(lambda: comm.all_reduce(x, stream=stream))
            stream.close()
        raises(rondo.InvalidArgument, lambda: in_a_group(within, group=group), "stays open")
        raises(rondo.InvalidArgument, group.wait, "stays open")
        in_a_group(stream.close)
        raises(rondo.InvalidArgument, lambda: comm.barrier(stream=stream), "stream was closed")
        assert x[0] == 1
    ranks(2, body)


def a_communicator_stays_open_while_a_group_needs_it_and_is_not_asked_once_it_is_closed():
    asked, closed, query = [], [], lib.comm_query

    def body(comm):
        x, y = array.array("i", [1]), array.array("i", [1] * 4096)

        def close_beside(call, other):
            def both():
                call()
                other.close()
            in_a_group(both)

        needed, unneeded, registering = comm.dup(), comm.dup(), comm.dup()
        registering.register(y)
        raises(rondo.InvalidArgument, lambda: close_beside(lambda: needed.all_reduce(x), needed), "stays open")
        raises(rondo.InvalidArgument, lambda: close_beside(lambda: comm.all_reduce(y), registering), "stays open")
        assert needed.all_reduce(x)[0] == registering.all_reduce(y)[0] == 2
        closed.append(unneeded._handle)
        close_beside(lambda: comm.all_reduce(x), unneeded)
        raises(rondo.InvalidArgument, lambda: unneeded.all_reduce(x), "NULL")
        needed.close()
        registering.close()

    lib.comm_query = lambda handle: asked.append(handle) or query(handle)
    try:
        ranks(2, body)
    finally:
        lib.comm_query = query
    assert len(closed) == 2 and not set(asked) & set(closed)


def a_communicator_is_closed_behind_the_events_of_its_groups():
    with rondo.Stream() as stream, events_held_back() as go:
        comms = [rondo.init(), rondo.init()]
        group = in_a_group(*(lambda comm=comm: comm.barrier(stream=stream) for comm in comms))
        closers = [threading.Thread(target=comm.close, daemon=True) for comm in comms]
        for thread in closers:
            thread.start()
        cases.await_quiet()
        waits = [thread.is_alive() for thread in closers]
        go.set()
        for thread in closers:
            thread.join(world.PATIENCE)
        group.wait(0)
        assert waits == [True, True], "closed while an event was to be reached"


if __name__ == "__main__":
    sys.exit(cases.run(cases.named([
        an_exception_that_leaves_a_group_leaves_its_calls_unmade,
        a_group_on_a_stream_has_the_errors_of_all_its_communicators,
        a_group_on_several_streams_has_the_errors_of_its_own_calls,
        a_group_that_waits_has_the_errors_of_its_calls_on_streams_whichever_thread_goes_on,
        a_group_that_fails_keeps_what_its_streams_have_still_to_do,
        a_stream_stays_open_while_a_group_has_calls_on_it,
        a_communicator_stays_open_while_a_group_needs_it_and_is_not_asked_once_it_is_closed,
        a_communicator_is_closed_behind_the_events_of_its_groups])))
