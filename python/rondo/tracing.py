# SPDX-License-Identifier: BSD-3-Clause
"""Spans of the program's own in the trace of RONDO_TRACE (docs/trace.md)."""
from __future__ import annotations

import contextlib
from typing import Iterator

from ._library import lib


@contextlib.contextmanager
def span(name: str, number: int = 0) -> Iterator[None]:
    """What is done within it is drawn with the calls: `with rondo.span("forward"):`. `number` tells spans of one name
    from each other that overlap. Without RONDO_TRACE nothing happens."""
    text = name.encode()
    lib.trace_begin(text, number)
    try:
        yield
    finally:
        lib.trace_end(text, number)
