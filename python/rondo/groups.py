# SPDX-License-Identifier: BSD-3-Clause
"""Call groups: calls between begin and end of a `with rondo.group():` run together, fused, and in no order."""
from __future__ import annotations

import threading
from typing import Any, Generator

from ._library import lib
from .errors import failure
from .streams import Event, Stream


class _OfThread(threading.local):
    """The groups that this thread is in, innermost last."""

    def __init__(self) -> None:
        self.open: list[Group] = []


_mine = _OfThread()


class Group:
    """What group() returns. Sends and receives in it cannot deadlock; outputs are complete behind the `with` block.

    Of calls on streams they are complete after `wait()` or `await` of the group.
    """

    def __init__(self) -> None:
        self._keep: list[Any] = []
        self._on_streams: dict[int, tuple[Stream, Any, list[Any]]] = {}
        self._events: list[Event] = []
        self._comm: Any = None

    def _add(self, comm: Any, stream: Stream | None, keep: Any) -> None:
        self._comm = comm
        if stream is None:
            self._keep.append(keep)
        else:
            self._on_streams.setdefault(id(stream), (stream, comm, []))[2].append(keep)

    def __enter__(self) -> Group:
        result = lib.group_start()
        if result:
            raise failure(result)
        _mine.open.append(self)
        return self

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        _mine.open.pop()
        result = lib.group_end()
        if _mine.open:  # the outermost end runs all of them
            outer = _mine.open[-1]
            outer._keep.append(self._keep)
            for stream, comm, keep in self._on_streams.values():
                outer._add(comm, stream, keep)
            outer._comm = outer._comm or self._comm
        elif not result:
            self._events = [Event(stream, comm=comm, keep=keep) for stream, comm, keep in self._on_streams.values()]
        self._keep = []
        if result and error is None:
            raise failure(result, self._comm)

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


def current() -> Group | None:
    """The innermost group of this thread."""
    return _mine.open[-1] if _mine.open else None
