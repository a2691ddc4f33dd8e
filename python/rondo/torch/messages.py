# SPDX-License-Identifier: BSD-3-Clause
"""Point to point, as Gloo has it: tags, any source, and no order that could deadlock.

Each direction between two ranks that is used has a communicator of its own, a *lane*, which is opened with the first
message. A sender's thread sends a header (tag, bytes) and the bytes. A receiver's thread takes headers all the time: a
message that somebody waits for goes where it is wanted, any other one is kept until it is.
"""
from __future__ import annotations

import atexit
import threading
import time
import weakref
from typing import Any, Callable

import torch

import rondo

from .meeting import meet
from .work import Work, Worker, translated

GOODBYE = -1  # the tag of the last header, of a sender that ends the lane
FAREWELL = 2.0  # seconds that a receiver which ends waits for it


class _Wanted:
    """A receive that was posted."""

    def __init__(self, work: Work, tensor: torch.Tensor, source: int | None, tag: int) -> None:
        self.work, self.tensor, self.source, self.tag = work, tensor, source, tag

    def fits(self, source: int, tag: int) -> bool:
        return self.tag == tag and self.source in (None, source)


class _Incoming:
    """The receiver's end of a lane: its thread, and what came before it was wanted."""

    def __init__(self, messages: Messages, source: int) -> None:
        self._messages, self.source = messages, source
        self.comm: rondo.Communicator | None = None
        self.kept: list[tuple[int, torch.Tensor]] = []
        self.error: BaseException | None = None
        self.thread = threading.Thread(target=self._run, daemon=True, name="rondo-receive")
        self.thread.start()

    def _run(self) -> None:
        try:
            self.comm = self._messages.open_incoming(self.source)
            if self.comm is not None:
                header = torch.empty(2, dtype=torch.int64)
                while True:
                    self.comm.recv(header, 0)
                    tag, size = header.tolist()
                    if tag == GOODBYE:
                        break
                    self._take(tag, size)
            self.error = rondo.PeerFailed(rondo.Result.ERROR_PEER, f"Rank {self.source} has left the process group, "
                                          "and sends no more messages.")
        except BaseException as error:  # who waits for messages of this rank gets it
            self.error = error
        self._messages.lane_ended(self)

    def _take(self, tag: int, size: int) -> None:
        wanted = self._messages.take_wanted(self.source, tag)
        if wanted is None:
            data = torch.empty(size, dtype=torch.uint8)
            self._fill(data)
            self._messages.keep(self, tag, data)
            return
        direct = wanted.tensor.is_contiguous() and wanted.tensor.nbytes == size
        data = _bytes_of(wanted.tensor) if direct else torch.empty(size, dtype=torch.uint8)
        try:
            self._fill(data)
        except BaseException as error:
            wanted.work.end(translated(error))
            raise
        deliver(wanted, self.source, None if direct else data)

    def _fill(self, data: torch.Tensor) -> None:
        if data.numel():
            self.comm.recv(data, 0)


def _bytes_of(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.detach().reshape(-1).view(torch.uint8) if tensor.numel() else tensor.new_empty(0, dtype=torch.uint8)


def deliver(wanted: _Wanted, source: int, data: torch.Tensor | None) -> None:
    """End a receive; None: the bytes are where they belong."""
    wanted.work._source = source
    if data is not None and data.numel() != wanted.tensor.nbytes:
        wanted.work.end(RuntimeError(f"rondo: Rank {source} sent {data.numel()} bytes with tag {wanted.tag}, but the "
                                     f"tensor that was given for them has {wanted.tensor.nbytes}."))
        return
    if data is not None and data.numel():
        wanted.tensor.detach().copy_(data.view(wanted.tensor.dtype).view(wanted.tensor.shape))
    wanted.work.end()


_all: weakref.WeakSet[Messages] = weakref.WeakSet()


@atexit.register
def _leave() -> None:
    """Threads that look into a store must not be in torch's code any more when Python ends."""
    for messages in list(_all):
        messages.leave_store()


class Messages:
    """All lanes of a rank in a process group."""

    def __init__(self, rank: int, size: int, store: Any) -> None:
        self._rank, self._size, self._store = rank, size, store
        self.patience: float | None = None  # seconds that wait() of a receive waits
        self._lock = threading.Lock()
        self._wanted: list[_Wanted] = []
        self._incoming: dict[int, _Incoming] = {}
        self._outgoing: dict[int, tuple[Worker, list[rondo.Communicator]]] = {}
        self._closing = False
        _all.add(self)

    # ---- the two calls -----------------------------------------------------------------------------------------------

    def send(self, tensor: torch.Tensor, to: int, tag: int) -> Work:
        work = Work([tensor])
        with self._lock:
            if to not in self._outgoing:
                self._outgoing[to] = (Worker(), [])
            worker, comms = self._outgoing[to]

        def body() -> None:
            if not comms:
                comms.append(meet(self._store, f"lane/{self._rank}/{to}", 0, 2, 0))
            flat = tensor.detach().contiguous()
            comms[0].send(torch.tensor([tag, flat.nbytes], dtype=torch.int64), 1)
            if flat.nbytes:
                comms[0].send(_bytes_of(flat), 1)

        worker.give(work, body)
        return work

    def receive(self, tensor: torch.Tensor, source: int | None, tag: int) -> Work:
        """From one rank, or (None) from any."""
        wanted = _Wanted(Work([tensor], -1 if source is None else source, self.patience), tensor, source, tag)
        sources = [source] if source is not None else [rank for rank in range(self._size) if rank != self._rank]
        with self._lock:
            lanes = [self._incoming.get(rank) or self._incoming.setdefault(rank, _Incoming(self, rank))
                     for rank in sources]
            found = self._kept(lanes, tag)
            if found is None:
                broken = [lane.error for lane in lanes if lane.error is not None]
                if len(broken) < len(lanes):
                    self._wanted.append(wanted)
                    return wanted.work
        if found is None:
            wanted.work.end(translated(broken[0]))
        else:
            deliver(wanted, *found)
        return wanted.work

    @staticmethod
    def _kept(lanes: list[_Incoming], tag: int) -> tuple[int, torch.Tensor] | None:
        for lane in lanes:
            for at, (kept_tag, data) in enumerate(lane.kept):
                if kept_tag == tag:
                    del lane.kept[at]
                    return lane.source, data
        return None

    # ---- what lanes ask for ------------------------------------------------------------------------------------------

    def open_incoming(self, source: int) -> rondo.Communicator | None:
        """The lane's communicator, once the sender has named it; None: the group ends before."""
        key, pause = f"lane/{source}/{self._rank}", 0.001
        while not self._store.check([key]):
            if self._closing:
                return None
            time.sleep(pause)
            pause = min(2 * pause, 0.05)
        return meet(self._store, key, 1, 2, 0)

    def take_wanted(self, source: int, tag: int) -> _Wanted | None:
        with self._lock:
            for at, wanted in enumerate(self._wanted):
                if wanted.fits(source, tag):
                    return self._wanted.pop(at)
        return None

    def keep(self, lane: _Incoming, tag: int, data: torch.Tensor) -> None:
        """Nobody wanted the message when its header came; now somebody may."""
        with self._lock:
            for at, wanted in enumerate(self._wanted):
                if wanted.fits(lane.source, tag):
                    del self._wanted[at]
                    break
            else:
                lane.kept.append((tag, data))
                return
        deliver(wanted, lane.source, data)

    def lane_ended(self, lane: _Incoming) -> None:
        """Receives fail that wait for this rank, or for any if no other one is left."""
        with self._lock:
            gone = {rank for rank, other in self._incoming.items() if other.error is not None}
            lost = [wanted for wanted in self._wanted if wanted.source == lane.source or
                    wanted.source is None and len(gone) >= self._size - 1]
            self._wanted = [wanted for wanted in self._wanted if wanted not in lost]
        for wanted in lost:
            wanted.work.end(translated(lane.error))

    # ---- the end -----------------------------------------------------------------------------------------------------

    def leave_store(self) -> None:
        """Give up lanes that are not open yet."""
        self._closing = True
        for lane in list(self._incoming.values()):
            if lane.comm is None:
                lane.thread.join(FAREWELL)

    def abort(self) -> None:
        self._closing = True
        with self._lock:
            comms = [lane.comm for lane in self._incoming.values()] + \
                [comm for _, made in self._outgoing.values() for comm in made]
        for comm in comms:
            if comm is not None and comm._handle:
                comm.abort()

    def close(self) -> None:
        """Say goodbye to receivers, and wait a little for that of senders."""
        self._closing = True
        for to, (worker, comms) in self._outgoing.items():
            def part(comms: list[rondo.Communicator] = comms) -> None:
                if comms:
                    comms[0].send(torch.tensor([GOODBYE, 0], dtype=torch.int64), 1)

            worker.give(Work([]), part)
            worker.close(FAREWELL)
            if worker.alive and comms:
                comms[0].abort()
                worker.close(FAREWELL)
        end = time.monotonic() + FAREWELL
        for lane in self._incoming.values():
            lane.thread.join(max(0.0, end - time.monotonic()))
            if lane.thread.is_alive() and lane.comm is not None:
                lane.comm.abort()
                lane.thread.join(FAREWELL)
        ended = [lane.comm for lane in self._incoming.values() if lane.comm is not None and not lane.thread.is_alive()]
        for comm in ended + [comm for worker, made in self._outgoing.values() for comm in made if not worker.alive]:
            comm.close()
        self._outgoing, self._incoming = {}, {}
