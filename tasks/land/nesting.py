"""Whether a record can be written: a value nested just as deep as is allowed is too deep once it stands in a record."""

from __future__ import annotations

from schemas.lenient_json import UndecodableJSON, check
from schemas.session_data import Record, encode_record

__all__ = ["TOO_DEEP", "is_too_deep"]

TOO_DEEP = "the record is nested too deep to stand inside another"

_BRACKETS_WITHOUT_DOUBT = 9_000
"""Fewer than this cannot be nested too deep."""


def is_too_deep(body: bytes, record: Record) -> bool:
    """Whether the record made from a line cannot be read again; cheap for all lines but the oddest."""
    if len(body) <= _BRACKETS_WITHOUT_DOUBT or body.count(b"[") + body.count(b"{") <= _BRACKETS_WITHOUT_DOUBT:
        return False
    try:
        check(encode_record(record))
    except UndecodableJSON:
        return True
    return False
