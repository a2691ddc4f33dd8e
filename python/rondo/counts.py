# SPDX-License-Identifier: BSD-3-Clause
"""Calls with a count for each rank. Each is the function of the same name in collectives.h, which has its contract.

Counts and displacements are in elements, one for each rank. Displacements tell where blocks begin; None: one behind the
other, in the order of the ranks. That all blocks lie within the buffers is looked at before anything starts.
"""
from __future__ import annotations

import ctypes
import operator
from typing import Any, Optional, Sequence

from ._buffers import OTHER, describe, moved, reduced, size_of
from ._library import lib
from .errors import invalid
from .operations import code_of
from .streams import Stream

Counts = Sequence[int]


class Blocks:
    """Counts and displacements of a call as arrays of C, in elements of the type that the library is told."""

    def __init__(self, size: int, counts: Counts, displacements: Optional[Counts], times: int) -> None:
        given = [list(map(operator.index, numbers)) for numbers in (counts, displacements) if numbers is not None]
        for numbers in given:
            if len(numbers) != size or any(number < 0 for number in numbers):
                raise invalid(f"{numbers} are not {size} counts or displacements from 0 up, one for each rank.")
        self._counts, self._times = given[0], times
        self._ends = [sum(given[0])] if displacements is None else [
            begin + count for count, begin in zip(given[0], given[1]) if count]
        self.counts = (ctypes.c_size_t * size)(*(times * count for count in given[0]))
        self.displacements = None if displacements is None else (ctypes.c_size_t * size)(
            *(times * begin for begin in given[1]))

    def __getitem__(self, rank: int) -> int:
        return self._counts[rank]

    def check(self, room: int, what: str) -> None:
        """All blocks have to lie within a buffer of so many elements."""
        if max(self._ends, default=0) > room:
            raise invalid(f"The {what} has {room} elements, but its blocks end behind {max(self._ends)}.")


def _times(kind: int) -> int:
    """What travels as bytes has so many of them per element; see _buffers.moved()."""
    return 1 if kind < OTHER else size_of(kind)


class CountedCollectives:
    """Mixed into Communicator, which has the handle, rank and size, and Collectives."""

    _handle: int | None
    _call: Any
    rank: int
    size: int

    def all_to_all_v(self, x: Any, send_counts: Counts, out: Any, recv_counts: Counts,
                     displacements: Optional[tuple[Counts, Counts]] = None, *, stream: Stream | None = None) -> Any:
        """Rank r gets block r of x, and its block for this rank becomes block r of out. Returns out.

        x              blocks of send_counts[r] elements
        out            blocks of recv_counts[r] elements, another array
        displacements  (of blocks in x, of blocks in out)
        """
        source, count, kind, keep = describe(x)
        target, room, room_kind, keep_out = describe(out, True)
        if kind != room_kind:
            raise invalid("Input and output have elements of different types.")
        begins, out_begins = displacements or (None, None)
        sent = Blocks(self.size, send_counts, begins, _times(kind))
        received = Blocks(self.size, recv_counts, out_begins, _times(kind))
        sent.check(count, "input")
        received.check(room, "output")
        return self._call(lib.all_to_all_v, (source, sent.counts, sent.displacements, target, received.counts,
                                             received.displacements, moved(0, kind)[1]),
                          out, stream, (keep, keep_out))

    def all_gather_v(self, x: Any, out: Any, counts: Counts, displacements: Optional[Counts] = None, *,
                     stream: Stream | None = None) -> Any:
        """Block r of out = x of rank r, on every rank. Returns out.

        x    counts[my rank] elements
        out  blocks of counts[r] elements
        """
        source, count, kind, keep = describe(x)
        target, room, room_kind, keep_out = describe(out, True)
        if kind != room_kind:
            raise invalid("Input and output have elements of different types.")
        blocks = Blocks(self.size, counts, displacements, _times(kind))
        blocks.check(room, "output")
        if count != blocks[self.rank]:
            raise invalid(f"The input has {count} elements, but this rank's count is {blocks[self.rank]}.")
        return self._call(lib.all_gather_v, (source, target, blocks.counts, blocks.displacements, moved(0, kind)[1]),
                          out, stream, (keep, keep_out))

    def reduce_scatter_v(self, x: Any, counts: Counts, out: Any, op: Any = "sum",
                         displacements: Optional[Counts] = None, *, stream: Stream | None = None) -> Any:
        """out = op over the ranks of block [my rank] of x. Returns out.

        x    blocks of counts[r] elements
        out  counts[my rank] elements
        """
        source, count, kind, keep = describe(x)
        target, room, room_kind, keep_out = describe(out, True)
        if kind != room_kind:
            raise invalid("Input and output have elements of different types.")
        times, plain, code = reduced(1, kind, code_of(op, self))  # a complex number is two of rondo.h
        blocks = Blocks(self.size, counts, displacements, times)
        blocks.check(count, "input")
        if room != blocks[self.rank]:
            raise invalid(f"The output has {room} elements, but this rank's count is {blocks[self.rank]}.")
        return self._call(lib.reduce_scatter_v, (source, blocks.counts, blocks.displacements, target, plain, code),
                          out, stream, (keep, keep_out), op)
