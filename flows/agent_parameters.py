"""What a flow run of agents is given, and what is opened for it: specification, archive, zone and usage tables."""

from __future__ import annotations

import os
import stat
import tempfile
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field

from flows.parameters import configured
from flows.settings import Settings, open_exports, open_landing_zone
from flows.usage_summary import rate_card
from schemas.agent_spec import AgentSpec
from schemas.errors import ConfigurationRejected
from storage.agent_runs import AgentRuns
from storage.zone import Zone
from tasks.agents.catalogue import read_spec
from tasks.agents.runner import Runner
from tasks.agents.runners import Programs, runner
from tasks.agents.settle import Destinations
from tasks.ingest.outcome import IngestOptions

__all__ = ["AgentParameters", "AgentPlace", "DueParameters", "open_place", "private_folder"]


class _Places(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")

    zone: str | None = Field(default_factory=configured("zone"), description="Where transcripts land; none: nowhere.")
    archive: str | None = Field(
        default_factory=configured("agents_archive"), description="Where runs and transcripts are kept."
    )
    usage: str | None = Field(
        default_factory=configured("usage"), description="The usage data set for rows of calls and runs; none: no rows."
    )


class AgentParameters(_Places):
    """One run of one agent. What is not given is as configured where the flow runs."""

    spec: str = Field(description="The agent's specification, a file where the flow runs.")
    variables: dict[str, str] = Field({}, description="Values for the task's variables; never a secret.")


class DueParameters(_Places):
    """The agents whose time has come."""

    agents: str = Field(default_factory=configured("agents"), description="The folder with the specifications.")


@dataclass(frozen=True)
class AgentPlace:
    """An agent, its runner, and where its runs work and go."""

    spec: AgentSpec
    runner: Runner
    runs: AgentRuns
    work: Path
    to: Destinations


def open_place(spec: AgentSpec | Path, places: _Places, settings: Settings) -> AgentPlace:
    """Open everything for runs of an agent. Raises `WrongUse` for what is not there or cannot be meant."""
    if isinstance(spec, Path):
        spec = read_spec(spec)
    archive = spec.archive or places.archive
    if archive is None:
        raise ConfigurationRejected(
            "no archive for runs — set agents_archive, give it as a parameter, or name one in the specification"
        )
    zone = Zone(open_landing_zone(places.zone, settings)) if places.zone else None
    runs = AgentRuns(open_exports(archive, settings, zone=zone))
    now = time.time_ns()
    return AgentPlace(
        spec=spec,
        runner=runner(spec.runner, Programs(settings.claude_program, settings.codex_program)),
        runs=runs,
        work=private_folder(settings),
        to=Destinations(
            runs=runs,
            store=settings.store(),
            zone=zone,
            usage=open_exports(places.usage, settings, zone=zone) if places.usage else None,
            card=rate_card(None, settings) if places.usage and zone is not None else None,
            land=settings.landing(now),
            ingest=IngestOptions(now=now, max_round_bytes=settings.max_round_bytes),
        ),
    )


def private_folder(settings: Settings) -> Path:
    """Where runs work on this machine: a folder that is ours alone. Raises `ConfigurationRejected` for another's."""
    if settings.agents_work is not None:
        if not settings.agents_work:
            raise ConfigurationRejected("agents_work is empty — name a folder, or leave it out")
        folder = Path(settings.agents_work).resolve()
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except (FileExistsError, NotADirectoryError):
            raise ConfigurationRejected(f"agents_work: {settings.agents_work} is not a folder") from None
        return folder
    # As programs name the folder that they work in: without links.
    folder = Path(tempfile.gettempdir()).resolve() / f"sessionmill-{os.getuid()}"
    with suppress(FileExistsError):
        folder.mkdir(mode=0o700)
    found = folder.lstat()
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.getuid() or found.st_mode & 0o077:
        raise ConfigurationRejected(f"{folder} is not a private folder of this user — remove it, or set agents_work")
    return folder
