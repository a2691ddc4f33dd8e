#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""test_p2p.py - messages with tags; needs nothing but Python. TAP."""
import gc
import sys
import threading
from array import array

import rondo
from world import cases, processes, raises, ranks

LONG = 1 << 17  # doubles: a message that its sender keeps until it is asked for


def with_messages(size, body):
    """body(p2p, rank) for each rank."""
    def of(comm):
        with rondo.P2P(comm) as p2p:
            body(p2p, comm.rank)
            comm.barrier()
    ranks(size, of)


def messages_are_found_by_tag_and_source_whatever_came_first():
    def body(p2p, rank):
        if rank:
            sent = [p2p.send(array("i", [rank, tag]), 0, tag) for tag in (1, 2)]
            assert [transfer.wait().bytes for transfer in sent] == [8, 8]
            return
        for tag, source in ((2, 2), (1, 1), (2, 1), (1, 2)):
            out = array("i", [0, 0])
            assert p2p.recv(out, source, tag).wait() == (source, tag, 8) and list(out) == [source, tag]
    with_messages(3, body)


def any_source_and_any_tag_are_what_the_envelope_says():
    def body(p2p, rank):
        if rank:
            p2p.send(bytes([rank]) * rank, 0, 10 * rank).wait()
            return
        seen = set()
        for _ in range(3):
            found, out = p2p.probe(), bytearray(4)
            assert p2p.recv(out, found.source, found.tag).wait() == found
            assert out[:found.bytes] == bytes([found.source]) * found.source
            seen.add(found)
        assert seen == {(1, 10, 1), (2, 20, 2), (3, 30, 3)}
        assert p2p.probe(timeout=0) is None and p2p.probe(1, 7, timeout=0.01) is None
    with_messages(4, body)


def a_message_that_is_there_is_found_without_waiting():
    def body(p2p, rank):
        if rank:
            p2p.send(b"here", 0, 3).wait()
        else:
            while (found := p2p.probe(1, 3, timeout=0)) is None:
                pass
            assert found.bytes == 4
            p2p.recv(bytearray(4), 1, 3).wait()
    with_messages(2, body)


def long_messages_cross_without_a_deadlock():
    def body(p2p, rank):
        out = array("d", [0.0]) * LONG
        sent = p2p.send(array("d", [float(rank)]) * LONG, 1 - rank)
        assert p2p.recv(out, 1 - rank).wait().bytes == 8 * LONG and out[0] == out[-1] == 1 - rank
        sent.wait()
    with_messages(2, body)


def several_threads_wait_each_for_its_own():
    def body(p2p, rank):
        if rank:
            assert p2p.recv(bytearray(1), 0, 99).wait().tag == 99  # when all of them wait
            for tag in range(8):
                p2p.send(bytes([tag]), 0, tag).wait()
            return
        came = [bytearray(1) for _ in range(8)]
        transfers = [p2p.recv(out, 1, tag) for tag, out in enumerate(came)]
        threads = [threading.Thread(target=transfer.wait) for transfer in transfers]
        for thread in threads:
            thread.start()
        p2p.send(b"g", 1, 99).wait()
        for thread in threads:
            thread.join()
        assert [out[0] for out in came] == list(range(8))
    with_messages(2, body)


def a_send_that_nobody_refers_to_arrives_and_a_receive_is_given_up():
    def body(p2p, rank):
        if rank == 0:
            p2p.send(array("d", [1.5]) * LONG, 1, 1)  # and of its buffer neither
            gc.collect()
            p2p.send(b"next", 1, 2).wait()
            return
        out = bytearray(4)
        assert p2p.recv(out, 0, 2).wait().bytes == 4
        unused = p2p.recv(bytearray(4), 0, 77)
        assert unused.poll() is None
        raises(TimeoutError, lambda: unused.wait(0.01), "0.01 s")
        del unused
        long = array("d", [0.0]) * LONG
        p2p.recv(long, 0, 1).wait()
        assert long[0] == long[-1] == 1.5
    with_messages(2, body)


def what_does_not_fit_or_cannot_be_is_an_error():
    def body(p2p, rank):
        raises(ValueError, lambda: p2p.send(b"x", 2), "peer is 2")
        raises(ValueError, lambda: p2p.send(b"x", 0, -1), "tag is -1")
        raises(ValueError, lambda: p2p.recv(b"read-only", 0), "read-only")
        sent = p2p.send(b"long", 1 - rank, 5)
        error = raises(rondo.Mismatch, p2p.recv(bytearray(2), 1 - rank, 5).wait, "room for 2 bytes", "has 4")
        assert error.rank == rank
        sent.wait()
    with_messages(2, body)


def an_abort_ends_transfers_everywhere():
    def of(comm):
        p2p = rondo.P2P(comm)
        transfer = p2p.recv(bytearray(1), 1 - comm.rank)
        if comm.rank == 0:
            p2p.abort()
        raises(rondo.Aborted, transfer.wait)
        p2p.close()
        comm.barrier()  # the communicator is sound
    ranks(2, of)


def a_peer_that_has_closed_its_end_or_died_is_an_error():
    processes(2, """
import os, signal, rondo
comm = rondo.init()
p2p = rondo.P2P(comm)
if comm.rank:
    os.kill(os.getpid(), signal.SIGKILL)
try:
    p2p.recv(bytearray(1), 1).wait()
    raise SystemExit("a dead rank has sent something")
except rondo.PeerFailed as error:
    assert "1" in str(error), error
p2p.close()
print("survived")
""", status=None)

    def body(p2p, rank):
        if rank == 0:
            p2p.close()
        else:
            raises(rondo.PeerFailed, p2p.recv(bytearray(1)).wait, "any")
    with_messages(2, body)


if __name__ == "__main__":
    sys.exit(cases.run(cases.named([
        messages_are_found_by_tag_and_source_whatever_came_first, any_source_and_any_tag_are_what_the_envelope_says,
        a_message_that_is_there_is_found_without_waiting, long_messages_cross_without_a_deadlock,
        several_threads_wait_each_for_its_own, a_send_that_nobody_refers_to_arrives_and_a_receive_is_given_up,
        what_does_not_fit_or_cannot_be_is_an_error, an_abort_ends_transfers_everywhere,
        a_peer_that_has_closed_its_end_or_died_is_an_error])))
