# SPDX-License-Identifier: BSD-3-Clause
"""Call groups: calls between begin and end of a `with rondo.group():` run together, fused, and in no order."""
from __future__ import annotations

import threading
from typing import Any, Generator

from ._library import lib
from .errors import failure
from .operations import first_raised
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
        self._operations: list[Any] = []
        self._on_streams: dict[int, tuple[Stream, Any, list[Any], list[Any]]] = {}
        self._events: list[Event] = []
        self._comm: Any = None

    def _add(self, comm: Any, stream: Stream | None, keep: Any, op: Any = None) -> None:
        self._comm = comm
        kept, operations = self._keep, self._operations
        if stream is not None:
            kept, operations = self._on_streams.setdefault(id(stream), (stream, comm, [], []))[2:]
        kept.append(keep)
        operations.append(op)

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
            outer._keep += self._keep
            outer._operations += self._operations
            for stream, comm, kept, operations in self._on_streams.values():
                for keep, op in zip(kept, operations):
                    outer._add(comm, stream, keep, op)
            outer._comm = outer._comm or self._comm
            raised = None
        else:
            if not result:
                self._events = [Event(stream, None, (comm,), *rest)
                                for stream, comm, *rest in self._on_streams.values()]
            raised = first_raised(self._operations)
        self._keep, self._operations = [], []
        if result and error is None:
            raise failure(result, *([self._comm] if self._comm else [])) from raised
        if raised is not None and error is None:
            raise raised

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
