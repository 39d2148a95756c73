"""The two limits of the Prefect server that bound how many runs of agents go on at once: of an agent, of a provider."""

from __future__ import annotations

from typing import TYPE_CHECKING

from flows.settings import Settings
from schemas.agent_spec import AgentSpec

if TYPE_CHECKING:
    from prefect.client.orchestration import PrefectClient

__all__ = ["limits_of", "set_limits"]


def limits_of(spec: AgentSpec, settings: Settings) -> dict[str, int]:
    """The Prefect server's names of an agent's limit and its provider's, and how many runs each admits at once."""
    return {
        f"sessionmill-agent-{spec.name}": spec.concurrency,
        f"sessionmill-provider-{spec.agent.provider}": settings.agents_per_provider,
    }


async def set_limits(client: PrefectClient, limits: dict[str, int]) -> None:
    """Have the server hold each limit as configured now. Any number of runs may set the same one at once: the client
    looks and then makes, and the one that comes second sets what the first has made."""
    from prefect.exceptions import ObjectAlreadyExists

    for name, limit in limits.items():
        try:
            await client.upsert_global_concurrency_limit_by_name(name, limit)
        except ObjectAlreadyExists:
            await client.upsert_global_concurrency_limit_by_name(name, limit)
