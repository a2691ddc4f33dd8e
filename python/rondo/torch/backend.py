# SPDX-License-Identifier: BSD-3-Clause
"""The backend: each call of a process group as one of a communicator.

A group's communicator is opened by an id that rank 0 puts into the group's store. A call that is waited for at once,
with no other one before it, is made in the caller's thread; a short one that nobody waits for yet is posted by it; any
other one is made in the group's thread, in order. Messages from rank to rank are no part of that order (messages.py).
"""
from __future__ import annotations

import inspect
import threading
from datetime import timedelta
from typing import Any, Callable, Sequence

import torch
import torch.distributed as dist
from torch._C._distributed_c10d import Backend as Base

import rondo

from .._abi import Collective
from .meeting import meet
from .messages import Messages
from .tensors import (CODES_BY_KIND, all_reduce_plain, changed, dense, divide, gathered, joined, operation, post, read,
                      sum_of_sparse)
from .work import All, Call, Posted, Work, Worker, translated

Tensors = Sequence[torch.Tensor]


# All that are not shut down: torch may keep nothing but the part of an object that is C++, and does with
# TORCH_DISTRIBUTED_DEBUG=DETAIL; that alone would be a backend without any call.
_living: set[Backend] = set()


class Backend(Base):
    """A process group's calls on tensors of the CPU; see torch.distributed for each."""

    TITLE = "rondo"

    def __init__(self, store: Any, rank: int, size: int, timeout: timedelta) -> None:
        super().__init__(rank, size)
        self._store, self._rank, self._size, self._timeout = store, rank, size, timeout
        self._batch: list[Work] | None = None
        self._sequence = self._barriers = 0
        self._worker = Worker(Worker())
        self._comm: rondo.Communicator | None = None
        # A store may outlive a group, and have another one that counts from 0.
        self._life = store.add(f"monitored/came/{rank}", 1)
        comm = meet(store, "world", rank, size, timeout.total_seconds())
        self._messages = Messages(comm, timeout.total_seconds())
        self._comm = comm
        self._options = Base.Options(self.TITLE, timeout)
        self._last: Posted | None = None
        self._posting = threading.Lock()
        self._ended = Work([])  # of all calls that are made at once
        self._ended.end()
        _living.add(self)

    # ---- what torch asks ---------------------------------------------------------------------------------------------

    def name(self) -> str:
        return self.TITLE

    getBackendName = name

    @property
    def options(self) -> Any:
        return self._options

    def _get_sequence_number_for_group(self) -> int:
        return self._sequence

    def _set_sequence_number_for_group(self) -> None:
        pass  # every rank counts from 0

    def set_timeout(self, timeout: timedelta) -> None:
        self._timeout = timeout
        self._messages.patience = timeout.total_seconds()
        self._comm.set_timeout(timeout.total_seconds())

    _set_default_timeout = set_timeout

    def abort(self) -> None:
        if self._comm is not None:
            self._comm.abort()
            self._messages.abort()

    def shutdown(self) -> None:
        if self._comm is not None:
            self._worker.close()
            self._messages.close()
            self._comm.close()
            self._comm = self._last = None
        _living.discard(self)

    def __del__(self) -> None:
        if getattr(self, "_comm", None) is not None:
            self.shutdown()

    # ---- how calls are made ------------------------------------------------------------------------------------------

    def _is_alone(self, options: Any) -> bool:
        """A call with nothing before it and no timeout of its own."""
        return (self._batch is None and self._worker.idle and self._comm is not None and
                options.timeout.total_seconds() <= 0)

    def _start(self, outputs: Tensors, options: Any, body: Callable[[], Any]) -> Work:
        if self._comm is None:
            raise dist.DistBackendError("rondo: The process group was shut down.")
        self._sequence += 1
        work = Call(list(outputs))
        seconds = options.timeout.total_seconds()
        call = body if seconds <= 0 else lambda: self._with_timeout(seconds, body)
        if options.asyncOp or self._batch is not None or not self._worker.idle:
            self._worker.give(lambda: work.run(call))
        else:
            work.run(call)
        if self._batch is not None:
            self._batch.append(work)
        return work

    def _posted(self, options: Any, collective: Collective, x: torch.Tensor, out: torch.Tensor, count: int,
                code: int | None = 0) -> Work | None:
        """A short call with nothing before it that nobody waits for at once, without a thread; None: it is another."""
        if not options.asyncOp or not self._is_alone(options):
            return None
        with self._posting:
            try:
                request = post(self._comm, collective, x, out, count, code)
            except rondo.Error as error:
                raise translated(error, self._timeout.total_seconds()) from error
            if request is None:
                return None
            self._sequence += 1
            if request:  # kept until there is another one, as its tensors have to be when nobody waits for it
                self._last = Posted(x, out, request, self._comm, self._worker, self._timeout.total_seconds())
                return self._last
        work = Work([out])
        work.end()
        return work

    def _with_timeout(self, seconds: float, body: Callable[[], Any]) -> None:
        self._comm.set_timeout(seconds)
        try:
            body()
        except rondo.Timeout as error:
            raise translated(error, seconds) from error
        finally:
            self._comm.set_timeout(self._timeout.total_seconds())

    def start_coalescing(self) -> None:
        self._batch = []

    def end_coalescing(self) -> Work:
        works, self._batch = self._batch, None
        return All(works or [])

    # ---- reductions --------------------------------------------------------------------------------------------------

    def _reduced(self, tensor: torch.Tensor, options: Any) -> None:
        if tensor.layout == torch.sparse_coo:
            if options.reduceOp.op != dist.ReduceOp.SUM:
                raise ValueError("rondo: Sparse tensors can be summed, and nothing else.")
            sum_of_sparse(self._comm, tensor)
            return
        dense(tensor)
        with operation(self._comm, options, tensor) as op, changed(tensor) as flat:
            self._comm.all_reduce(flat, op=op)

    def allreduce(self, tensors: Tensors, options: Any) -> Work:
        if not options.asyncOp and len(tensors) == 1 and self._is_alone(options):
            x = tensors[0]
            try:
                if all_reduce_plain(self._comm, x, x, CODES_BY_KIND.get(options.reduceOp.op)):
                    self._sequence += 1
                    return self._ended
            except rondo.Error as error:
                raise translated(error, self._timeout.total_seconds()) from error
        work = len(tensors) == 1 and self._posted(options, Collective.ALL_REDUCE, tensors[0], tensors[0],
                                                  tensors[0].numel(), CODES_BY_KIND.get(options.reduceOp.op))
        return work or self.allreduce_coalesced(tensors, options)

    def allreduce_coalesced(self, tensors: Tensors, options: Any) -> Work:
        return self._start(tensors, options, lambda: [self._reduced(tensor, options) for tensor in tensors])

    allreduce_sparse = allreduce_coalesced

    def reduce(self, tensors: Tensors, options: Any) -> Work:
        tensor, root = tensors[0], options.rootRank
        dense(tensor)

        def body() -> None:
            with operation(self._comm, options, tensor) as op:
                if root != self._rank:
                    self._comm.reduce(read(tensor), op=op, root=root)
                    return
                with changed(tensor) as flat:
                    self._comm.reduce(flat, op=op, root=root)
        return self._start(tensors, options, body)

    def _scattered(self, output: torch.Tensor, source: torch.Tensor, options: Any) -> None:
        dense(output, source)
        with operation(self._comm, options, output) as op, changed(output) as flat:
            self._comm.reduce_scatter(read(source), flat, op)

    def reduce_scatter_single(self, output: torch.Tensor, source: torch.Tensor, options: Any) -> Work:
        work = source.numel() == output.numel() * self._size and self._posted(
            options, Collective.REDUCE_SCATTER, source, output, output.numel(),
            CODES_BY_KIND.get(options.reduceOp.op))
        return work or self._start([output], options, lambda: self._scattered(output, source, options))

    def reduce_scatter_single_coalesced(self, outputs: Tensors, sources: Tensors, options: Any) -> Work:
        return self._start(outputs, options, lambda: [self._scattered(output, source, options)
                                                      for output, source in zip(outputs, sources)])

    def reduce_scatter(self, outputs: Tensors, sources: Sequence[Tensors], options: Any) -> Work:
        return self._start(outputs, options, lambda: [self._scattered_list(output, parts, options)
                                                      for output, parts in zip(outputs, sources)])

    def _scattered_list(self, output: torch.Tensor, parts: Tensors, options: Any) -> None:
        if all(part.numel() == output.numel() for part in parts):
            self._scattered(output, joined(parts), options)
            return
        with operation(self._comm, options, output) as op, changed(output) as flat:
            self._comm.reduce_scatter_v(joined(parts), [part.numel() for part in parts], flat, op)

    # ---- moving ------------------------------------------------------------------------------------------------------

    def broadcast(self, tensors: Tensors, options: Any) -> Work:
        dense(*tensors)

        def body() -> None:
            for tensor in tensors:
                with changed(tensor) as flat:
                    self._comm.broadcast(flat, options.rootRank)
        return self._start(tensors, options, body)

    def _gathered(self, output: torch.Tensor, source: torch.Tensor) -> None:
        dense(output, source)
        with changed(output) as flat:
            self._comm.all_gather(read(source), flat)

    def all_gather_single(self, output: torch.Tensor, source: torch.Tensor, options: Any) -> Work:
        work = output.numel() == source.numel() * self._size and self._posted(
            options, Collective.ALL_GATHER, source, output, source.numel())
        return work or self._start([output], options, lambda: self._gathered(output, source))

    def all_gather_single_coalesced(self, outputs: Tensors, sources: Tensors, options: Any) -> Work:
        return self._start(outputs, options, lambda: [self._gathered(output, source)
                                                      for output, source in zip(outputs, sources)])

    def allgather(self, outputs: Sequence[Tensors], sources: Tensors, options: Any) -> Work:
        flat = [tensor for parts in outputs for tensor in parts]
        return self._start(flat, options, lambda: [self._gathered_list(parts, source)
                                                   for parts, source in zip(outputs, sources)])

    def allgather_coalesced(self, outputs: Sequence[Tensors], sources: Tensors, options: Any) -> Work:
        """One list per rank, here, with a tensor for each input."""
        by_input = [list(parts) for parts in zip(*outputs)]
        return self.allgather(by_input, sources, options)

    def _gathered_list(self, parts: Tensors, source: torch.Tensor) -> None:
        dense(source, *parts)
        if all(part.numel() == source.numel() for part in parts):
            divide(gathered(self._comm, read(source)).reshape(-1), parts)
            return
        lengths = [part.numel() for part in parts]
        whole = source.new_empty(sum(lengths))
        self._comm.all_gather_v(read(source), whole, lengths)
        divide(whole, parts)

    def gather(self, outputs: Sequence[Tensors], sources: Tensors, options: Any) -> Work:
        source, root = sources[0], options.rootRank
        parts = outputs[0] if root == self._rank else []
        dense(source, *parts)

        def body() -> None:
            whole = self._comm.gather(read(source), root=root)
            if parts:
                divide(whole.reshape(-1), parts)
        return self._start(parts, options, body)

    def scatter(self, outputs: Tensors, sources: Sequence[Tensors], options: Any) -> Work:
        output, root = outputs[0], options.rootRank
        parts = sources[0] if root == self._rank else []
        dense(output, *parts)

        def body() -> None:
            with changed(output) as flat:
                self._comm.scatter(joined(parts) if parts else None, flat, root)
        return self._start(outputs, options, body)

    # ---- everybody with everybody ------------------------------------------------------------------------------------

    def _exchanged(self, outputs: Tensors, sources: Tensors) -> None:
        """Contiguous tensors of any length to and from each rank; a message of nothing is none."""
        outputs[self._rank].copy_(sources[self._rank].view(outputs[self._rank].shape))
        with rondo.group():
            for distance in range(1, self._size):
                to, source = (self._rank + distance) % self._size, (self._rank - distance) % self._size
                if sources[to].numel():
                    self._comm.send(sources[to], to)
                if outputs[source].numel():
                    self._comm.recv(outputs[source], source)

    def _parts(self, tensor: torch.Tensor, lengths: Sequence[int]) -> Tensors:
        rows = tensor.shape[0] if tensor.dim() else 1
        if not lengths:
            if rows % self._size:
                raise ValueError(f"rondo: {rows} rows do not divide equally across a group of {self._size} ranks.")
            lengths = [rows // self._size] * self._size
        if len(lengths) != self._size or sum(lengths) != rows:
            raise ValueError(f"rondo: Split sizes {list(lengths)} are not {self._size} whose sum is {rows}.")
        return tensor.split(list(lengths))

    def all_to_all_single(self, output: torch.Tensor, source: torch.Tensor, output_lengths: Sequence[int],
                          source_lengths: Sequence[int], options: Any) -> Work:
        dense(output, source)
        self._parts(output, output_lengths)
        self._parts(source, source_lengths)

        def body() -> None:
            with changed(output) as flat:
                if not output_lengths and not source_lengths:
                    self._comm.all_to_all(read(source), flat)
                else:
                    sent, received = ([part.numel() for part in self._parts(tensor, lengths)] for tensor, lengths in (
                        (source, source_lengths), (output, output_lengths)))
                    self._comm.all_to_all_v(read(source), sent, flat, received)
        return self._start([output], options, body)

    def alltoall(self, outputs: Tensors, sources: Tensors, options: Any) -> Work:
        dense(*outputs, *sources)

        def body() -> None:
            flat = [torch.empty(output.shape, dtype=output.dtype) for output in outputs]
            self._exchanged(flat, [read(source) for source in sources])
            for output, arrived in zip(outputs, flat):
                output.detach().copy_(arrived)
        return self._start(outputs, options, body)

    # ---- waiting for each other --------------------------------------------------------------------------------------

    def barrier(self, options: Any) -> Work:
        return self._start([], options, lambda: self._comm.barrier())

    def monitored_barrier(self, options: Any, wait_all_ranks: bool = False) -> None:
        """Rank 0 looks who comes, in the store, so that it works beside a communicator that hangs or is broken."""
        timeout = options.timeout if options.timeout >= timedelta(0) else self._timeout
        self._barriers += 1
        key = f"monitored/{self._life}/{self._barriers}"
        if self._rank:
            self._store.set(f"{key}/{self._rank}", "here")
            try:
                self._store.wait([f"{key}/passed"], timeout)
            except RuntimeError as error:
                raise RuntimeError(f"Rank {self._rank} successfully reached monitoredBarrier, but received errors "
                                   f"while waiting for send/recv from rank 0: it did not pass within {timeout}. "
                                   "Please check rank 0 logs for faulty rank.") from error
            return
        if not timeout:
            raise RuntimeError("Rank 0 timed out in monitoredBarrier after 0 ms: give it time for the others to come.")
        missing: list[int] = []
        for rank in range(1, self._size):
            try:
                self._store.wait([f"{key}/{rank}"], timeout if not missing else timedelta(milliseconds=10))
            except RuntimeError:
                missing.append(rank)
                if not wait_all_ranks:
                    break
        if missing:
            ranks = f"Rank {missing[0]}" if not wait_all_ranks else f"Ranks {', '.join(map(str, missing))}"
            raise RuntimeError(f"[Rank 0]: {ranks} failed to pass monitoredBarrier in {timeout}: look at what they do.")
        self._store.set(f"{key}/passed", "")

    # ---- point to point ----------------------------------------------------------------------------------------------

    def _message(self, work: Work) -> Work:
        self._sequence += 1
        if self._batch is not None:
            self._batch.append(work)
        return work

    def send(self, tensors: Tensors, to: int, tag: int) -> Work:
        dense(tensors[0])
        self._peer(to)
        return self._message(self._messages.send(tensors[0], to, tag))

    def recv(self, tensors: Tensors, source: int, tag: int) -> Work:
        dense(tensors[0])
        self._peer(source)
        return self._message(self._messages.receive(tensors[0], source, tag))

    def recv_anysource(self, tensors: Tensors, tag: int) -> Work:
        dense(tensors[0])
        return self._message(self._messages.receive(tensors[0], None, tag))

    def _peer(self, rank: int) -> None:
        if not 0 <= rank < self._size or rank == self._rank:
            raise ValueError(f"rondo: Invalid destination or source rank {rank}: messages go from rank {self._rank} to "
                             f"another one below {self._size}.")


# torch's own properties ask the subclass, so one that it has not would ask itself for ever.
for _name in dir(Base):
    if _name.startswith(("supports_", "_supports_")) and isinstance(inspect.getattr_static(Base, _name), property):
        setattr(Backend, _name, _name == "supports_coalescing")


def create(options: Any, _backend_options: Any = None) -> Backend:
    """What torch calls for each process group: options are c10d's DistributedBackendOptions."""
    timeout = options.timeout if isinstance(options.timeout, timedelta) else timedelta(seconds=options.timeout)
    return Backend(options.store, options.group_rank, options.group_size, timeout)
