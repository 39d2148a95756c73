"""Ingest: bring sessions up to their landed evidence, prove them, and set the bad ones aside.

`outcome` says what came of one session, `session` does one, and `work` is that in a worker's process
(`tasks.shards`).
"""

from tasks.ingest.outcome import IngestOptions, Reason, SessionOutcome
from tasks.ingest.session import ingest_session

__all__ = ["IngestOptions", "Reason", "SessionOutcome", "ingest_session"]
