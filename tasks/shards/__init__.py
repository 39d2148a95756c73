"""Shards: many sessions, or sources, divided among processes that each do a part of the work.

`plan` divides, `work` says what is done with each, `worker` is the process that does it, and `task` is the Prefect task
that holds such a process. The task is not re-exported here: importing it imports Prefect.
"""

from tasks.shards.plan import MOST_SHARDS, Shard, plan_shards
from tasks.shards.work import Outcome, Work

__all__ = ["MOST_SHARDS", "Outcome", "Shard", "Work", "plan_shards"]
