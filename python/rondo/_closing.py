# SPDX-License-Identifier: BSD-3-Clause
"""What objects have in common that are closed: by the end of a `with`, or with the last reference to them."""
from __future__ import annotations

from typing import Any, TypeVar

Closed = TypeVar("Closed", bound="Closing")


class Closing:
    """Mixed into classes with close(), which does nothing a second time, and a handle of C's until then."""

    _handle: int | None
    close: Any

    def __enter__(self: Closed) -> Closed:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __del__(self) -> None:
        if getattr(self, "_handle", None):
            self.close()
