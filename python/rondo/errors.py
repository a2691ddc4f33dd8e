# SPDX-License-Identifier: BSD-3-Clause
"""Errors of the library as exceptions: a class for each result, the sentence as text, ranks as numbers."""
from __future__ import annotations

import builtins
import ctypes
from typing import TYPE_CHECKING

from ._abi import Result
from ._library import lib

if TYPE_CHECKING:
    from .communicator import Communicator


class Error(RuntimeError):
    """A call failed; str() is the sentence that names the rank, the peer, the call and the remedy.

    result    which error it is, a rondo.Result
    rank      the rank in whose call it was noticed; None: there was no communicator
    failed    ranks that are known to have ended, in ascending order
    peer      the first of them; None: nobody has ended
    sentence  the text, as rondo_last_error() has it
    """

    def __init__(self, result: Result, sentence: str, rank: int | None = None, failed: tuple[int, ...] = ()) -> None:
        super().__init__(sentence)
        self.result, self.sentence, self.rank, self.failed = result, sentence, rank, failed
        self.peer = failed[0] if failed else None

    def __reduce__(self):
        return type(self), (self.result, self.sentence, self.rank, self.failed)


class InvalidArgument(Error, ValueError):
    """An argument is wrong; nothing was started, and the communicator stays usable."""


class Mismatch(Error):
    """A peer called something else: another collective, count, type, operation or root."""


class PeerFailed(Error):
    """A peer has ended, or is gone. Survivors may agree() and shrink()."""


class Timeout(Error, builtins.TimeoutError):
    """A peer was silent for longer than the timeout."""


class Aborted(Error):
    """abort() or revoke() was called, here or on a peer."""


class OutOfMemory(Error, builtins.MemoryError):
    """There is no more memory, or no more shared memory."""


class SystemRefused(Error):
    """The operating system refused something."""


class Unauthenticated(Error):
    """The other side does not know the secret of the job, or bytes were changed on their way."""


class Unsupported(Error, NotImplementedError):
    """It cannot be done here; the sentence says what is missing."""


class InternalError(Error):
    """A bug in Rondo."""


CLASSES = {
    Result.ERROR_INVALID: InvalidArgument,
    Result.ERROR_MISMATCH: Mismatch,
    Result.ERROR_PEER: PeerFailed,
    Result.ERROR_TIMEOUT: Timeout,
    Result.ERROR_ABORTED: Aborted,
    Result.ERROR_MEMORY: OutOfMemory,
    Result.ERROR_SYSTEM: SystemRefused,
    Result.ERROR_AUTH: Unauthenticated,
    Result.ERROR_UNSUPPORTED: Unsupported,
    Result.ERROR_INTERNAL: InternalError,
}


def failed_ranks(handle: int | None, size: int) -> tuple[int, ...]:
    """Ranks of an open communicator that are seen to have ended."""
    ranks, count = (ctypes.c_int * max(size, 1))(), ctypes.c_int()
    if not handle or lib.comm_failed(handle, ranks, ctypes.byref(count)):
        return ()
    return tuple(ranks[:count.value])


def failure(result: int, *comms: Communicator, sentence: str | None = None) -> Error:
    """The exception for what a function returned, in the thread that called it.

    comms  those that the call was on: the exception is about the first that is broken, or else the first
    """
    code = Result(result)
    if sentence is None:
        sentence = lib.last_error(None).decode(errors="replace") or lib.result_string(code).decode()
    if not comms:
        return CLASSES[code](code, sentence)
    comm = comms[0] if len(comms) == 1 else next((one for one in comms if lib.comm_query(one._handle)), comms[0])
    failed = failed_ranks(comm._handle, comm.size) if code != Result.ERROR_INVALID else ()
    return CLASSES[code](code, sentence, comm.rank, failed)


def invalid(sentence: str) -> InvalidArgument:
    """The exception for an argument that is found wrong before the library is asked."""
    return InvalidArgument(Result.ERROR_INVALID, sentence)


def check(result: int) -> None:
    """Raise what a function returned, if that is an error and belongs to no communicator."""
    if result:
        raise failure(result)
