# SPDX-License-Identifier: BSD-3-Clause
"""Call groups: calls between begin and end of a `with rondo.group():` run together, fused, and in no order."""
from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any, Generator, Optional, Tuple

from ._library import lib
from .errors import Error, failure, invalid
from .operations import first_raised
from .streams import Event, Stream

if TYPE_CHECKING:
    from .communicator import Communicator


class _OfThread(threading.local):
    """The groups that this thread is in, innermost last."""

    def __init__(self) -> None:
        self.open: list[Group] = []


_mine = _OfThread()


Call = Tuple["Communicator", Optional[Stream], Any, Any]  # the last two: what to keep, operation


def _comms_of(calls: list[Call]) -> list[Communicator]:
    return list(dict.fromkeys(comm for comm, _, _, _ in calls))


def _end_of(calls: list[Call]) -> Error | None:
    result = lib.group_end()
    return failure(result, *_comms_of(calls)) if result else None


def _end_beside_others(calls: list[Call], streams: list[Stream]) -> tuple[Error | None, set[Stream]]:
    """The end of a group that waits, which must not keep other threads from its streams: the locks are given meanwhile.

    Also returns the streams on which others may have made calls.
    """
    before = [stream._calls for stream in streams]
    for stream in streams:
        stream._ends += 1
        stream._lock.release()
    try:
        failed = _end_of(calls)
    finally:
        for stream in streams:
            stream._lock.acquire()
            stream._ends -= 1
    return failed, {stream for stream, count in zip(streams, before) if stream._calls != count or stream._ends}


class Group:
    """What group() returns. Sends and receives in it cannot deadlock; outputs are complete behind the `with` block.

    Of calls on streams they are complete after `wait()` or `await` of the group. If an exception leaves the block, none
    of the calls is made.
    """

    def __init__(self) -> None:
        self._calls: list[Call] = []
        self._events: list[Event] = []
        self._left_by: BaseException | None = None  # what left this group or one within it

    def _add(self, comm: Communicator, stream: Stream | None, keep: Any, op: Any = None) -> None:
        self._calls.append((comm, stream, keep, op))

    def __enter__(self) -> Group:
        result = lib.group_start()
        if result:
            raise failure(result)
        self._left_by, self._events = None, []
        _mine.open.append(self)
        return self

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        _mine.open.pop()
        calls, self._calls = self._calls, []
        if error is not None:
            self._left_by = error
            lib.barrier(None, None)  # a call that is refused, and with it the whole group
        if _mine.open:  # the outermost end runs all of them
            lib.group_end()
            outer = _mine.open[-1]
            outer._calls += calls
            outer._left_by = outer._left_by or self._left_by
            return
        if self._left_by is None:
            self._run(calls)
            return
        lib.group_end()
        if error is None:
            raise invalid("None of the group's calls was made, as an exception left a group within it.") \
                from self._left_by

    def _run(self, calls: list[Call]) -> None:
        if any(stream is not None for _, stream, _, _ in calls):
            calls, failed = self._queue(calls)
        else:
            failed = _end_of(calls)
        raised = first_raised([op for _, _, _, op in calls if op is not None])
        if failed is not None:
            raise failed from raised
        if raised is not None:
            raise raised

    def _queue(self, calls: list[Call]) -> tuple[list[Call], Error | None]:
        """Returns the calls that were run here, and the group's error."""
        homes: dict[Communicator, Stream | None] = {}  # where C runs all calls of each (comm/engine/group_run.c)
        for comm, stream, _, _ in calls:
            if stream is None or comm not in homes:
                homes[comm] = stream
        parts: dict[Stream | None, list[Call]] = {home: [] for home in homes.values()}
        for call in calls:
            parts[homes[call[0]]].append(call)
        here = parts.pop(None, [])
        streams = sorted((stream for stream in parts if stream is not None), key=id)
        for stream in streams:
            stream._lock.acquire()
        try:
            failed, shared = _end_beside_others(calls, streams) if here else (_end_of(calls), set())
            self._events = [Event(stream, None, _comms_of(part), [keep for _, _, keep, _ in part],
                                  [op for _, _, _, op in part], failed, stream in shared)
                            for stream, part in parts.items()]
        finally:
            for stream in streams:
                stream._lock.release()
        return here, failed

    def wait(self, timeout: float | None = None) -> None:
        """Wait for the group's calls on streams, each at most `timeout` seconds; raises the first error."""
        for event in self._events:
            event.wait(timeout)

    def __await__(self) -> Generator[Any, None, None]:
        for event in self._events:
            yield from event.__await__()


def group() -> Group:
    """Collect the calls that this thread makes within `with rondo.group():`, and run them together at its end."""
    return Group()
