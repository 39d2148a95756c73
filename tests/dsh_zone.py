"""DeepSeek Harness roots, landed and assembled, and what then is told of them."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import zstandard

from schemas.call_facts import CallFacts, read_call_facts
from schemas.dsh import Event, LogHeader, write_batch, write_first_batch
from schemas.dsh_root import log_key
from schemas.session_data import Record, read_session_data, text_of
from storage.landings import calls_key
from storage.objects import open_store
from storage.zone import Zone
from tasks.assemble import AssembleOptions, assemble_session
from tasks.land.archive import land_archive
from tasks.land.dsh import DeepSeekHarness
from tasks.land.outcome import LandOptions, LandProblem, SessionLanding
from tasks.verify import verify_session

__all__ = [
    "NOW",
    "Told",
    "assembled",
    "calls",
    "land",
    "problems",
    "put_log",
    "records",
    "told",
    "zone_at",
]

NOW = 1_800_000_000_000_000_000


def zone_at(path: Path) -> Zone:
    path.mkdir(parents=True, exist_ok=True)
    return Zone(open_store(path))


def land(root: Path | str, zone: Zone, **options: int) -> list[SessionLanding]:
    """Land a folder, or what lies at an ``s3://`` address."""
    dialect = DeepSeekHarness(open_store(root))
    found = dialect.discover(open_store(root))
    return list(land_archive(zone, dialect.source, dialect, found, LandOptions(now=NOW, **options)))


def problems(outcomes: Iterable[SessionLanding]) -> list[LandProblem]:
    return [problem for each in outcomes for problem in each.problems]


def put_log(
    root: Path, header: LogHeader, *batches: list[Event], compressed: bool = True, above: str = ""
) -> tuple[Path, bytes]:
    """Write a log where its header says, `above` its root; where it lies, and its bytes."""
    packed = header.version < 2
    data = write_first_batch(header, batches[0] if batches else [], compressed=compressed, packed=packed)
    data += b"".join(write_batch(each, compressed=compressed, packed=packed) for each in batches[1:])
    path = root / above / log_key(header, compressed=compressed)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    return path, data


def records(zone: Zone, session: str) -> Iterator[tuple[str, Record]]:
    """Every record in landed order, with its stream."""
    for ref in zone.landed_files(session):
        file = read_session_data(zone.store.read(ref.key), name=ref.key)
        for record in file.records:
            yield file.header.stream, record


def calls(zone: Zone, session: str) -> list[CallFacts]:
    """What stands beside the landed files."""
    found = []
    for ref in zone.landed_files(session):
        if (stat := zone.store.stat(calls_key(session, ref.seq))) is not None:
            data = zstandard.ZstdDecompressor().decompress(zone.store.read(stat.key))
            found += read_call_facts(data, name=stat.key)
    return found


def assembled(zone: Zone, session: str) -> dict[str, dict[str, Any]]:
    """The nodes, relations and open entries of the assembled conversation; it verifies."""
    assemble_session(zone, session, AssembleOptions(now=NOW))
    assert verify_session(zone, session).problems == []
    view = zone.chain(session).fold()
    return {
        name: {key: json.loads(entity.facts) for key, entity in entities.items()}
        for name, entities in (("nodes", view.nodes), ("relations", view.relations), ("open", view.unresolved))
    }


@dataclass
class Told:
    """What the records of one stream tell. `calls` are the tools asked for: name, and the result once there is one as
    (failed, state, text)."""

    human: list[tuple[str, str]] = field(default_factory=list)
    injected: list[str] = field(default_factory=list)
    answers: list[tuple[str, str, str]] = field(default_factory=list)
    attempts: list[str] = field(default_factory=list)
    calls: dict[str, list[Any]] = field(default_factory=dict)
    usage: list[tuple[str, tuple[int, int, int, int]]] = field(default_factory=list)
    models: dict[str, None] = field(default_factory=dict)
    summaries: list[str] = field(default_factory=list)
    resets: list[tuple[str, str]] = field(default_factory=list)
    ends: dict[str, str] = field(default_factory=dict)
    labels: list[str] = field(default_factory=list)
    retries: list[str] = field(default_factory=list)
    inherited: int = 0


def told(found: Iterable[Record]) -> Told:
    say = Told()
    for record in found:
        text = "\n".join(text_of(part) for part in record.parts if part.k == "text")
        event = _event(record)
        if record.dropped and record.dropped[0].why == "inherited":
            say.inherited += 1
        if record.label and not record.id:
            say.labels.append(record.label)
        if "external_input" in record.flags:
            say.human.append((record.run, text))
        elif "injected" in record.flags:
            say.injected.append(text)
        if "context_reset" in record.flags:
            say.resets.append((record.id, record.continues))
        if "reset_summary" in record.flags:
            say.summaries.append(text)
        elif record.from_ == "agent" and "error" in record.flags:
            say.attempts.append(record.call)
        elif record.from_ == "agent":
            say.answers.append((record.run, record.call, text))
            say.models[record.model] = None
        if record.usage is not None:
            used = record.usage
            say.usage.append((record.call, (used.in_, used.out, used.cache_read, used.cache_write)))
        for part in record.parts:
            if part.k == "call":
                say.calls[part.id] = [part.name, None]
            elif part.k == "result":
                say.calls.setdefault(part.of, ["", None])[1] = (part.failed, part.state, text_of(part))
        if event.get("type") == "turn/end" and record.run:
            say.ends[record.run] = event["data"]["reason"]["kind"]
        elif event.get("type") == "turn/start":
            say.ends[record.run] = ""
        elif event.get("type") == "llm/retry":
            say.retries.append(record.run)
    return say


def _event(record: Record) -> dict[str, Any]:
    """The event that a record of one data part holds as it stands."""
    part = record.parts[-1] if record.parts else None
    value = json.loads(bytes(part.data)) if part is not None and part.k == "data" else {}  # type: ignore[arg-type]
    return value if isinstance(value, dict) else {}
