"""A conversation with the landed records behind it: what an export is made from.

The chain says which evidence counts (`through_seq`), who was heard (message.external), which tools were used and what
is still open; the records hold the words and sizes, which rounds never repeat (session-flow specification, sections 4
to 7).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

import msgspec

from schemas.errors import ChainRejected
from schemas.input_digest import input_digest
from schemas.session_data import LandedFile, Record, read_session_data
from schemas.session_flow import Ref, RoundHeader, View
from storage.zone import LandedRef, Zone
from tasks.export.corrected import corrected

__all__ = ["Conversation", "Placed", "RoundName", "Tool", "conversation_of", "read_conversation"]

MAIN = "main"
_NO_TRANSCRIPT = frozenset(
    ("agent_meta", "journal", "workflow_manifest", "workflow_script", "changes", "provider_body", "execution")
)
_NO_EVIDENCE_OF_RECORDS = frozenset(("changes", "provider_body", "execution"))
_CHILD_OPEN = ("child_stream", "notified_child")
_FLAGS_LAUNCHES = frozenset(("claude-code",))
"""Sources in which a tool's result without launch_ack is what the child did; in others it may be a mere launch."""

Position = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Placed:
    """A record of the main stream and where it landed."""

    seq: int
    row: int
    record: Record


@dataclass(frozen=True, slots=True)
class Tool:
    """A tool use of the main stream as the chain has it; `answered` is False while no result landed."""

    id: str
    name: str
    answered: bool


@dataclass(frozen=True, slots=True)
class RoundName:
    """A round of the chain, by which it can be found and checked."""

    number: int
    digest: str


@dataclass(frozen=True, slots=True)
class Conversation:
    """One conversation as of its newest round.

    `records` are the main stream's, in landed order, without copies, and as the last landing of each file has them;
    `tools` by (seq, row, block) of the use; `heard` the positions of message.external; `missing_children` maps each
    child stream that is announced and has not landed to the tools that launched it and wait for it still. `last_time`
    is RFC 3339, or empty when no record has a time.
    """

    id: str
    session: str
    dialect: str
    title: str
    first_time: str
    last_time: str
    landed_at: str
    through_seq: int
    rounds: tuple[RoundName, ...]
    records: tuple[Placed, ...]
    tools: Mapping[tuple[int, int, int], Tool]
    heard: frozenset[Position]
    missing_children: Mapping[str, frozenset[str]]

    @property
    def source(self) -> str:
        """The dialect's name without its version: whose session it is."""
        return self.dialect.partition("/")[0]


class _Node(msgspec.Struct):
    kind: str = ""
    stream: str = ""
    ref: Ref | None = None
    attrs: msgspec.Raw = msgspec.Raw(b"{}")


class _ToolAttrs(msgspec.Struct):
    name: str = ""
    result_join: str = ""


class _Open(msgspec.Struct):
    kind: str = ""
    ref: str = ""
    state: str = ""


def read_conversation(zone: Zone, conversation: str) -> Conversation | None:
    """The conversation and its records from `zone`; None when it has no rounds.

    Raises as `ChainStore.fold` does, `SessionDataRejected` for a damaged landed file, and `ChainRejected`
    (``input_digest``) when a round was made from other landed files than those that are there.
    """
    view, rounds = _read_chain(zone, conversation)
    if view.header is None:
        return None
    through = view.header.through_seq
    digests: dict[int, list[str]] = {}

    def landed() -> Iterator[tuple[LandedRef, LandedFile]]:
        wanted = [ref for ref in zone.landed_files(rounds[-1][1].session) if ref.seq <= through]
        for ref, data in zone.read_many(wanted):
            file = read_session_data(data, name=ref.key)
            digests.setdefault(ref.seq, []).append(file.digest)
            yield ref, file

    found = conversation_of(view, tuple(name for name, _ in rounds), landed())
    _check_evidence(conversation, [header for _, header in rounds], digests)
    return found


def _read_chain(zone: Zone, conversation: str) -> tuple[View, list[tuple[RoundName, RoundHeader]]]:
    """The folded chain, and the name and header of every round in it."""
    chain = zone.chain(conversation)
    view = View.empty(conversation)
    rounds = []
    for round_file, data in chain.read_many(chain.rounds()):
        opened = chain.open(round_file, data)
        view.apply(opened, file=round_file.name)
        rounds.append((RoundName(view.round, view.digest), opened.header))
    return view, rounds


def _check_evidence(conversation: str, headers: Iterable[RoundHeader], digests: Mapping[int, list[str]]) -> None:
    """What is exported must be what the named rounds were made from (section 8)."""
    before = ""
    for header in headers:
        seqs = [seq for seq in digests if header.from_seq <= seq <= header.through_seq]
        if input_digest(before, [digest for seq in seqs for digest in digests[seq]]) != header.input_digest:
            detail = f"round {header.round} was made from other landed files; `sessionmill verify` says which"
            raise ChainRejected(conversation, None, "input_digest", detail)
        before = header.input_digest


def conversation_of(
    view: View, rounds: tuple[RoundName, ...], landed: Iterable[tuple[LandedRef, LandedFile]]
) -> Conversation:
    """The conversation of a fold that has a header, from its landed files in sequence order."""
    header = view.header
    assert header is not None
    placed: list[tuple[str, Placed]] = []
    first: LandedFile | None = None
    announced = _Announced()
    for stream, ref, file in _canonical(landed):
        announced.take(file)
        if stream == MAIN and file.kind not in _NO_TRANSCRIPT:
            first = first or file.file
            placed.append((ref.prefix, Placed(ref.seq, file.row, file.record)))
    records = corrected(placed)
    tools, heard = _heard_and_tools(view, records)
    opened = (msgspec.json.decode(entity.facts, type=_Open) for entity in view.unresolved.values())
    missing = {each.ref for each in opened if each.state == "open" and each.kind in _CHILD_OPEN}
    dialect = first.header.dialect if first else ""
    flagged = dialect.partition("/")[0] in _FLAGS_LAUNCHES
    return Conversation(
        id=view.conversation,
        session=header.session,
        dialect=dialect,
        title=header.title,
        first_time=header.session_from_time,
        last_time=header.session_through_time,
        landed_at=first.header.at if first else "",
        through_seq=header.through_seq,
        rounds=rounds,
        records=tuple(records),
        tools=tools,
        heard=heard,
        missing_children={child: announced.waiting(child, flagged=flagged) for child in sorted(missing)},
    )


@dataclass(frozen=True, slots=True)
class _Row:
    file: LandedFile
    kind: str
    row: int
    batch: str
    record: Record


def _canonical(landed: Iterable[tuple[LandedRef, LandedFile]]) -> Iterator[tuple[str, LandedRef, _Row]]:
    """Records with stream and landed file, in landed order; of records with one id only the first (section 4)."""
    seen: set[str] = set()
    for ref, file in landed:
        kind = file.header.kind
        stream = file.header.stream or (ref.place if ref.folder == "streams" else "")
        batch = file.header.batch or (ref.place if ref.folder == "runs" else "")
        for row, record in enumerate(file.records, 1):
            if record.id and kind != "provider_body":
                if record.id in seen:
                    continue
                seen.add(record.id)
            if kind not in _NO_EVIDENCE_OF_RECORDS:
                yield stream, ref, _Row(file, kind, row, record.batch or batch, record)


class _Announced:
    """Which tool use each child stream is announced by (section 6, stage 5), and which of those wait for it still: what
    a child did is known without its stream once its tool has a result that is no mere acknowledgement of the launch,
    or its return was reported."""

    def __init__(self) -> None:
        self._launched: set[str] = set()
        self._returned: set[str] = set()
        self._tools: dict[str, set[str]] = {}
        self._batches: dict[str, set[str]] = {}
        self._batch_tool: dict[str, str] = {}

    def take(self, row: _Row) -> None:
        record = row.record
        result = next((part.of for part in record.parts if part.k == "result" and part.of), "")
        if row.kind != "journal" and row.batch and result:
            self._batch_tool.setdefault(row.batch, result)
        self._take_return(record, record.tool or result)
        if not record.child:
            return
        if row.kind == "journal":
            self._batches.setdefault(record.child, set()).add(row.batch)
        elif anchor := record.tool or result:
            self._tools.setdefault(record.child, set()).add(anchor)

    def waiting(self, child: str, *, flagged: bool) -> frozenset[str]:
        """The tools that launched the child and wait for it; where launches are not `flagged`, any may have."""
        if child in self._returned:
            return frozenset()
        by_batch = {self._batch_tool.get(batch, "") for batch in self._batches.get(child, ())}
        tools = (self._tools.get(child, set()) | by_batch) - {""}
        return frozenset((tools & self._launched if flagged else tools) - self._returned)

    def _take_return(self, record: Record, tool: str) -> None:
        """Note a launch, which a child may have more than once, or a return; of both by tool and by child."""
        named = {tool, record.child} - {""}
        if "launch_ack" in record.flags:
            self._launched |= {tool} - {""}
            self._returned -= named
        elif "child_result" in record.flags or record.trigger == "notification":
            self._returned |= named


def _heard_and_tools(
    view: View, records: Iterable[Placed]
) -> tuple[dict[tuple[int, int, int], Tool], frozenset[Position]]:
    of_main = {(placed.seq, placed.row): placed.record for placed in records}
    tools: dict[tuple[int, int, int], Tool] = {}
    heard: set[Position] = set()
    for entity in view.nodes.values():
        node = msgspec.json.decode(entity.facts, type=_Node)
        ref = node.ref
        record = of_main.get((ref.seq, ref.row)) if ref is not None else None
        if ref is None or record is None:
            continue
        if node.kind == "message.external":
            heard.add((ref.seq, ref.row))
        elif node.kind in ("tool", "agent.call") and ref.block is not None and ref.block < len(record.parts):
            attrs = _tool_attrs(node.attrs)
            answered = attrs.result_join != "unresolved"
            tools[ref.seq, ref.row, ref.block] = Tool(record.parts[ref.block].id, attrs.name, answered)
    return tools, frozenset(heard)


def _tool_attrs(attrs: msgspec.Raw) -> _ToolAttrs:
    try:
        return msgspec.json.decode(attrs, type=_ToolAttrs)
    except (msgspec.DecodeError, RecursionError):  # the format leaves attrs free
        return _ToolAttrs()
