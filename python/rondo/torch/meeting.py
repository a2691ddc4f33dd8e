# SPDX-License-Identifier: BSD-3-Clause
"""How the ranks of a process group open a communicator: by an id in the group's store.

Ranks that can reach each other without a network meet without one. Whether they can is known when each has put into the
store where it is, so rank 0 makes the id after that.
"""
from __future__ import annotations

import os
import pathlib
from datetime import timedelta
from typing import Any

import torch.distributed as dist

import rondo

from .work import translated

_FAILED = "failed: "  # in place of an id, which is hexadecimal


def _place() -> str:
    """The same for processes that can meet at a socket of their machine: its start, and the network namespace."""
    start = pathlib.Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
    return f"{start}/{os.stat('/proc/self/ns/net').st_ino}"


def _are_across(store: Any, key: str, size: int, seconds: float, kind: str) -> bool:
    """On rank 0, when all have come: whether some need a network to reach it."""
    keys = [f"{key}/place/{rank}" for rank in range(1, size)]
    try:
        if keys:
            store.wait(keys, timedelta(seconds=seconds))
    except RuntimeError as error:
        missing = [str(rank) for rank, place in enumerate(keys, 1) if not store.check([place])]
        raise rondo.Timeout(rondo.Result.ERROR_TIMEOUT,
                            f"Ranks that did not come to a group of {size} within {seconds:g} s: {', '.join(missing)}. "
                            "Look whether they still run; all ranks make groups in the same order.") from error
    here, across = _place(), False
    for rank, place in enumerate(keys, 1):
        other, _, there = store.get(place).decode().partition(" ")
        if other != kind:
            raise rondo.Mismatch(rondo.Result.ERROR_MISMATCH,
                                 f"Rank 0 has the backend in {kind} and rank {rank} the one in {other}: install "
                                 "rondo-torch for all or none, and set TORCH_RONDO alike.")
        across |= there != here
    return across


def name_of(store: Any, key: str, rank: int, size: int, seconds: float, kind: str = "Python") -> bytes:
    """The id of a communicator of those who give the same key; its rank 0 makes it.

    A store may outlive a group, and have another one with the same key, so each rank counts how often it came.
    """
    key = f"{key}/{store.add(f'{key}/came/{rank}', 1)}"
    if rank:
        store.set(f"{key}/place/{rank}", f"{kind} {_place()}")
        said = store.get(key).decode()
        if said.startswith(_FAILED):
            raise dist.DistBackendError(f"rondo: {said.removeprefix(_FAILED)}")
        return bytes.fromhex(said)
    try:
        name = rondo.unique_id(across_hosts=_are_across(store, key, size, seconds, kind))
    except rondo.Error as error:
        store.set(key, f"{_FAILED}{error}")
        raise translated(error, seconds) from error
    store.set(key, name.hex())
    return name


def meet(store: Any, key: str, rank: int, size: int, seconds: float) -> rondo.Communicator:
    """A communicator of those who give the same key."""
    name = name_of(store, key, rank, size, seconds)
    try:
        return rondo.join(name, size, rank, timeout=seconds)
    except rondo.Error as error:
        raise translated(error, seconds) from error
