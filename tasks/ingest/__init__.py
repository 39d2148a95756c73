"""Ingest: bring sessions up to their landed evidence, prove them, and set the bad ones aside.

`outcome` says what came of one session, `session` does one, `shards` divides many, `worker` does a shard in a process
of its own, and `task` is the Prefect task that holds such a process. The task is not re-exported here: importing it
imports Prefect.
"""

from tasks.ingest.outcome import IngestOptions, Reason, SessionOutcome
from tasks.ingest.session import ingest_session
from tasks.ingest.shards import MOST_SHARDS, Shard, plan_shards

__all__ = ["MOST_SHARDS", "IngestOptions", "Reason", "SessionOutcome", "Shard", "ingest_session", "plan_shards"]
