# SPDX-License-Identifier: BSD-3-Clause
"""Communicators: how they are made, asked, and ended. What they communicate is in collectives.py."""
from __future__ import annotations

import ctypes
from typing import Any, Callable, Sequence

from . import _buffers
from ._abi import CONFIG_INIT, Config, UniqueId
from ._closing import Closing
from ._library import lib
from .collectives import Collectives
from .counts import CountedCollectives
from .errors import Error, check, failure, failed_ranks, invalid
from .memory import Registration
from .operations import Operation, from_function
from .streams import Event

SETTINGS = [name for name, _ in Config._fields_[1:]]


def _config(settings: dict[str, Any]) -> Any:
    """A rondo_config by reference, with RONDO_CONFIG_INIT's "not set" where nothing is given."""
    unknown = set(settings) - set(SETTINGS)
    if unknown:
        raise invalid(f"{', '.join(sorted(unknown))}: no such setting; there are {', '.join(SETTINGS)}.")
    config = Config(ctypes.sizeof(Config), *CONFIG_INIT)
    for name, value in settings.items():
        if value is not None:
            setattr(config, name, value.encode() if isinstance(value, str) else value)
    return ctypes.byref(config)


class Communicator(Closing, Collectives, CountedCollectives):
    """A rank's part of a communicator: `size` ranks, numbered from 0, that make the same calls in the same order.

    Attributes: `rank` and `size`; `local_rank` and `local_size` among the ranks on the same node.

    Threads: different communicators are independent; calls on one may come from several threads and are served one
    after another, and all ranks must see the same order. Only close() must not run beside another call. While a call
    waits other threads of Python go on; abort() from one of them ends it.

    `with rondo.init() as comm:` closes it at the end.
    """

    def __init__(self, handle: int) -> None:
        self._handle: int | None = handle
        self._pending: set[Event] = set()
        self._registered: dict[int, Any] = {}  # arrays by the handles of their registrations
        self.rank: int = lib.comm_rank(handle)
        self.size: int = lib.comm_size(handle)
        self.local_rank: int = lib.comm_local_rank(handle)
        self.local_size: int = lib.comm_local_size(handle)

    def __repr__(self) -> str:
        return f"<rondo.Communicator: rank {self.rank} of {self.size}{'' if self._handle else ', closed'}>"

    # ---- ending ------------------------------------------------------------------------------------------------------

    def close(self) -> None:
        """Free it: local, waits for this rank's queued work. A second time does nothing."""
        for event in list(self._pending):
            event._settle()  # its error is for who waits for it
        if self._handle:
            needed = lib.group_needs(self._handle, None)
            lib.comm_close(self._handle)
            if needed:
                return  # refused: it stays open, and the group's end says why
        self._handle = None
        self._registered.clear()

    def finalize(self) -> None:
        """Collective: wait until what this rank queued is done and all ranks are here."""
        self._check(lib.comm_finalize(self._handle))

    def abort(self) -> None:
        """Break it, from any thread: calls in progress raise Aborted, here and on every peer. Close it after."""
        self._check(lib.comm_abort(self._handle))

    # ---- parts and copies --------------------------------------------------------------------------------------------

    def _opened(self, function: Callable[..., int], *arguments: Any) -> Communicator | None:
        made = ctypes.c_void_p()
        self._check(function(self._handle, *arguments, ctypes.byref(made)))
        return Communicator(made.value) if made.value else None

    def split(self, color: int, key: int = 0, **settings: Any) -> Communicator | None:
        """Collective: ranks of the same `color` >= 0 form a communicator, ordered by `key`, then by old rank.

        With color -1 a rank takes part but gets none. `settings` are those of init().
        """
        return self._opened(lib.comm_split, color, key, _config(settings))

    def dup(self) -> Communicator:
        """Collective: a communicator of the same ranks with its own order of calls."""
        return self._opened(lib.comm_dup)

    def open_among(self, ranks: Sequence[int], **settings: Any) -> Communicator:
        """A communicator of the listed ranks, which all of them call and nobody else; ranks[i] becomes rank i.

        Sends no message on this communicator, which may be broken. Raises PeerFailed if one of them ends meanwhile.
        """
        return self._opened(lib.comm_open_among, (ctypes.c_int * len(ranks))(*ranks), len(ranks), _config(settings))

    # ---- going on after a failure ------------------------------------------------------------------------------------

    def agree(self, flags: int | None = None) -> tuple[int | None, tuple[int, ...]]:
        """Collective among the ranks that are left, also on a broken communicator: agree on flags and on who failed.

        flags   64 bits; the bitwise and of all ranks' flags is returned. None: this rank has no say, and gets None.

        Returns (flags, failed ranks in ascending order), the same on every rank. Failed ranks are no error.
        """
        bits = ctypes.c_uint64(flags or 0)
        ranks, count = (ctypes.c_int * self.size)(), ctypes.c_int()
        self._check(lib.comm_agree(self._handle, None if flags is None else ctypes.byref(bits), ranks,
                                   ctypes.byref(count)))
        return (None if flags is None else bits.value), tuple(ranks[:count.value])

    @property
    def failed(self) -> tuple[int, ...]:
        """Ranks known to have ended or closed; local, does not wait, and other ranks may know of others."""
        return failed_ranks(self._handle, self.size)

    def revoke(self) -> None:
        """Break it so that peers which wait come to the agreement, too; does nothing to one that is broken."""
        self._check(lib.comm_revoke(self._handle))

    def shrink(self, **settings: Any) -> Communicator:
        """Collective among the ranks that are left: a communicator of them, in their old order."""
        return self._opened(lib.comm_shrink, _config(settings) if settings else None)

    def grow(self, unique_id: bytes, size: int, **settings: Any) -> Communicator:
        """Collective: a communicator of all ranks here, which keep their ranks, and of newcomers (join_running()).

        unique_id  made by one rank with rondo.unique_id()
        size       of the new communicator, newcomers included
        """
        return self._opened(lib.comm_grow, ctypes.byref(_id(unique_id)), size, -1,
                            _config(settings) if settings else None)

    def set_timeout(self, seconds: float) -> None:
        """How long peers may be silent from now on, also for a call that waits; 0: for ever."""
        self._check(lib.comm_set_timeout(self._handle, seconds))

    # ---- asking ------------------------------------------------------------------------------------------------------

    def _check(self, result: int) -> None:
        if result:
            raise failure(result, self)

    @property
    def error(self) -> Error | None:
        """The error that broke the communicator; None while it is sound."""
        result = lib.comm_query(self._handle)
        if not result:
            return None
        return failure(result, self, sentence=lib.last_error(self._handle).decode(errors="replace"))

    # ---- memory and operations ---------------------------------------------------------------------------------------

    def register(self, array: Any) -> Registration:
        """Give the memory of an array to the shared heap, in place; the array is kept until that is taken back."""
        address, count, kind, keep = _buffers.describe(array, True)
        handle = ctypes.c_void_p()
        self._check(lib.comm_register(self._handle, address, count * _buffers.size_of(kind), ctypes.byref(handle)))
        return Registration(self, handle.value, keep)

    def create_operation(self, function: Callable[[Any, Any], None], commutative: bool = True) -> Operation:
        """An operation of your own: `function(lower, inout)` sets inout[:] to the combination of both, elementwise.

        It gets NumPy's arrays (without it, bytes) of any length, `lower` from the lower ranks, has to be associative,
        and is called in any thread that makes calls. What it raises the call raises on this rank; the result is then
        undefined. If it is not `commutative`, ranks are combined in rank order.
        """
        return from_function(self, function, commutative)

    def create_premul_sum(self, scalar: Any) -> Operation:
        """The sum of inputs which each rank multiplies by its own scalar, an array of one element of their type."""
        address, _, kind, keep = _buffers.describe(scalar)
        code = ctypes.c_int()
        self._check(lib.op_create_premul_sum(self._handle, address, kind, ctypes.byref(code)))
        return Operation(self, code.value, keep, {})


def _id(unique: bytes) -> UniqueId:
    size = ctypes.sizeof(UniqueId)
    if len(unique) != size:
        raise invalid(f"An id has {size} bytes, this has {len(unique)}.")
    return UniqueId.from_buffer_copy(unique)


def init(**settings: Any) -> Communicator:
    """Join the communicator of the job that this process was started in; blocks until all ranks have come.

    Rank, size and meeting point come from the environment of `rondo run`, torchrun, mpirun or srun; alone, a process is
    rank 0 of 1. Settings, the same on every rank, each None unless given: deterministic (1: sums associate as one tree
    over the ranks), algorithm (a name), slot_bytes, slots, timeout (seconds that a peer may be silent; 0: for ever),
    network ("tcp" or "verbs"), traffic_class, uniform (1: a call returns the same on all ranks).

    Raises Timeout if a rank does not come, InvalidArgument for a setting that cannot be.
    """
    made = ctypes.c_void_p()
    check(lib.comm_open(_config(settings), ctypes.byref(made)))
    return Communicator(made.value)


def unique_id(across_hosts: bool = False) -> bytes:
    """The name of a communicator to be: make it on one rank, hand it to the others by any means, and join() by it.

    across_hosts  whether ranks of other hosts come: they meet at an address of this one that those reach
                  (RONDO_INTERFACE chooses). Where RONDO_ADDRESS is set, ranks meet there in any case.

    This process listens until all have come. The bytes hold the secret that proves the right to join.
    """
    made = UniqueId()
    if across_hosts:
        check(lib.unique_id_create_at(None, -1.0, ctypes.byref(made)))
    else:
        check(lib.unique_id_create(ctypes.byref(made)))
    return bytes(made.bytes)


def join(unique_id: bytes, size: int, rank: int, **settings: Any) -> Communicator:
    """Join by id as `rank`; blocks until all `size` ranks have. Settings are those of init(). Not in a group."""
    if lib.group_is_open():
        raise invalid("rondo.join: not inside of a group, which would join at its end; it has to wait for the others.")
    made = ctypes.c_void_p()
    check(lib.comm_open_id(ctypes.byref(_id(unique_id)), size, rank, _config(settings), ctypes.byref(made)))
    return Communicator(made.value)


def join_running(unique_id: bytes, size: int, rank: int, **settings: Any) -> Communicator:
    """Come to a communicator that runs, as a newcomer, while its members call grow() with this id and size."""
    made = ctypes.c_void_p()
    check(lib.comm_grow(None, ctypes.byref(_id(unique_id)), size, rank, _config(settings), ctypes.byref(made)))
    return Communicator(made.value)


def open_all(size: int, **settings: Any) -> list[Communicator]:
    """All ranks of a communicator in this process, to be used by a thread each: the r-th is rank r's."""
    made = (ctypes.c_void_p * size)()
    check(lib.comm_open_all(size, _config(settings), made))
    return [Communicator(handle) for handle in made]
