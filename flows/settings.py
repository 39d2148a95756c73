"""Configuration: `sessionmill.yaml`, then `SESSIONMILL_*`, then options; the later wins.

The file is `sessionmill.yaml` in the current folder, or the one that `SESSIONMILL_CONFIG` names. An unknown key, in
the file or in the environment, is an error: a misspelt setting that is silently ignored is worse than a run that does
not start. There is no setting for a credential; S3 finds those in the usual AWS places.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any
from urllib.parse import urlsplit

import yaml
from pydantic import AfterValidator, Field, ValidationError, field_validator
from pydantic_settings import (
    BaseSettings,
    NoDecode,
    PydanticBaseSettingsSource,
    SettingsConfigDict,
    YamlConfigSettingsSource,
)

from flows.durations import Duration, parse_duration
from flows.invalid import why_invalid
from flows.sources import Sources
from schemas._relavium_values import KEBAB
from schemas.errors import ConfigurationRejected
from storage.objects import GIB, ObjectStore, StoreSettings, open_store
from storage.zone import RESERVED, Zone
from tasks.land.outcome import LandOptions

__all__ = [
    "CONFIG_VARIABLE",
    "AgentSlug",
    "Settings",
    "landing_zone_to_be",
    "load_settings",
    "open_exports",
    "open_landing_zone",
    "open_zone",
]

PREFIX = "SESSIONMILL_"
CONFIG_VARIABLE = PREFIX + "CONFIG"
DEFAULT_FILE = "sessionmill.yaml"


def _kebab_case(value: str) -> str:
    if KEBAB.fullmatch(value) is None:
        raise ValueError("no kebab-case; write lower-case letters and digits with single hyphens, as in my-agent")
    return value


AgentSlug = Annotated[str, AfterValidator(_kebab_case)]
"""What exported sessions may call their agent."""


class Settings(BaseSettings):
    """What may be configured, with its default; sizes in bytes."""

    model_config = SettingsConfigDict(env_prefix=PREFIX, extra="forbid", frozen=True)

    zone: str | None = Field(
        None, description="The zone `sessionmill run ingest` works on when no `-p zone=` is given."
    )
    sources: Annotated[Sources, NoDecode] = Field((), description="Archives that the ingest flow lands first.")
    exports: str | None = Field(None, description="Where `sessionmill run export` writes when no `-p to=` is given.")
    usage: str | None = Field(None, description="Where `sessionmill run usage` writes when no `-p to=` is given.")
    prices: str | None = Field(None, description="A file of prices that hold before the others.")
    max_round_bytes: int = Field(2_097_152, description="A round's byte budget; 0 or less means the default.")
    shard_bytes: int = Field(64 * 1024 * 1024, ge=1, description="Landed bytes that one task of a flow works on.")
    workers: int = Field(
        default_factory=lambda: os.cpu_count() or 1, ge=1, description="Shards worked on at once, one process each."
    )
    max_delta_bytes: int = Field(2_097_152, ge=1, description="Bytes of a source's file that land in one file.")
    max_line_bytes: int = Field(
        33_554_432, ge=1, description="The longest line, or whole document, of a source that is read into memory."
    )
    parent_wait: Duration = Field("24h", description="How long a thread that begins with copies waits for its parent.")
    completed_after: Duration = Field("1h", description="How long a session is quiet before it counts as completed.")
    agent_slug: AgentSlug | None = Field(None, description="The agent of exported sessions; none: their source's name.")

    agents: str = Field("agents", description="The folder with the specifications of agents.")
    agents_archive: str | None = Field(None, description="Where headless runs and their transcripts are kept.")
    agents_work: str | None = Field(None, description="A local folder for runs; none: a private one below /tmp.")
    agents_per_provider: int = Field(4, ge=1, description="Headless runs at once that ask one provider.")
    claude_program: str = Field("claude", description="Claude Code's program, a name on the search path or a path.")
    codex_program: str = Field("codex", description="Codex' program, a name on the search path or a path.")

    max_object_bytes: int = Field(GIB, ge=1, description="The largest object that is read into memory.")
    s3_endpoint_url: str | None = Field(None, description="Where S3 is, unless at AWS or at `AWS_ENDPOINT_URL`.")
    s3_region: str | None = Field(None, description="The S3 region, unless the usual AWS places name it.")

    @field_validator("s3_endpoint_url")
    @classmethod
    def _endpoint_without_credentials(cls, value: str | None) -> str | None:
        if value is not None and urlsplit(value).username is not None:
            raise ValueError("a URL with credentials in it; put them in the environment or in the usual AWS places")
        return value

    def landing(self, now: int) -> LandOptions:
        """How to land in a pass whose clock is `now`, in nanoseconds."""
        return LandOptions(
            now=now,
            max_delta_bytes=self.max_delta_bytes,
            max_line_bytes=self.max_line_bytes,
            parent_wait=parse_duration(self.parent_wait) // 1_000_000_000,
        )

    def store(self) -> StoreSettings:
        """How to reach a store."""
        return StoreSettings(
            endpoint_url=self.s3_endpoint_url, region=self.s3_region, max_object_bytes=self.max_object_bytes
        )

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,
        file_secret_settings: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        return init_settings, env_settings, YamlConfigSettingsSource(settings_cls, yaml_file=_config_file())


def load_settings(**options: Any) -> Settings:
    """The settings that hold here; an option that is None was not given. Raises `ConfigurationRejected`."""
    _refuse_unknown_variables()
    given = {name: value for name, value in options.items() if value is not None}
    try:
        return Settings(**given)
    except ValidationError as error:
        # Only the name and the rule: the value may be a secret that was put in the wrong place.
        problems = why_invalid(error, "setting", Settings.model_fields, show_values=False)
        raise ConfigurationRejected("; ".join(_place(problem, given) for problem in problems)) from None
    except (yaml.YAMLError, UnicodeDecodeError):
        raise ConfigurationRejected(f"configuration: {_config_file()} is not YAML") from None
    except (TypeError, ValueError):
        raise ConfigurationRejected(f"configuration: {_config_file()} is not a mapping of settings") from None


def _place(problem: str, options: Mapping[str, Any]) -> str:
    """A problem under the name that was used: an option's, or that of a setting."""
    name, _, rest = problem.partition(": ")
    return f"--{name.replace('_', '-')}: {rest}" if name in options else f"configuration: {problem}"


def open_zone(url: str, settings: Settings | None = None) -> Zone:
    """The zone at `url`, which must be there already; raises `ConfigurationRejected` when it is not."""
    if not url:
        raise ConfigurationRejected("ZONE is empty — give a folder or s3://bucket/prefix")
    store = open_store(url, settings=(settings or load_settings()).store())
    store.check_root()
    return Zone(store)


def open_exports(url: str, settings: Settings | None = None, *, zone: Zone | None = None) -> ObjectStore:
    """The store at `url` for what is derived; a folder is made, a bucket must be there. Raises
    `ConfigurationRejected`, also for `zone` itself, and a folder that it would take for a session or keeps for itself.
    """
    store = open_store(url, settings=(settings or load_settings()).store())
    if zone is not None and store.url.rstrip("/") == zone.store.url.rstrip("/"):
        raise ConfigurationRejected(f"{url} is the zone itself; take another place, or _exports there")
    below = store.url.removeprefix(f"{zone.store.url.rstrip('/')}/") if zone is not None else store.url
    if below != store.url and not below.startswith("_"):
        raise ConfigurationRejected(f"{url} lies in the zone, among its sessions; take another, or _exports there")
    if below != store.url and (folder := below.partition("/")[0]).lower() in RESERVED:
        raise ConfigurationRejected(f"{url} lies in the zone's own {folder}; take another, or _exports there")
    _make_root(url, store)
    return store


def open_landing_zone(url: str, settings: Settings) -> ObjectStore:
    """The store of a zone to land in; a folder is made, a bucket must be there. Raises `ConfigurationRejected`."""
    store = landing_zone_to_be(url, settings)
    _make_root(url, store)
    return store


def landing_zone_to_be(url: str, settings: Settings) -> ObjectStore:
    """The store of a zone to land in, to look for what has landed before; its folder may not be there yet. Raises
    `ConfigurationRejected`."""
    if not url:
        raise ConfigurationRejected("ZONE is empty — give a folder or s3://bucket/prefix")
    return open_store(url, settings=settings.store())


def _make_root(url: str, store: ObjectStore) -> None:
    if "://" not in store.url:
        try:
            Path(store.url).mkdir(parents=True, exist_ok=True)
        except (FileExistsError, NotADirectoryError):
            raise ConfigurationRejected(f"{url} is not a folder") from None
    store.check_root()


def _config_file() -> Path:
    return Path(os.environ.get(CONFIG_VARIABLE) or DEFAULT_FILE)


def _refuse_unknown_variables() -> None:
    known = {PREFIX + name.upper() for name in Settings.model_fields} | {CONFIG_VARIABLE}
    unknown = sorted(name for name in os.environ if name.upper().startswith(PREFIX) and name.upper() not in known)
    if unknown:
        raise ConfigurationRejected(f"configuration: no such setting: {', '.join(unknown)}")
    named = os.environ.get(CONFIG_VARIABLE)
    if named and not Path(named).is_file():
        raise ConfigurationRejected(f"configuration: {CONFIG_VARIABLE} names {named}, which is no file")
