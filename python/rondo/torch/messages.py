# SPDX-License-Identifier: BSD-3-Clause
"""Point to point, as Gloo has it: tags, any source, and no order that could deadlock. Each message is a transfer of
rondo.P2P, whose thread moves it."""
from __future__ import annotations

import threading
from typing import Callable

import torch

import rondo

from .tensors import is_plain, read
from .work import Work, translated


class Message(Work):
    """A send or a receive. The P2P itself waits for ever, and wait() for the timeout of the group, as Gloo's does: a
    receive that was posted long before its message is no failure."""

    def __init__(self, tensor: torch.Tensor, source: int, patience: float) -> None:
        super().__init__([tensor], source, patience)
        self._flat = tensor if is_plain(tensor) else read(tensor)
        self._transfer: rondo.Transfer
        self._settling = threading.Lock()

    def begin(self, begins: Callable[..., rondo.Transfer], rank: int, tag: int) -> Message:
        try:
            self._transfer = begins(self._flat, rank, tag)
        except rondo.Error as error:
            raise translated(error) from error
        return self

    def _settle(self, seconds: float | None) -> bool:
        found, error = None, None
        try:
            found = self._transfer.poll(-1.0 if seconds is None else seconds)
            if found is None:
                return False
        except rondo.Error as failure:
            error = translated(failure)
        with self._settling:
            if not self._done:
                self.end(error or self._moved(found))
        return True

    def _moved(self, _found: rondo.Envelope) -> BaseException | None:
        """What to do when the message is here, or has gone; returns an error if there is one."""
        return None


class Receive(Message):
    """A receive; its tensor may have any layout."""

    def _moved(self, found: rondo.Envelope) -> BaseException | None:
        tensor, flat = self._outputs[0], self._flat
        self._source = found.source
        if found.bytes != flat.nbytes:
            return RuntimeError(f"rondo: Rank {found.source} sent {found.bytes} bytes with tag {found.tag}, but the "
                                f"tensor that was given for them has {flat.nbytes}.")
        if flat is not tensor:
            tensor.detach().copy_(flat)
        return None


class Messages:
    """All of a process group."""

    def __init__(self, comm: rondo.Communicator, patience: float) -> None:
        try:
            self._p2p = rondo.P2P(comm)
        except rondo.Error as error:
            raise translated(error, patience) from error
        self._p2p.set_timeout(0)
        self.patience = patience

    def send(self, tensor: torch.Tensor, to: int, tag: int) -> Work:
        return Message(tensor, -1, self.patience).begin(self._p2p.send, to, tag)

    def receive(self, tensor: torch.Tensor, source: int | None, tag: int) -> Work:
        """From one rank, or (None) from any."""
        source = rondo.ANY_SOURCE if source is None else source
        return Receive(tensor, source, self.patience).begin(self._p2p.recv, source, tag)

    def abort(self) -> None:
        self._p2p.abort()

    def close(self) -> None:
        """Wait until what was sent is on its way, no longer than the group waits for a peer."""
        self._p2p.set_timeout(self.patience)
        self._p2p.close()
