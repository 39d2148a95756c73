"""Base of the small values that stages keep one of for each call, tool, talk and so on."""

from __future__ import annotations

import msgspec

__all__ = ["Row"]


class Row(msgspec.Struct, frozen=True, gc=False, array_like=True):
    """Frozen and without cycles, so the garbage collector need not walk a session's hundreds of thousands of them."""
