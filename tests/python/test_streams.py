#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""test_streams.py - the package's streams and events; needs nothing but Python. TAP."""
import array
import asyncio
import gc
import os
import sys
import threading
import time

import rondo
import world
from rondo._library import lib
from world import cases, error_of, events_held_back, processes, raises, ranks


# ---- streams ---------------------------------------------------------------------------------------------------------


def calls_on_a_stream_run_in_order_and_events_give_their_output():
    def body(comm):
        with rondo.Stream() as stream:
            x = array.array("i", [1])
            events = [comm.all_reduce(x, stream=stream) for _ in range(5)]
            assert events[4].wait() is x and x[0] == 3 ** 5 and all(event.done for event in events)
            assert events[0].wait(0) is x  # as often as one likes
            assert stream.call(lambda: comm.rank).wait() == comm.rank
            raises(KeyError, stream.call(lambda: {}["nothing"]).wait, "nothing")
            comm.barrier(stream=stream)
            stream.synchronize()
            assert stream.idle
            del events, x
            for _ in range(20):  # nobody keeps the buffers but the call
                comm.all_reduce(array.array("d", [1] * 1000), stream=stream)
            gc.collect()
        stream.close()
        raises(ValueError, lambda: stream.synchronize(), "stream")
    ranks(3, body)


def a_stream_waits_for_an_event_of_another():
    order, go = [], threading.Event()

    def slow():
        assert go.wait(world.PATIENCE)
        order.append(1)

    with rondo.Stream() as first, rondo.Stream() as second:
        first.call(slow)
        event = first.record()
        second.wait_event(event)
        second.call(lambda: order.append(2))
        cases.await_quiet()
        go.set()
        second.synchronize()
        assert order == [1, 2] and event.done and event.wait() is None


def the_last_reference_to_a_stream_may_go_in_its_own_thread():
    before = len(os.listdir("/proc/self/task"))
    for _ in range(20):
        go = threading.Event()
        stream = rondo.Stream()
        stream.call(go.wait)
        del stream  # now only what its thread has still to reach refers to it
        go.set()
    end = time.monotonic() + world.PATIENCE
    while len(os.listdir("/proc/self/task")) > before:
        assert time.monotonic() < end, "threads of streams are left"
        time.sleep(0.001)


def events_are_awaited_side_by_side():
    async def exchange(comm, streams):
        x, y = array.array("f", [1]), array.array("f", [comm.rank])
        other = comm.dup()
        one, two = await asyncio.gather(wrapped(comm.all_reduce(x, stream=streams[0])),
                                        wrapped(other.all_reduce(y, op="max", stream=streams[1])))
        assert one[0] == 2 and two[0] == 1
        done = streams[0].record()
        await done
        await done
        other.close()

    async def wrapped(event):
        return await event

    def body(comm):
        with rondo.Stream() as a, rondo.Stream() as b:
            asyncio.run(exchange(comm, (a, b)))
    ranks(2, body)


def a_group_on_a_stream_is_waited_for_as_one():
    def body(comm):
        peer = 1 - comm.rank
        with rondo.Stream() as stream:
            inbox, sums = array.array("i", [0]), array.array("i", [5])
            with rondo.group() as group:
                comm.recv(inbox, peer, stream=stream)
                comm.send(array.array("i", [comm.rank + 10]), peer, stream=stream)
                with rondo.group():
                    comm.all_reduce(sums, stream=stream)
            group.wait()
            assert inbox[0] == peer + 10 and sums[0] == 10
    ranks(2, body)


def an_event_carries_the_error_of_its_call():
    def body(comm):
        with rondo.Stream() as stream:
            if comm.rank == 0:
                event = comm.all_reduce(array.array("i", [1] * 4), stream=stream)
                error = raises(rondo.Mismatch, event.wait, "all_reduce")
                assert event.error is error
            else:
                raises(rondo.Mismatch, lambda: comm.all_reduce(array.array("i", [1] * 5)))
    ranks(2, body)


def waiting_for_an_event_may_have_an_end():
    def body(comm):
        with rondo.Stream() as stream:
            if comm.rank == 0:
                event = comm.barrier(stream=stream)
                raises(TimeoutError, lambda: event.wait(0.01))
                released.set()
                event.wait()
            else:
                assert released.wait(world.PATIENCE)
                comm.barrier()
    released = threading.Event()
    ranks(2, body)


# ---- what became of a call -------------------------------------------------------------------------------------------


def an_event_carries_the_error_of_a_call_that_leaves_the_communicator_sound():
    def body(comm):
        x = array.array("i", [comm.rank])
        with comm.create_operation(lambda lower, inout: None, commutative=False) as op, rondo.Stream() as stream:
            event = comm.all_reduce(x, op=op, stream=stream)
            error = raises(rondo.Unsupported, event.wait, "ring")
            assert event.error is error and error.rank == comm.rank and comm.error is None
            point = stream.record()
            assert point.wait() is None and point.error is None  # it stands for no call
            assert comm.all_reduce(x, stream=stream).wait()[0] == 1
    ranks(2, body, algorithm="ring")


def a_call_that_has_ended_well_is_none_that_was_aborted_later():
    def body(comm):
        x = array.array("i", [1])
        with rondo.Stream() as stream:
            event = comm.all_reduce(x, stream=stream)
            assert lib.event_outcome(event._handle, world.PATIENCE) == rondo.Result.OK  # only its function is to come
            both.wait()
            comm.abort()
            both.wait()
            go.set()
            assert event.wait() is x and x[0] == 2 and event.error is None
            raises(rondo.Aborted, lambda: comm.all_reduce(x, stream=stream))

    both = threading.Barrier(2, timeout=world.PATIENCE)
    with events_held_back() as go:
        ranks(2, body)


def an_event_is_of_its_own_call_whichever_thread_makes_the_next_one():
    def body(comm):
        with comm.create_operation(lambda lower, inout: None, commutative=False) as op:
            if comm.rank == 1:
                raises(rondo.Unsupported, lambda: comm.all_reduce(array.array("i", [1]), op=op))
                return
            with rondo.Stream() as stream, rondo.init() as alone:
                other = threading.Thread(target=lambda: alone.barrier(stream=stream), daemon=True)

                def late(*arguments):
                    lib.event_record = record
                    other.start()
                    cases.await_quiet()  # it has made its call, or waits until it may
                    return record(*arguments)

                record, lib.event_record = lib.event_record, late
                raises(rondo.Unsupported, comm.all_reduce(array.array("i", [1]), op=op, stream=stream).wait)
                other.join(world.PATIENCE)
    ranks(2, body, algorithm="ring")


def a_closed_stream_takes_no_call():
    def body(comm):
        x, stream = array.array("i", [1]), rondo.Stream()
        stream.close()
        raises(rondo.InvalidArgument, lambda: comm.all_reduce(x, stream=stream), "stream was closed")
        raises(rondo.InvalidArgument, lambda: comm.barrier(stream=stream), "stream was closed")

        def in_a_group():
            with rondo.group():
                comm.all_reduce(x, stream=stream)

        raises(rondo.InvalidArgument, in_a_group, "stream was closed")
        assert x[0] == 1 and comm.all_reduce(x)[0] == 2
    ranks(2, body)


# ---- ends ------------------------------------------------------------------------------------------------------------


def what_a_function_raises_keeps_no_other_from_being_called():
    told, seen, go, hook = [], [], threading.Event(), sys.unraisablehook
    sys.unraisablehook = lambda raised: told.append(raised.exc_type)
    try:
        with rondo.Stream() as stream:
            stream.call(go.wait)
            event = stream.record()
            for function in (lambda: {}["nothing"], lambda: seen.append(1), lambda: 1 // 0, lambda: seen.append(2)):
                event.when_done(function)
            go.set()
            stream.synchronize()
            assert event.wait() is None and seen == [1, 2] and told == [KeyError, ZeroDivisionError], (seen, told)
    finally:
        sys.unraisablehook = hook


def a_communicator_closes_whatever_its_last_calls_have_raised():
    def body(comm):
        def fails(_lower, _inout):
            raise KeyError("mine")

        go = threading.Event()
        with rondo.Stream() as stream:
            stream.call(go.wait)
            event = comm.all_reduce(array.array("i", [1]), op=comm.create_operation(fails), stream=stream)
            threading.Thread(target=lambda: (cases.await_quiet(), go.set()), daemon=True).start()
            comm.close()  # it waits for the event
            return isinstance(error_of(event.wait), KeyError)
    assert any(ranks(2, body))


FORKED = """
import os, signal, threading, rondo
comm, stream, go, called = rondo.init(), rondo.Stream(), threading.Event(), []
function = stream.call(go.wait)
event = comm.barrier(stream=stream)
event._lock.acquire()  # as other threads may have them
stream._lock.acquire()
child = os.fork()
if child:
    event._lock.release()
    stream._lock.release()
else:
    signal.alarm(60)  # instead of waiting for ever
    for waits in (event.wait, function.wait, lambda: comm.barrier(stream=stream)):
        try:
            waits()
            os._exit(3)
        except rondo.InvalidArgument as error:
            assert "fork" in str(error), error
    event.when_done(lambda: called.append(1))
    comm.close()
    stream.close()
    os._exit(4 + len(called))
status = os.waitpid(child, 0)[1]
go.set()
print(os.WEXITSTATUS(status) if os.WIFEXITED(status) else -os.WTERMSIG(status), event.wait(), function.wait())
"""


def a_forked_child_is_told_that_calls_are_those_of_its_parent():
    said = processes(1, FORKED)
    assert said == "5 None True\n", said


if __name__ == "__main__":
    sys.exit(cases.run(cases.named([
        calls_on_a_stream_run_in_order_and_events_give_their_output,
        a_stream_waits_for_an_event_of_another,
        the_last_reference_to_a_stream_may_go_in_its_own_thread,
        events_are_awaited_side_by_side,
        a_group_on_a_stream_is_waited_for_as_one,
        an_event_carries_the_error_of_its_call,
        waiting_for_an_event_may_have_an_end,
        an_event_carries_the_error_of_a_call_that_leaves_the_communicator_sound,
        a_call_that_has_ended_well_is_none_that_was_aborted_later,
        an_event_is_of_its_own_call_whichever_thread_makes_the_next_one,
        a_closed_stream_takes_no_call, what_a_function_raises_keeps_no_other_from_being_called,
        a_communicator_closes_whatever_its_last_calls_have_raised,
        a_forked_child_is_told_that_calls_are_those_of_its_parent])))
