"""The export flow's parameters and its summary: what goes in, and what a run says at its end. No Prefect here."""

from __future__ import annotations

import fnmatch
import time
from collections.abc import Iterable
from typing import Self

from pydantic import BaseModel, ConfigDict, Field, computed_field, field_validator

from flows.console import DONE, PROBLEMS, SYSTEM_FAILED, columns, printable
from flows.durations import Duration, parse_duration
from flows.parameters import configured, counted, one_is_a_list
from flows.settings import AgentSlug, load_settings
from schemas.errors import WrongUse
from schemas.times import NO_TIME, format_time, parse_time
from storage.zone import Zone
from tasks.export.clock import newest_time
from tasks.export.outcome import ExportOptions, ExportOutcome, State

__all__ = ["ExportParameters", "ExportSummary", "export_options", "exportable", "moment"]

NOW = "now"


def moment(as_of: str | None, zone: Zone) -> int:
    """The moment that quiet is measured to, in nanoseconds: `as_of`, RFC 3339, or the real clock when that is `now`;
    the zone's newest record when None. Raises `WrongUse`."""
    if as_of is None:
        return newest_time(zone)
    if as_of == NOW:
        return time.time_ns()
    value = parse_time(as_of)
    if value == NO_TIME:
        raise WrongUse(f"--as-of: {as_of!r} is no time; write it as 2026-08-07T10:00:00Z, or now")
    return value


def export_options(
    zone: Zone,
    *,
    as_of: str | None,
    completed_after: str | None,
    keep_secrets: bool | None,
    agent_slug: str | None = None,
) -> ExportOptions:
    """How to export; what is None is as configured. Raises `WrongUse`."""
    settings = load_settings(completed_after=completed_after, agent_slug=agent_slug)
    return ExportOptions(
        as_of=moment(as_of, zone),
        completed_after=parse_duration(settings.completed_after),
        keep_secrets=keep_secrets,
        agent_slug=settings.agent_slug,
    )


def exportable(zone: Zone) -> list[str]:
    """Every conversation, and every session that has none yet, sorted."""
    return sorted({*zone.conversations(), *zone.sessions()})


class ExportParameters(BaseModel):
    """What one run of the export flow works on. What is not given is as configured where the flow runs."""

    model_config = ConfigDict(frozen=True, extra="forbid", validate_default=True)

    zone: str = Field(default_factory=configured("zone"), min_length=1, description="A folder or s3://bucket/prefix.")
    to: str = Field(default_factory=configured("exports"), min_length=1, description="Where the files go.")
    sessions: tuple[str, ...] = Field((), description="Only sessions that match one of these shell patterns.")
    shard_bytes: int = Field(
        default_factory=configured("shard_bytes"), ge=1, description="Landed bytes that one task works on."
    )
    workers: int = Field(default_factory=configured("workers"), ge=1, description="Processes that work at once.")
    as_of: str | None = Field(None, description="The moment that quiet is measured to; none: the newest record's.")
    completed_after: Duration = Field(
        default_factory=configured("completed_after"), description="How long a completed session is quiet."
    )
    keep_secrets: bool | None = Field(
        None, description="Whether texts keep what looks like a secret; none: only those of Relavium's own sessions."
    )
    agent_slug: AgentSlug | None = Field(
        default_factory=configured("agent_slug"), description="The agent of the sessions; none: their source's name."
    )

    @field_validator("zone", "to", mode="before")
    @classmethod
    def _place_is_known(cls, value: object) -> object:
        if value is None:
            raise ValueError("give -p zone=ZONE and -p to=EXPORTS, or configure them")
        return value

    @field_validator("sessions", mode="before")
    @classmethod
    def _one_pattern_is_a_list_of_one(cls, value: object) -> object:
        return one_is_a_list(value)

    @field_validator("as_of")
    @classmethod
    def _as_of_is_a_time(cls, value: str | None) -> str | None:
        if value is not None and value != NOW and parse_time(value) == NO_TIME:
            raise ValueError("is no time; write it as 2026-08-07T10:00:00Z, or now")
        return value

    def options(self, zone: Zone) -> ExportOptions:
        """For one session; measures to the zone's newest record when no `as_of` is given."""
        return ExportOptions(
            as_of=moment(self.as_of, zone),
            completed_after=parse_duration(self.completed_after),
            keep_secrets=self.keep_secrets,
            agent_slug=self.agent_slug,
        )

    def wanted(self, session: str) -> bool:
        """Whether the session filter lets `session` through."""
        return not self.sessions or any(fnmatch.fnmatchcase(session, pattern) for pattern in self.sessions)


class ExportSummary(BaseModel):
    """A run's conversations, by name, and its totals."""

    model_config = ConfigDict(frozen=True)

    zone: str
    to: str
    as_of: str
    sessions: list[ExportOutcome]
    warnings: tuple[str, ...] = ()
    """What to know of the folder as a whole."""

    @classmethod
    def of(
        cls, zone: str, to: str, as_of: int, outcomes: Iterable[ExportOutcome], warnings: Iterable[str] = ()
    ) -> Self:
        moment = "" if as_of == NO_TIME else format_time(as_of)
        sessions = sorted(outcomes, key=lambda each: each.conversation)
        return cls(zone=zone, to=to, as_of=moment, sessions=sessions, warnings=tuple(warnings))

    @computed_field  # type: ignore[prop-decorator]
    @property
    def written(self) -> int:
        return self._count("written")

    @computed_field  # type: ignore[prop-decorator]
    @property
    def unchanged(self) -> int:
        return self._count("unchanged")

    @computed_field  # type: ignore[prop-decorator]
    @property
    def unfinished(self) -> int:
        """Sessions that are not completed."""
        return self._count("unfinished")

    @computed_field  # type: ignore[prop-decorator]
    @property
    def rejected(self) -> int:
        """Sessions whose data is bad."""
        return self._count("rejected")

    @computed_field  # type: ignore[prop-decorator]
    @property
    def failed(self) -> int:
        """Sessions that the system could not export."""
        return self._count("failed")

    @property
    def exit_code(self) -> int:
        if self.failed:
            return SYSTEM_FAILED
        return PROBLEMS if self.rejected else DONE

    @property
    def sentence(self) -> str:
        """How the run went, for a state message and the last line on a terminal."""
        counts = [f"{self.written} written", f"{self.unchanged} unchanged", f"{self.unfinished} unfinished"]
        counts += [f"{self.rejected} rejected"] if self.rejected else []
        counts += [f"{self.failed} failed"] if self.failed else []
        return ", ".join([counted(len(self.sessions), "session"), *counts])

    def rows(self) -> list[dict[str, object]]:
        """The summary table, one row a session."""
        return [
            {
                "session": each.conversation,
                "turns": each.file.turns if each.file else 0,
                "withheld": sum(each.file.withheld.values()) if each.file else 0,
                "state": each.state,
                "file": each.name,
            }
            for each in self.sessions
        ]

    def text(self) -> str:
        """The summary table as aligned columns; there is at least one session."""
        rows = self.rows()
        return columns(list(rows[0]), [list(row.values()) for row in rows])

    def remarks(self) -> list[str]:
        """Why sessions were not exported, and what to know of those that were: one line each."""
        lines = [printable(warning) for warning in self.warnings]
        for each in self.sessions:
            # What is wrong with data names its rule itself.
            rule = f"{each.rule}: " if each.rule and f"{each.rule}: " not in each.reason else ""
            lines += [printable(f"{each.conversation}: {rule}{each.reason}")] if each.reason else []
            warnings = each.file.warnings if each.file else ()
            lines += [printable(f"{each.name}: {warning}") for warning in warnings]
        return lines

    def _count(self, state: State) -> int:
        return sum(1 for each in self.sessions if each.state == state)
