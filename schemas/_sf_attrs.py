"""What nodes say beyond their place, by kind of node (specification, section 6).

Attrs are a map with sorted keys, so the fields of each type stand in key order; a field with a default is left out when
it holds that default.
"""

from __future__ import annotations

from schemas._sf_model import Attrs, Ref


class SessionAttrs(Attrs, kw_only=True):
    """Times are RFC 3339; `title_from` is how the title is known."""

    conversation: str
    from_time: str = ""
    provider_bodies_landed: int = 0
    through_time: str = ""
    title: str = ""
    title_from: str = ""


class StreamAttrs(Attrs, kw_only=True):
    """`role` is main, child or auxiliary."""

    label: str = ""
    records: int
    role: str


class EpochAttrs(Attrs, kw_only=True):
    """`reset` is none, or how the reset that opened the epoch is known."""

    continues_from: str = ""
    records: int
    reset: str


class TalkAttrs(Attrs, kw_only=True):
    """How many runs the talk lists (`loops`) and has nodes for (`runs`)."""

    loops: int
    runs: int
    trigger: str


class RunAttrs(Attrs, kw_only=True):
    """`trigger` is external or notification."""

    trigger: str


class SegmentAttrs(Attrs, kw_only=True):
    """`state` is open or candidate."""

    committable: bool
    gates_unmet: tuple[str, ...]
    state: str
    talks: int


class UsageAt(Attrs, kw_only=True):
    """A record's place as a map with sorted keys, which a `Ref` is not."""

    row: int
    seq: int


class ProviderBody(Attrs, kw_only=True):
    """`role` is request or response."""

    role: str
    ref: Ref


class CallAttrs(Attrs, kw_only=True):
    """`usage_at` is the record that carries the usage; `stop_reason` stands only where neither it nor the usage is
    known.
    """

    fragments: int
    provider_bodies: tuple[ProviderBody, ...] = ()
    stop_reason: str = ""
    usage: str
    usage_at: UsageAt | None = None
    usage_from: str


class ToolAttrs(Attrs, kw_only=True):
    """`launched` is the label of the workflow that the use launched."""

    launched: str = ""
    name: str
    result: str
    result_join: str
    timing: str


class OutputAttrs(Attrs, kw_only=True):
    """What is known of the value that a child returned."""

    returned_value: str


class ErrorAttrs(Attrs, kw_only=True):
    """What is known of retries after the error."""

    retry_state: str


class TurnAttrs(Attrs, kw_only=True):
    """How the turn's duration is known."""

    measured_by: str
