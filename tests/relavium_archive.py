"""Archives of Relavium's sessions: JSON files and `history.db`, and what becomes of them in a zone."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from schemas.session_data import LandedFile, Record, read_session_data
from storage.objects import ObjectStore, open_store
from storage.zone import Zone
from tasks.assemble import AssembleOptions, assemble_session
from tasks.export.batch import export_sessions
from tasks.export.outcome import ExportOptions, ExportOutcome
from tasks.land.archive import land_archive
from tasks.land.kinds import recognise
from tasks.land.outcome import LandOptions, LandProblem, SessionLanding

__all__ = [
    "NOW",
    "SCHEMA",
    "add_message",
    "add_messages",
    "add_row",
    "add_session",
    "assemble",
    "cost_row",
    "export",
    "history",
    "land",
    "landed",
    "message_lines",
    "problems",
    "put_pair",
    "records",
    "session_lines",
]

NOW = 1_900_000_000_000_000_000
MILLISECONDS = 1_782_907_200_000
"""2026-07-01T12:00:00Z"""

SCHEMA = """
CREATE TABLE agents (id TEXT PRIMARY KEY);
CREATE TABLE agent_sessions (
  id TEXT PRIMARY KEY, agent_id TEXT REFERENCES agents(id), agent_slug TEXT NOT NULL, agent_snapshot TEXT, title TEXT,
  model_id TEXT, working_dir TEXT, git_ref TEXT, fs_scope_tier TEXT NOT NULL DEFAULT 'sandboxed'
    CHECK (fs_scope_tier IN ('sandboxed', 'project', 'full')),
  status TEXT NOT NULL DEFAULT 'active' CHECK (status IN ('active', 'idle', 'exported', 'ended')),
  context_json TEXT NOT NULL DEFAULT '{}', total_input_tokens INTEGER NOT NULL DEFAULT 0,
  total_output_tokens INTEGER NOT NULL DEFAULT 0, total_cost_microcents INTEGER NOT NULL DEFAULT 0,
  total_conservative_microcents INTEGER NOT NULL DEFAULT 0, effect_turn_high_water INTEGER NOT NULL DEFAULT 0,
  exported_workflow_path TEXT, deleted_at INTEGER, created_at INTEGER NOT NULL, updated_at INTEGER NOT NULL);
CREATE INDEX idx_agent_sessions_updated ON agent_sessions (updated_at DESC, id DESC) WHERE deleted_at IS NULL;
CREATE TABLE session_messages (
  id TEXT PRIMARY KEY, session_id TEXT NOT NULL REFERENCES agent_sessions(id) ON DELETE CASCADE,
  sequence_number INTEGER NOT NULL, role TEXT NOT NULL, content TEXT, content_parts TEXT, tool_calls TEXT,
  tool_call_id TEXT, name TEXT, finish_reason TEXT, model_id TEXT, compaction_dropped_through_sequence INTEGER,
  created_at INTEGER NOT NULL);
CREATE UNIQUE INDEX idx_session_messages_seq ON session_messages (session_id, sequence_number);
CREATE INDEX idx_session_messages_session ON session_messages (session_id, created_at);
CREATE TABLE session_costs (
  id TEXT PRIMARY KEY, session_id TEXT NOT NULL REFERENCES agent_sessions(id) ON DELETE CASCADE,
  model TEXT NOT NULL CHECK (model <> ''), model_catalog_id TEXT, input_tokens INTEGER NOT NULL DEFAULT 0,
  output_tokens INTEGER NOT NULL DEFAULT 0, cost_microcents INTEGER NOT NULL DEFAULT 0,
  conservative_microcents INTEGER NOT NULL DEFAULT 0, call_count INTEGER NOT NULL DEFAULT 0,
  unpriced_calls INTEGER NOT NULL DEFAULT 0, is_legacy INTEGER NOT NULL DEFAULT 0, created_at INTEGER NOT NULL,
  updated_at INTEGER NOT NULL);
"""
CONTEXT = {"workingDir": "/harbour", "fsScopeTier": "project"}


def put_pair(folder: Path, record: Mapping[str, Any], messages: Iterable[Mapping[str, Any]]) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "record.json").write_text(json.dumps(record))
    (folder / "messages.json").write_text(json.dumps(list(messages)))


def history(path: Path, schema: str = SCHEMA) -> sqlite3.Connection:
    """A new, empty store in write-ahead mode, as its owner has it open."""
    path.parent.mkdir(parents=True, exist_ok=True)
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute("PRAGMA journal_mode = WAL")
    connection.executescript(schema)
    return connection


def add_session(connection: sqlite3.Connection, session: str = "s1", **columns: Any) -> None:
    row = {
        "id": session,
        "agent_slug": "pilot",
        "context_json": json.dumps(CONTEXT),
        "status": "idle",
        "created_at": MILLISECONDS,
        "updated_at": MILLISECONDS,
    } | columns
    add_row(connection, "agent_sessions", row)


def add_messages(connection: sqlite3.Connection, session: str, *said: tuple[str, str], start: int = 0) -> None:
    """Messages of one text each, numbered on from ``start``."""
    for place, (role, text) in enumerate(said, start):
        add_message(connection, session, place, role, [{"type": "text", "text": text}], content=text)


def add_message(
    connection: sqlite3.Connection, session: str, sequence: int, role: str, parts: list[dict[str, Any]], **columns: Any
) -> None:
    row = {
        "id": f"{session}-{sequence}",
        "session_id": session,
        "sequence_number": sequence,
        "role": role,
        "content_parts": json.dumps(parts),
        "created_at": MILLISECONDS + sequence,
    } | columns
    add_row(connection, "session_messages", row)


def cost_row(connection: sqlite3.Connection, session: str, model: str, **columns: Any) -> None:
    row = {"id": f"{session}/{model}", "session_id": session, "model": model, "created_at": 0, "updated_at": 0}
    add_row(connection, "session_costs", row | columns)


def add_row(connection: sqlite3.Connection, table: str, row: Mapping[str, Any]) -> None:
    """A row with these columns; the others have what they have by default."""
    marks = ", ".join("?" * len(row))
    connection.execute(f"INSERT INTO {table} ({', '.join(row)}) VALUES ({marks})", list(row.values()))


def land(source: Path | str | ObjectStore, zone: Zone, kind: str = "relavium", now: int = NOW) -> list[SessionLanding]:
    store = open_store(source) if isinstance(source, Path | str) else source
    found = recognise(store, kind)
    return list(land_archive(zone, found.source, found.dialect, found.found, LandOptions(now=now)))


def problems(outcomes: Iterable[SessionLanding]) -> list[LandProblem]:
    return [problem for outcome in outcomes for problem in outcome.problems]


def landed(zone: Zone, session: str = "s1") -> list[LandedFile]:
    refs = zone.landed_files(session)
    assert [ref.seq for ref in refs] == list(range(1, len(refs) + 1))
    return [read_session_data(data, name=ref.key) for ref, data in zone.read_many(refs)]


def records(zone: Zone, session: str = "s1", kind: str = "transcript") -> list[Record]:
    return [record for file in landed(zone, session) if file.header.kind == kind for record in file.records]


def message_lines(zone: Zone, session: str = "s1") -> list[dict[str, Any]]:
    """What each landed line of messages holds, but for lines that were not understood."""
    parts = [record.parts[-1] for record in records(zone, session)]
    return [json.loads(bytes(part.data)) for part in parts if part.k == "data"]  # type: ignore[arg-type]


def session_lines(zone: Zone, session: str = "s1") -> list[dict[str, Any]]:
    """What each landed record of the session holds."""
    return [json.loads(bytes(each.parts[-1].data)) for each in records(zone, session, "session")]  # type: ignore[arg-type]


def assemble(zone: Zone, *sessions: str) -> None:
    for session in sessions or zone.sessions():
        assemble_session(zone, session, AssembleOptions(now=NOW))


def export(zone: Zone, exports: ObjectStore, **options: Any) -> list[ExportOutcome]:
    asked = ExportOptions(**{"as_of": NOW, **options})
    return export_sessions(zone, exports, zone.conversations(), asked)
