"""The Prefect task: a shard of sessions verified. Importing this module imports Prefect."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from prefect import task
from prefect.cache_policies import NO_CACHE
from prefect.client.schemas.objects import State, TaskRun
from prefect.tasks import Task, exponential_backoff

from schemas.errors import TransientError
from storage.objects import StoreSettings, open_store
from storage.zone import Zone
from tasks.verify.problems import SessionVerification
from tasks.verify.session import verify_session

__all__ = ["verify_shard"]


def _is_transient(task: Task[..., Any], task_run: TaskRun, state: State[Any]) -> bool:
    return isinstance(state.data, TransientError)


@task(
    name="verify shard",
    retries=3,
    retry_delay_seconds=exponential_backoff(2),
    retry_jitter_factor=0.5,
    retry_condition_fn=_is_transient,
    cache_policy=NO_CACHE,
    persist_result=False,
)
def verify_shard(zone: str, store: StoreSettings, sessions: Sequence[str]) -> list[SessionVerification]:
    """`verify_session` for each of `sessions`, in their order; tried again only when the store was unavailable."""
    opened = Zone(open_store(zone, settings=store))
    return [verify_session(opened, session) for session in sessions]
