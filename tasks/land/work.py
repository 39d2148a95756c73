"""Landing as a worker does it: a whole source, telling of each session as it is done."""

from __future__ import annotations

from functools import partial

from pydantic import BaseModel, ConfigDict, NonNegativeInt

from schemas.errors import SessionmillError, TransientError
from storage.objects import StoreSettings
from storage.zone import Zone
from tasks.land.archive import check_apart, land_archive, remembers
from tasks.land.cursors import root_name
from tasks.land.kinds import recognise
from tasks.land.outcome import LandOptions, SessionLanding
from tasks.land.quarantine import Note, all_notes
from tasks.land.selection import KIND_OF_SOURCE, Archive
from tasks.shards.work import Tell, Work, opened

__all__ = ["LandWork", "News", "SourceLanding"]


class News(BaseModel):
    """How many sessions a source has, or that one of them is done."""

    model_config = ConfigDict(frozen=True)

    sessions: NonNegativeInt | None = None
    landing: SessionLanding | None = None


class SourceLanding(BaseModel):
    """One source after its turn, but for its sessions, which were told of one by one. `session` is its name in the
    work, `noted` what is known to be wrong with it from this pass and earlier ones; `failure` says why it could not be
    landed, and `of_system` whether the system is to blame for that."""

    model_config = ConfigDict(frozen=True)

    session: str
    url: str
    kind: str = ""
    noted: list[Note] = []
    failure: str | None = None
    of_system: bool = False


class LandWork(Work[SourceLanding]):
    """Land one source; the name is any."""

    zone: str
    store: StoreSettings
    archive: Archive
    options: LandOptions

    def do(self, name: str, tell: Tell) -> SourceLanding:
        try:
            return self._land(name, tell)
        except TransientError:
            raise  # so that it is tried again
        except SessionmillError as error:
            return SourceLanding(session=name, url=self._url(), failure=str(error))

    def _url(self) -> str:
        """The source as its store names it; as it was given where it is no store's."""
        try:
            return opened(self.archive.url, self.store).url
        except SessionmillError:
            return self.archive.url

    def _land(self, name: str, tell: Tell) -> SourceLanding:
        zone, source = Zone(opened(self.zone, self.store)), opened(self.archive.url, self.store)
        source.check_root()
        check_apart(source, zone)
        dialect, readable, found = recognise(source, self.archive.kind, partial(remembers, zone), KIND_OF_SOURCE)
        tell(News(sessions=len(found.sessions)))
        landings = land_archive(zone, readable, dialect, found, self.options, self.archive.wants, KIND_OF_SOURCE)
        for landing in landings:
            tell(News(landing=landing))
        noted = all_notes(zone.store, root_name(source))
        return SourceLanding(session=name, url=source.url, kind=dialect.name, noted=noted)

    def outcome(self, data: str) -> SourceLanding:
        return SourceLanding.model_validate_json(data)

    def failed(self, name: str, why: str) -> SourceLanding:
        return SourceLanding(session=name, url=self.archive.url, failure=why, of_system=True)
