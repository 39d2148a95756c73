"""The process that closes a run whose own process is killed: Prefect's worker, told to end, kills its flow runs.

It starts with the run, knows its secrets from its standard input, and sleeps. When that input ends with the word that
the run is closed it leaves; when it ends without, nobody is left to close the run, and it does so: it waits until the
agent's processes are gone, closes the run by what they left, and settles it. Run as ``python -m tasks.agents.guard``.
"""

from __future__ import annotations

import asyncio
import dataclasses
import json
import os
import sys
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from schemas.agent_spec import AgentSpec
    from tasks.agents.settle import Destinations

__all__ = ["Guard", "start_guard"]

CLOSED: Final = b"closed\n"
_ROOT: Final = Path(__file__).parents[2]
_WAIT_SECONDS: Final = 700.0
"""Longer than the longest grace of a specification."""
_LOOK_SECONDS: Final = 0.5
_LEAVE_SECONDS: Final = 10.0


class Guard:
    """The running process; `dismiss` it when the run is closed."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process

    async def dismiss(self) -> None:
        pipe = self._process.stdin
        assert pipe is not None
        with suppress(ConnectionError):
            pipe.write(CLOSED)
            await pipe.drain()
        pipe.close()
        try:
            await asyncio.wait_for(self._process.wait(), _LEAVE_SECONDS)
        except TimeoutError:
            self._process.kill()
            await self._process.wait()


async def start_guard(run_id: str, spec: AgentSpec, secrets: Mapping[str, str], work: Path, to: Destinations) -> Guard:
    """Have the run closed by another process should this one be killed. ``secrets`` are values by their places."""
    plan = {
        "run_id": run_id,
        "spec": spec.model_dump_json(exclude_unset=True),
        "secrets": dict(secrets),
        "work": str(work),
        "archive": to.runs.store.url,
        "zone": to.zone.store.url if to.zone is not None else None,
        "usage": to.usage.url if to.usage is not None else None,
        "store": dataclasses.asdict(to.store),
        "land": to.land.model_dump(),
        "ingest": to.ingest.model_dump(),
    }
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-P",
        "-m",
        "tasks.agents.guard",
        env={**os.environ, "PYTHONPATH": str(_ROOT)},
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.DEVNULL,
        # What ends our group, or our terminal's, is to leave it alone.
        start_new_session=True,
    )
    assert process.stdin is not None
    process.stdin.write(json.dumps(plan).encode() + b"\n")
    await process.stdin.drain()
    return Guard(process)


def main() -> int:
    plan: dict[str, Any] = json.loads(sys.stdin.buffer.readline())
    if sys.stdin.buffer.read() == CLOSED:
        return 0
    return _close(plan)


def _close(plan: dict[str, Any]) -> int:
    """Close and settle the run, and others of its agent that were left; 1 when it could not be closed in time."""
    # Only now: a guard that is dismissed, as nearly all are, never loads this.
    from schemas.agent_spec import SecretRef, read_agent_spec
    from schemas.errors import SessionmillError
    from storage.agent_runs import AgentRuns
    from storage.objects import StoreSettings, open_store
    from storage.zone import Zone
    from tasks.agents.cut_runs import make_up_for
    from tasks.agents.host import this_host
    from tasks.agents.settle import Destinations
    from tasks.ingest.outcome import IngestOptions
    from tasks.land.outcome import LandOptions

    spec = read_agent_spec(plan["spec"].encode(), name=plan["run_id"])
    store = StoreSettings(**plan["store"])
    runs = AgentRuns(open_store(plan["archive"], settings=store))
    to = Destinations(
        runs=runs,
        store=store,
        zone=Zone(open_store(plan["zone"], settings=store)) if plan["zone"] else None,
        usage=open_store(plan["usage"], settings=store) if plan["usage"] else None,
        card=None,
        land=LandOptions(**plan["land"]),
        ingest=IngestOptions(**plan["ingest"]),
    )
    known: dict[str, str] = plan["secrets"]

    def find(reference: SecretRef) -> str | None:
        return known.get(str(reference))

    deadline = time.monotonic() + _WAIT_SECONDS
    while time.monotonic() < deadline:
        # The archive may be away, which may be why nobody else closed the run.
        with suppress(SessionmillError):
            if runs.end(spec.name, plan["run_id"]) is not None:
                return 0
            make_up_for(spec, Path(plan["work"]), find, to, this_host(), time.time_ns())
        time.sleep(_LOOK_SECONDS)
    return 1


if __name__ == "__main__":
    sys.exit(main())
