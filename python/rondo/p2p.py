# SPDX-License-Identifier: BSD-3-Clause
"""Messages with tags, from any source, beside collectives. Each is the function of rondo/p2p.h, which has the whole
contract."""
from __future__ import annotations

import ctypes
from typing import Any, NamedTuple

from ._abi import ANY_SOURCE, ANY_TAG, Envelope as _Envelope, Result
from ._buffers import describe, size_of
from ._closing import Closing
from ._library import lib
from .communicator import Communicator
from .errors import failure


IN_PROGRESS = int(Result.IN_PROGRESS)


class Envelope(NamedTuple):
    """What a receive or a probe has found."""
    source: int
    tag: int
    bytes: int


def _seconds(timeout: float | None) -> float:
    return -1.0 if timeout is None else max(timeout, 0.0)


class Transfer:
    """A send or a receive that was begun. Its buffer is kept, and belongs to it until it is over.

    A send that nobody refers to goes on; a receive is given up, if its message has not come.
    """

    def __init__(self, p2p: P2P, handle: int, keep: Any, sends: bool) -> None:
        self._p2p, self._handle, self._keep = p2p, handle, keep
        self._goes_on = sends  # when nobody refers to it, as far as is known

    def wait(self, timeout: float | None = None) -> Envelope:
        """Wait at most `timeout` seconds (None: as long as it takes) and return what came; of a send, what went.

        Raises the transfer's error, or TimeoutError when the time is over; then the transfer goes on.
        """
        found = self.poll(_seconds(timeout))
        if found is None:
            raise TimeoutError(f"The message is not there after {timeout} s; the transfer goes on.")
        return found

    def poll(self, seconds: float = 0.0) -> Envelope | None:
        """What came, if the transfer is over or will be within so many seconds (negative: for ever); else None."""
        found = _Envelope()
        result = lib.transfer_wait(self._handle, seconds, ctypes.byref(found))
        if result == IN_PROGRESS:
            return None
        self._goes_on = False
        if result:
            raise failure(result, self._p2p._comm)
        return Envelope(found.source, found.tag, found.bytes)

    def __del__(self) -> None:
        handle, self._handle = getattr(self, "_handle", None), None
        if handle and self._goes_on and lib.transfer_wait(handle, 0.0, None) == IN_PROGRESS:
            self._p2p._sent.append((handle, self._keep))
        elif handle:
            lib.transfer_close(handle)


class P2P(Closing):
    """Messages between the ranks of a communicator. Collective: all of them open it, and each closes its own.

    A receive takes the first message that fits in the order in which its sender sent them; nothing here waits for the
    order of collectives, and no order of sends and receives deadlocks. A thread moves what is on its way. Thread-safe
    but for close(). `with rondo.P2P(comm) as p2p:` closes it at the end.
    """

    def __init__(self, comm: Communicator) -> None:
        made = ctypes.c_void_p()
        comm._check(lib.p2p_open(comm._handle, ctypes.byref(made)))
        self._comm = comm
        self._handle: int | None = made.value
        self._sent: list[tuple[int, Any]] = []  # sends that nobody refers to

    def _begin(self, function: Any, buffer: tuple, rank: int, tag: int, sends: bool) -> Transfer:
        address, count, kind, keep = buffer
        made = ctypes.c_void_p()
        if self._sent:
            self._reap()
        self._comm._check(function(self._handle, address, count * size_of(kind), rank, tag, ctypes.byref(made)))
        return Transfer(self, made.value, keep, sends)

    def send(self, x: Any, to: int, tag: int = 0) -> Transfer:
        """Begin to send x to rank `to`; x must not be changed until the transfer is over."""
        return self._begin(lib.p2p_send, describe(x), to, tag, True)

    def recv(self, out: Any, source: int = ANY_SOURCE, tag: int = ANY_TAG) -> Transfer:
        """Begin to receive into out, from one rank or any, with one tag or any.

        The message may be shorter than out; the one that does not fit into it is lost, and the transfer raises
        Mismatch.
        """
        return self._begin(lib.p2p_recv, describe(out, True), source, tag, False)

    def probe(self, source: int = ANY_SOURCE, tag: int = ANY_TAG, timeout: float | None = None) -> Envelope | None:
        """Which message such a recv() would take now; waits for one, at most `timeout` seconds, and is None then."""
        found = _Envelope()
        result = lib.p2p_probe(self._handle, source, tag, _seconds(timeout), ctypes.byref(found))
        if result == IN_PROGRESS:
            return None
        self._comm._check(result)
        return Envelope(found.source, found.tag, found.bytes)

    def set_timeout(self, seconds: float) -> None:
        """How long this rank waits for a silent peer, counted from now; 0: for ever."""
        self._comm._check(lib.p2p_set_timeout(self._handle, seconds))

    def abort(self) -> None:
        """Break it, from any thread: transfers that are not over raise Aborted, here and on peers that wait."""
        self._comm._check(lib.p2p_abort(self._handle))

    def _reap(self) -> None:
        sent, self._sent = self._sent, []
        for handle, keep in sent:
            if lib.transfer_wait(handle, 0.0, None) == IN_PROGRESS:
                self._sent.append((handle, keep))
            else:
                lib.transfer_close(handle)

    def close(self) -> None:
        """Wait until what this rank has sent is on its way, and end; receives that wait raise Aborted."""
        handle, self._handle = self._handle, None
        if handle:
            lib.p2p_close(handle)
            self._reap()
