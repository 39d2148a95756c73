"""The values of Session Data, `sd/1` (specification, section 3).

Field order is writing order. A field with a default is left out when it holds that default; a field without one is
always written. Both are part of the type, so the codecs have no list of keys of their own.
"""

from __future__ import annotations

from dataclasses import dataclass

from msgspec import UNSET, Raw, UnsetType, field

from schemas._formats import Format, RawString, Signed, Unsigned

SCHEMA = "sd/1"


class SessionDataHeader(Format, kw_only=True):
    """First line of a landed file: what every record below it has in common."""

    h: Signed
    schema: str
    seq: Unsigned
    at: str
    kind: str
    adapter: str
    dialect: str
    src: str
    session: str
    stream: str = ""
    batch: str = ""


class Usage(Format, kw_only=True):
    """Tokens a provider reported for one call."""

    in_: Signed = field(default=0, name="in")
    out: Signed = 0
    cache_read: Signed = 0
    cache_write: Signed = 0


class Dropped(Format, kw_only=True):
    """Content that the conversion left out on purpose, and its size in bytes."""

    what: str
    bytes: Signed
    why: str = ""


class Part(Format, kw_only=True):
    """One piece of a record's content.

    ``text`` is the JSON string as it stands in the file, quotes included (`session_data.text_of` decodes it); ``data``
    is any JSON value as it stands there. Both are UNSET when absent and neither is copied or decoded by the reader.
    ``server`` and ``server_tool`` belong to a later generation: they are carried, never interpreted.
    """

    k: str
    text: RawString | UnsetType = UNSET
    data: Raw | UnsetType = UNSET
    id: str = ""
    of: str = ""
    name: str = ""
    server: Raw | UnsetType = UNSET
    server_tool: Raw | UnsetType = UNSET
    failed: bool | None = None
    media: str = ""
    encoding: str = ""
    state: str = ""
    bytes: Signed = 0


class Record(Format, kw_only=True):
    """One record of the source. ``ord`` and ``off`` are its line and byte offset there; an absent string is ``""``."""

    ord: Unsigned
    off: Unsigned
    sha: str
    bytes: Signed
    id: str = ""
    parent: str = ""
    call: str = ""
    run: str = ""
    continues: str = ""
    tool: str = ""
    child: str = ""
    batch: str = ""
    label: str = ""
    started_by: str = ""
    from_: str = field(default="", name="from")
    time: str = ""
    trigger: str = ""
    flags: tuple[str, ...] = ()
    usage: Usage | None = None
    model: str = ""
    parts: tuple[Part, ...] = ()
    dropped: tuple[Dropped, ...] = ()


class EndLine(Format, kw_only=True):
    """Last line of a landed file; ``digest`` is over every line before it."""

    t: str
    records: Signed
    digest: str


@dataclass(frozen=True, slots=True)
class LandedFile:
    """A landed file that passed every check.

    ``digest`` is the hex SHA-256 of the whole file (end line, and anything after it, included), ``size`` its bytes.
    """

    name: str
    header: SessionDataHeader
    records: list[Record]
    digest: str
    size: int
