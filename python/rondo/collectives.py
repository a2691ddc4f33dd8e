# SPDX-License-Identifier: BSD-3-Clause
"""The calls of a communicator. Each is the function of the same name in rondo.h, which has the whole contract.

Buffers are NumPy arrays, tensors of torch, whatever has DLPack or the buffer protocol, in memory of the host and
contiguous; nothing is copied. `n` is the number of ranks. Only counts of elements matter, not shapes. In place: give no
`out` where input and output are as long, else an `x` that is block [my rank] of `out`, or the other way round.

With a stream, a call returns an Event at once, runs behind what is queued on that stream, and reads and writes its
buffers until the event is reached; `event.wait()` or `await event` give the output. In a group it returns the output,
which is complete behind the group.

All raise InvalidArgument (nothing was started), Mismatch, PeerFailed, Timeout, Aborted: after any but the first
the communicator is broken, and the buffers are the caller's again.
"""
from __future__ import annotations

from typing import Any, Callable, Sequence

from . import groups
from ._buffers import OTHER, describe, moved, reduced
from ._library import lib
from .errors import failure, invalid
from .operations import CODES, Operation, code_of, first_raised
from .streams import Event, Stream

_all_reduce = lib.all_reduce
_groups = groups._mine


def _new_like(x: Any, count: int, shape: tuple[int, ...]) -> Any:
    """An array of the kind of `x`."""
    if hasattr(x, "new_empty"):
        return x.new_empty(shape)
    if hasattr(x, "__array_interface__"):
        import numpy
        return numpy.empty(shape, x.dtype)
    raise invalid(f"There is no output, and none can be made of the kind of a {type(x).__name__}: give `out` with room "
                  f"for {count} elements.")


def _shape_of(x: Any) -> tuple[int, ...]:
    return tuple(x.shape) if hasattr(x, "shape") else (describe(x)[1],)


class Collectives:
    """Mixed into Communicator, which has the handle, rank and size."""

    _handle: int | None
    _pending: set[Event]
    rank: int
    size: int

    # ---- how calls end -----------------------------------------------------------------------------------------------

    def _call(self, function: Callable[..., int], arguments: Sequence[Any], out: Any, stream: Stream | None, keep: Any,
              op: Any = None) -> Any:
        """Make the call; raise, or return what it returns: the output, or an event of the stream."""
        open_groups = _groups.open
        if stream is None:
            result = function(*arguments, self._handle, None)
        elif open_groups:
            result = function(*arguments, self._handle, stream._of_calls())
        else:
            with stream._lock:
                result = function(*arguments, self._handle, stream._of_calls())
                if not result:
                    return Event(stream, out, (self,), keep, (op,))
        if result:
            raise failure(result, self) from first_raised((op,))
        if open_groups:
            open_groups[-1]._add(self, stream, keep, op)
        elif isinstance(op, Operation) and op._raised:
            raised = first_raised((op,))
            if raised is not None:
                raise raised
        return out

    def _two(self, x: Any, out: Any, ins: int, outs: int) -> tuple[int, int, int, int, Any]:
        """Addresses, count and type of a call whose buffers have ins * count and outs * count elements."""
        source, count, kind, keep = describe(x)
        target, room, room_kind, keep_out = describe(out, True)
        if kind != room_kind:
            raise invalid("Input and output have elements of different types.")
        if count % ins or room != count // ins * outs:
            raise invalid(f"The input has {count} elements and the output {room}: on {self.size} ranks the "
                          f"{'output' if outs > ins else 'input'} has to be {max(ins, outs) // min(ins, outs)} times "
                          "as long as the other one.")
        return source, target, count // ins, kind, (keep, keep_out)

    def _root(self, root: int) -> bool:
        if not 0 <= root < self.size:
            raise invalid(f"There is no rank {root} to be the root: ranks are 0 to {self.size - 1}.")
        return root == self.rank

    # ---- calls -------------------------------------------------------------------------------------------------------

    def all_reduce(self, x: Any, out: Any = None, op: Any = "sum", *, stream: Stream | None = None) -> Any:
        """out = op over the ranks of x, on every rank.

        x    count elements
        out  count elements; None: x itself
        op   "sum", "prod", "min", "max", "avg", "band", "bor", "bxor", a rondo.Op, or an operation of your own
        """
        code = CODES[op] if type(op) is str and op in CODES else code_of(op, self)
        if out is None:
            source, count, kind, keep = describe(x, True)
            target, out = source, x
        else:
            source, target, count, kind, keep = self._two(x, out, 1, 1)
        if kind >= OTHER:
            count, kind, code = reduced(count, kind, code)
        if stream is not None or _groups.open or type(op) is not str:
            return self._call(_all_reduce, (source, target, count, kind, code), out, stream, keep, op)
        result = _all_reduce(source, target, count, kind, code, self._handle, None)
        if result:
            raise failure(result, self)
        return out

    def reduce(self, x: Any, out: Any = None, op: Any = "sum", root: int = 0, *, stream: Stream | None = None) -> Any:
        """out = op over the ranks of x, at the root, which is returned there and None elsewhere.

        x    count elements
        out  count elements at the root (None: x itself), ignored elsewhere
        """
        source, count, kind, keep = describe(x)
        target = 0
        if self._root(root):
            out = x if out is None else out
            source, target, count, kind, keep = self._two(x, out, 1, 1)
        else:
            out = None
        count, kind, code = reduced(count, kind, code_of(op, self))
        return self._call(lib.reduce, (source, target, count, kind, code, root), out, stream, keep, op)

    def broadcast(self, x: Any, root: int = 0, *, stream: Stream | None = None) -> Any:
        """x, count elements, becomes on every rank what it is at the root. Returns x."""
        address, count, kind, keep = describe(x, not self._root(root))
        count, kind = moved(count, kind)
        return self._call(lib.broadcast, (address, address, count, kind, root), x, stream, keep)

    def all_gather(self, x: Any, out: Any = None, *, stream: Stream | None = None) -> Any:
        """Block r of out = x of rank r, on every rank.

        x    count elements
        out  n * count elements; None: a new array of shape (n, *x.shape)
        """
        if out is None:
            shape = _shape_of(x)
            out = _new_like(x, self.size * describe(x)[1], (self.size, *shape))
        source, target, count, kind, keep = self._two(x, out, 1, self.size)
        count, kind = moved(count, kind)
        return self._call(lib.all_gather, (source, target, count, kind), out, stream, keep)

    def reduce_scatter(self, x: Any, out: Any = None, op: Any = "sum", *, stream: Stream | None = None) -> Any:
        """out = op over the ranks of block [my rank] of x.

        x    n * count elements
        out  count elements; None: a new array of shape x.shape[1:] if x.shape[0] is n, else of one dimension
        """
        if out is None:
            shape, count = _shape_of(x), describe(x)[1] // self.size
            out = _new_like(x, count, shape[1:] if len(shape) > 1 and shape[0] == self.size else (count,))
        source, target, count, kind, keep = self._two(x, out, self.size, 1)
        count, kind, code = reduced(count, kind, code_of(op, self))
        return self._call(lib.reduce_scatter, (source, target, count, kind, code), out, stream, keep, op)

    def all_to_all(self, x: Any, out: Any = None, *, stream: Stream | None = None) -> Any:
        """Block r of out = block [my rank] of rank r's x.

        x    n * count elements
        out  n * count elements, another array; None: a new one of the shape of x
        """
        if out is None:
            out = _new_like(x, describe(x)[1], _shape_of(x))
        source, target, count, kind, keep = self._two(x, out, 1, 1)
        if count % self.size:
            raise invalid(f"{count} elements are no {self.size} blocks of equal length.")
        count, kind = moved(count // self.size, kind)
        return self._call(lib.all_to_all, (source, target, count, kind), out, stream, keep)

    def gather(self, x: Any, out: Any = None, root: int = 0, *, stream: Stream | None = None) -> Any:
        """Block r of out = x of rank r, at the root, which is returned there and None elsewhere.

        x    count elements
        out  n * count elements at the root (None: a new array of shape (n, *x.shape)), ignored elsewhere
        """
        target = 0
        if self._root(root):
            if out is None:
                out = _new_like(x, self.size * describe(x)[1], (self.size, *_shape_of(x)))
            source, target, count, kind, keep = self._two(x, out, 1, self.size)
        else:
            source, count, kind, keep = describe(x)
            out = None
        count, kind = moved(count, kind)
        return self._call(lib.gather, (source, target, count, kind, root), out, stream, keep)

    def scatter(self, x: Any, out: Any, root: int = 0, *, stream: Stream | None = None) -> Any:
        """out = block [my rank] of the root's x. Returns out.

        x    n * count elements at the root, ignored elsewhere (None)
        out  count elements
        """
        source = 0
        if self._root(root):
            source, target, count, kind, keep = self._two(x, out, self.size, 1)
        else:
            target, count, kind, keep = describe(out, True)
        count, kind = moved(count, kind)
        return self._call(lib.scatter, (source, target, count, kind, root), out, stream, keep)

    def barrier(self, *, stream: Stream | None = None) -> Any:
        """Return when all ranks are here."""
        return self._call(lib.barrier, (), None, stream, None)

    def send(self, x: Any, to: int, *, stream: Stream | None = None) -> Any:
        """Send x, count elements, to rank `to`, which receives as many of the same type, in order. May wait for it."""
        address, count, kind, keep = describe(x)
        count, kind = moved(count, kind)
        return self._call(lib.send, (address, count, kind, to), None, stream, keep)

    def recv(self, out: Any, source: int, *, stream: Stream | None = None) -> Any:
        """Receive count elements from rank `source` into out, which is returned."""
        address, count, kind, keep = describe(out, True)
        count, kind = moved(count, kind)
        return self._call(lib.recv, (address, count, kind, source), out, stream, keep)
