# SPDX-License-Identifier: BSD-3-Clause
"""Streams run calls in order, in the background; events are points on them, to wait for or to await."""
from __future__ import annotations

import atexit
import ctypes
import itertools
import os
import threading
import weakref
from typing import TYPE_CHECKING, Any, Callable, Generator, Sequence

from . import _abi
from ._closing import Closing
from ._library import lib
from .errors import check, failure, invalid
from .operations import first_raised

if TYPE_CHECKING:
    from .communicator import Communicator

# What a stream's thread has still to call, by the numbers that C knows it by, and whose event that reaches, if any's.
_on_its_way: dict[int, tuple[Callable[..., Any], Event | None]] = {}
_numbers = itertools.count(1)


@_abi.StreamFunction
def _reached(number: int) -> None:
    """Called by a stream's thread."""
    _on_its_way.pop(number)[0]()


# Calls a function. What that raises is told to sys.unraisablehook(), and to nobody else.
_call_alone = ctypes.PYFUNCTYPE(None, ctypes.py_object)(lambda function: function())


class Event:
    """A point on a stream, reached when all that was queued before it is done. A call on a stream returns one.

    `event.wait()` and `await event` give what the call would have returned without a stream, or raise its error. Any
    thread may wait, any event loop may await, as often as they like. Buffers of the call are kept until then.
    """

    def __init__(self, stream: Stream, result: Any = None, comms: Sequence[Communicator] = (), keep: Any = None,
                 operations: Sequence[Any] = (), error: BaseException | None = None, shared: bool = False) -> None:
        self._stream, self._result, self._keep = stream, result, keep
        self._comms = comms  # of the last call on the stream, or group of calls; none: the event stands for no call
        self._operations = operations  # of the calls; C has no reference to their functions
        self._error = error  # of the group that ended with one: what became of its calls on the stream is not known
        # Another thread's call may lie between it and this point: then the communicators are asked, too.
        self._shared = shared or stream._ends > 0
        self._done = False
        self._lock = threading.Lock()
        self._waiting: list[Callable[[], None]] = []
        handle = ctypes.c_void_p()
        check(lib.event_open(ctypes.byref(handle)))
        self._handle = handle.value
        check(lib.event_record(self._handle, stream._handle))
        stream._queue(self._reach, self)
        if comms:
            stream._calls += 1
            for comm in comms:
                comm._pending.add(self)
            self.when_done(self._forget)

    def _forget(self) -> None:
        """Communicators that close need not wait for it any more."""
        comms, self._comms = self._comms, ()
        for comm in comms:
            comm._pending.discard(self)

    def _outcome(self) -> BaseException | None:
        """What became of the calls; other ones may have broken the communicator meanwhile, or never break it."""
        raised = first_raised(self._operations)
        result = lib.event_outcome(self._handle, 0.0) if self._comms and self._error is None else 0
        if not result:
            broken = (comm.error for comm in self._comms if self._shared)
            return self._error or raised or next((error for error in broken if error is not None), None)
        error = failure(result, *self._comms)
        error.__cause__ = raised
        return error

    def _reach(self) -> None:
        """By the stream's thread."""
        self._error = self._outcome()
        self._keep, self._operations = None, ()
        with self._lock:
            self._done = True
            waiting, self._waiting = self._waiting, []
        for function in waiting:
            _call_alone(function)

    def _lose(self) -> None:
        """In a process that was forked; another thread may have held the lock."""
        self._lock = threading.Lock()
        self._error = invalid("This process was forked while the call was on its way, which only the parent can wait "
                              "for: do so there, or before the fork.")
        self._done = True

    def when_done(self, function: Callable[[], None]) -> None:
        """Call `function()` when the event is reached, in the stream's thread; at once if it is.

        It must not wait. What it raises in the stream's thread goes to sys.unraisablehook().
        """
        with self._lock:
            if not self._done:
                self._waiting.append(function)
                return
        function()

    @property
    def done(self) -> bool:
        """True when the event is reached; does not wait, and says nothing of errors."""
        return self._done

    @property
    def error(self) -> BaseException | None:
        """The error of the call, or what an operation of yours has raised in it, if it has ended with one."""
        return self._error

    def _settle(self, timeout: float | None = None) -> bool:
        """Wait at most so long until the event is reached; raises nothing of the call's."""
        if self._done:
            return True
        latch = threading.Lock()
        latch.acquire()
        self.when_done(latch.release)
        return latch.acquire(timeout=-1 if timeout is None else max(timeout, 0))

    def wait(self, timeout: float | None = None) -> Any:
        """Wait at most `timeout` seconds (None: as long as it takes) and return the call's output.

        Raises the call's error, or TimeoutError when the time is over; then the call goes on, and its buffers belong to
        it still.
        """
        if not self._settle(timeout):
            raise TimeoutError(f"The event was not reached within {timeout} s; the call goes on.")
        if self._error is not None:
            raise self._error
        return self._result

    def __await__(self) -> Generator[Any, None, Any]:
        import asyncio
        loop = asyncio.get_running_loop()
        reached = loop.create_future()

        def tell() -> None:
            if not reached.done():
                reached.set_result(None)

        def wake() -> None:
            try:
                loop.call_soon_threadsafe(tell)
            except RuntimeError:
                pass  # the loop was closed: nobody awaits any more

        if not self._done:
            self.when_done(wake)
            yield from reached
        return self.wait()

    def __del__(self) -> None:
        handle, self._handle = getattr(self, "_handle", None), None
        if handle:
            lib.event_close(handle)


_streams: weakref.WeakSet[Stream] = weakref.WeakSet()


class Stream(Closing):
    """Calls given this stream are queued, and run one after another in a thread of its own. Thread-safe.

    `with rondo.Stream() as stream:` closes it at the end, which waits for what is queued.
    """

    def __init__(self) -> None:
        handle = ctypes.c_void_p()
        check(lib.stream_open(ctypes.byref(handle)))
        self._handle: int | None = handle.value
        self._lock = threading.Lock()  # held from a call to its event: what became of it is what the last call came to
        self._calls = self._ends = 0  # calls with events; groups that end without the lock, see groups.py
        _streams.add(self)

    def _of_calls(self) -> int:
        """The handle for a call, which without one would run at once."""
        if self._handle is None:
            raise invalid("The stream was closed: no call can be queued on it any more.")
        return self._handle

    def _queue(self, function: Callable[..., Any], event: Event | None = None) -> None:
        number = next(_numbers)
        _on_its_way[number] = function, event
        queued = lib.stream_call(self._handle, _reached, number)
        if queued:
            _on_its_way.pop(number, None)
            raise failure(queued)

    def record(self) -> Event:
        """The event that everything queued so far is done."""
        return Event(self)

    def wait_event(self, event: Event) -> None:
        """What is queued here from now on waits until the event, of another stream, has been reached."""
        self._queue(event._settle)  # C's event is reached before this one is

    def call(self, function: Callable[[], Any]) -> Event:
        """Queue a function of yours; it runs in the stream's thread and must not wait for this stream.

        The event's wait() returns what it returns and raises what it raises.
        """
        outcome: list[Any] = []

        def run() -> None:
            try:
                outcome.append((function(), None))
            except BaseException as error:  # it is raised where somebody waits
                outcome.append((None, error))

        self._queue(run)
        return _Outcome(self, outcome)

    def synchronize(self) -> None:
        """Wait for all that is queued. Raises the first error since the last synchronize()."""
        check(lib.stream_synchronize(self._handle))

    @property
    def idle(self) -> bool:
        """True if nothing is queued or running; raises the stream's error if there is one."""
        result = lib.stream_query(self._handle)
        if result == _abi.Result.IN_PROGRESS:
            return False
        check(result)
        return True

    def close(self) -> None:
        """Wait for what is queued, and end. A second time does nothing."""
        handle, self._handle = self._handle, None  # in one step, as threads may close it at the same time
        if handle:
            if lib.group_needs(None, handle):
                self._handle = handle  # the close is refused: it stays open, and the group's end says why
            lib.stream_close(handle)


class _Outcome(Event):
    """The event behind a function of the user's."""

    def __init__(self, stream: Stream, returned: list[Any]) -> None:
        super().__init__(stream)
        self._returned = returned

    def wait(self, timeout: float | None = None) -> Any:
        super().wait(timeout)
        value, error = self._returned[0]
        if error is not None:
            raise error
        return value


def _lose_all() -> None:
    """A process that was forked has none of the streams' threads, so nobody would reach what was on its way."""
    for stream in list(_streams):
        stream._lock = threading.Lock()
    for _, event in list(_on_its_way.values()):
        if event is not None:
            event._lose()


os.register_at_fork(after_in_child=_lose_all)


@atexit.register
def _close_all() -> None:
    """A stream's thread must not come to Python while that ends."""
    for stream in list(_streams):
        stream.close()
