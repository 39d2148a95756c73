"""One session's ingest, without Prefect."""

from __future__ import annotations

from pathlib import Path

from storage.objects import open_store
from storage.zone import Zone
from tasks.ingest.outcome import IngestOptions
from tasks.ingest.session import ingest_session


def test_folder_that_holds_no_evidence_gets_none_of_our_files(tmp_path: Path) -> None:
    notes = tmp_path / "zone" / "somebodys-folder" / "notes.txt"
    notes.parent.mkdir(parents=True)
    notes.write_text("nothing of a session")
    outcome = ingest_session(
        Zone(open_store(tmp_path / "zone")), "somebodys-folder", IngestOptions(now=1, max_round_bytes=0)
    )
    assert (outcome.records, outcome.problems) == (0, 0)
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == [notes]
