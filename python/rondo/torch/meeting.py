# SPDX-License-Identifier: BSD-3-Clause
"""How the ranks of a process group open a communicator: by an id in the group's store."""
from __future__ import annotations

from typing import Any

import rondo

from .work import translated


def meet(store: Any, key: str, rank: int, size: int, seconds: float) -> rondo.Communicator:
    """A communicator of those who give the same key; its rank 0 puts the id into the store."""
    try:
        if rank == 0:
            name = rondo.unique_id()
            store.set(key, name.hex())
        else:
            name = bytes.fromhex(store.get(key).decode())
        return rondo.join(name, size, rank, timeout=seconds)
    except rondo.Error as error:
        raise translated(error, seconds) from error
