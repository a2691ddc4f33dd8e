# SPDX-License-Identifier: BSD-3-Clause
"""What a call of a process group returns, and the thread that runs calls which nobody waits for at once."""
from __future__ import annotations

import queue
import threading
import time
from datetime import timedelta
from typing import Any, Callable

import torch
import torch.distributed as dist

import rondo

from .._abi import Result
from .._library import lib
from ..errors import failure


def translated(error: BaseException, seconds: float | None = None) -> BaseException:
    """The error as programs for torch expect it: the sentence stays, and rondo's own is the cause."""
    if not isinstance(error, rondo.Error):
        return error
    if isinstance(error, rondo.Timeout):
        waited = "" if seconds is None else f" waiting {round(seconds * 1000)}ms"
        made: BaseException = dist.DistBackendError(
            f"rondo: {error} Timed out{waited}: the timeout of the group or the call is over.")
    elif isinstance(error, rondo.InvalidArgument):
        made = ValueError(f"rondo: {error}")
    elif isinstance(error, rondo.Unsupported):
        made = NotImplementedError(f"rondo: {error}")
    else:
        made = dist.DistBackendError(f"rondo: {error}")
    made.__cause__ = error
    return made


class _Here(threading.local):
    """What this thread does."""

    teller: Worker | None = None  # of a thread that makes calls: who completes their futures
    tells = False  # it completes futures


_here = _Here()


class Work(dist.Work):
    """A call on its way. Its future gives the list of outputs, as the hooks of DDP want it.

    Functions behind a future may make calls and wait for them. So no thread completes a future that makes calls, and
    those that such functions ask for are not completed behind them.
    """

    _ending = threading.Lock()  # of all: it is held for moments, when a future is made or a call ends

    def __init__(self, outputs: list[torch.Tensor], source: int = -1, patience: float | None = None) -> None:
        super().__init__()
        self._outputs, self._source = outputs, source
        self._patience = patience  # seconds that wait() waits unless it is told; None: until the call ends by itself
        self._error: BaseException | None = None
        self._done = False
        self._future: torch.futures.Future | None = None
        self._is_inner = False  # a function behind another future asked for it
        self._inference = torch.is_inference_mode_enabled()  # of the caller: another thread may write the outputs

    def _settle(self, seconds: float | None) -> bool:
        """Wait at most so long (None: as long as it takes) and return whether the call has ended."""
        raise NotImplementedError

    def _attend(self) -> None:
        """Somebody asked for the future of a call that has not ended: it has to end without being waited for."""
        threading.Thread(target=self._settle, args=(None,), daemon=True, name="rondo-future").start()

    def end(self, error: BaseException | None = None) -> None:
        """The call has ended, with an error if there is one."""
        with Work._ending:
            if self._done:
                return  # another thread has seen it, too
            self._error, self._done = error, True
            future = self._future
        if future is None:
            return
        if self._is_inner:
            threading.Thread(target=self._tell, args=(future,), daemon=True, name="rondo-future").start()
        elif _here.teller is not None:
            _here.teller.give(lambda: self._tell(future))
        else:
            self._tell(future)

    def _tell(self, future: torch.futures.Future) -> None:
        if self._error is None:
            future.set_result(self._outputs)
        else:
            future.set_exception(self._error)

    def wait(self, timeout: timedelta = timedelta(0)) -> bool:
        if not self._done:
            seconds: float | None = timeout.total_seconds()
            if seconds <= 0:
                seconds = self._patience
            if not self._settle(seconds):
                raise dist.DistBackendError(f"rondo: Work.wait: Timed out waiting {seconds * 1000:.0f}ms: the call has "
                                            "not ended within this timeout and goes on.")
        if self._error is not None:
            raise self._error
        return True

    def get_future(self) -> torch.futures.Future:
        with Work._ending:
            if self._future is not None:
                return self._future
            future = self._future = torch.futures.Future()
            self._is_inner = _here.tells
            done = self._done
        if done:
            self._tell(future)
        else:
            self._attend()
        return future

    def is_completed(self) -> bool:
        return self._done or self._settle(0)

    def is_success(self) -> bool:
        return self.is_completed() and self._error is None

    def exception(self) -> Any:
        return self._error

    def result(self) -> list[torch.Tensor]:
        return self._outputs

    def source_rank(self) -> int:
        return self._source

    _source_rank = source_rank


class Call(Work):
    """A collective call; a thread that makes it ends it."""

    def __init__(self, outputs: list[torch.Tensor]) -> None:
        super().__init__(outputs)
        self._latch = threading.Lock()
        self._latch.acquire()  # until the call has ended

    def run(self, body: Callable[[], Any]) -> None:
        """Make the call and end."""
        try:
            with torch.inference_mode(self._inference):
                body()
        except BaseException as error:  # it is raised where somebody waits
            self.end(translated(error))
        else:
            self.end()

    def end(self, error: BaseException | None = None) -> None:
        super().end(error)
        self._latch.release()

    def _settle(self, seconds: float | None) -> bool:
        if not self._latch.acquire(timeout=-1 if seconds is None else seconds):
            return False
        self._latch.release()
        return True

    def _attend(self) -> None:
        pass  # it ends by itself


class Posted(Work):
    """A short call whose messages are on their way: who waits finishes it, or the next call of the communicator."""

    def __init__(self, x: torch.Tensor, out: torch.Tensor, request: int, comm: rondo.Communicator, worker: Worker,
                 timeout: float) -> None:
        super().__init__([out])
        self._keep = x
        self._request, self._comm, self._worker, self._timeout = request, comm, worker, timeout

    def _settle(self, seconds: float | None) -> bool:
        result = lib.request_wait(self._request, -1.0 if seconds is None else seconds)
        if result == Result.IN_PROGRESS:
            return False
        self.end(translated(failure(result, self._comm), self._timeout) if result else None)
        return True

    def _attend(self) -> None:
        self._worker.give(lambda: self._settle(None))

    def __del__(self) -> None:
        lib.request_close(self._request)


class All(Work):
    """The calls between start_coalescing and end_coalescing, as one."""

    def __init__(self, works: list[Work]) -> None:
        patience = [work._patience for work in works]
        super().__init__([output for work in works for output in work.result()],
                         patience=None if None in patience else max(patience, default=None))
        self._works = works

    def _settle(self, seconds: float | None) -> bool:
        end = None if seconds is None else time.monotonic() + seconds
        for work in self._works:
            left = None if end is None else max(0.0, end - time.monotonic())
            if not work._done and not work._settle(left):
                return False
        self.end(next((work.exception() for work in self._works if work.exception() is not None), None))
        return True


class Worker:
    """A thread that makes calls in the order in which they were given; it begins with the first one. It completes no
    futures; its teller does, which is a worker itself and has none."""

    def __init__(self, teller: Worker | None = None) -> None:
        self._teller = teller
        self._jobs: queue.SimpleQueue = queue.SimpleQueue()
        self._lock = threading.Lock()
        self._unfinished = 0
        self._thread: threading.Thread | None = None

    @property
    def idle(self) -> bool:
        return self._unfinished == 0

    @property
    def alive(self) -> bool:
        return self._thread is not None and self._thread.is_alive()

    def give(self, job: Callable[[], Any]) -> None:
        with self._lock:
            self._unfinished += 1
            if self._thread is None:
                self._begin()
        self._jobs.put(job)

    def _begin(self) -> None:
        self._thread = threading.Thread(target=self._run, daemon=True, name="rondo-torch")
        self._thread.start()

    def _run(self) -> None:
        _here.teller, _here.tells = self._teller, self._teller is None
        while (job := self._jobs.get()) is not None:
            job()
            del job  # tensors are given back before somebody hears that we are idle
            with self._lock:
                self._unfinished -= 1

    def close(self) -> None:
        """Wait for the calls that were given, and for those that functions behind their futures make."""
        while self._thread is not None:
            self._jobs.put(None)
            if self._thread is threading.current_thread():
                return
            self._thread.join()
            with self._lock:
                self._thread = None
                if self._unfinished:  # given while we waited
                    self._begin()
            if self._teller is not None:
                self._teller.close()
