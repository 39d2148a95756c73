"""How a usage data set changes: files first, each created once under a name from its content, then the manifest.

Of writers at work at the same time one creates the next manifest; the others find it taken, and begin again from it
(DESIGN.md, rule 3). A writer deletes only what its own manifest has dropped, and what nobody has named for a day.
"""

from __future__ import annotations

from datetime import date
from hashlib import sha256

from schemas.errors import ObjectExists, ObjectMissing
from storage.objects import ObjectStore
from storage.usage_dataset import STATE, CallFile, Manifest, StateFile, manifest_key, manifests, newest_manifest

__all__ = [
    "call_file_key",
    "clear",
    "clear_dropped",
    "clear_forgotten",
    "clear_written",
    "commit",
    "data_keys",
    "named_keys",
    "put_calls",
    "put_state",
    "read_state",
]

MANIFESTS_KEPT = 16
_DAY_SECONDS = 86_400.0


def call_file_key(day: date, source: str, digest: str) -> str:
    """Where a file of call rows with that digest lies."""
    return f"date={day.isoformat()}/source={source}/part-{digest[:16]}.parquet"


def put_calls(store: ObjectStore, day: date, source: str, data: bytes, rows: int) -> CallFile:
    """Write a file of call rows, unless the same is there already."""
    digest = sha256(data).hexdigest()
    key = call_file_key(day, source, digest)
    _put(store, key, data)
    return CallFile(key=key, rows=rows, size=len(data), digest=digest, date=day, source=source)


def put_state(store: ObjectStore, name: str, suffix: str, data: bytes, rows: int) -> StateFile:
    """Write a file of the writer's own, unless the same is there already."""
    digest = sha256(data).hexdigest()
    key = f"{STATE}{name}-{digest[:16]}{suffix}"
    _put(store, key, data)
    return StateFile(key=key, rows=rows, size=len(data), digest=digest)


def read_state(store: ObjectStore, file: StateFile) -> bytes:
    """A file that the manifest names; raises `ObjectMissing` also when it is another than the manifest says."""
    data = store.read(file.key)
    if sha256(data).hexdigest() != file.digest:
        raise ObjectMissing(file.key)
    return data


def commit(store: ObjectStore, manifest: Manifest) -> bool:
    """Make `manifest` the state of the data set; False when somebody else's has that number."""
    try:
        store.create(manifest_key(manifest.generation), manifest.to_bytes())
    except ObjectExists:
        return False
    return True


def data_keys(store: ObjectStore) -> dict[str, float]:
    """Every call file and state file that is there, with the time of its writing (seconds since the epoch)."""
    # One listing of everything: in S3 a listing a day would be the dearest part of a run that finds nothing new.
    return {stat.key: stat.modified for stat in store.list("") if stat.key.startswith(("date=", STATE))}


def clear_dropped(store: ObjectStore, manifest: Manifest, there: dict[str, float]) -> None:
    """Delete what `manifest` has dropped and is still there: its writer stopped before it had cleared up."""
    for key in sorted(set(manifest.dropped) & there.keys()):
        store.delete(key)


def clear(store: ObjectStore, manifest: Manifest, there: dict[str, float], now: float) -> None:
    """Delete what `manifest` has `dropped`, what it has forgotten (`clear_forgotten`), and all manifests but the
    newest."""
    for key in sorted(set(manifest.dropped) - named_keys(manifest)):
        store.delete(key)
    clear_forgotten(store, manifest, there, now)
    for old in manifests(store):
        if old.generation <= manifest.generation - MANIFESTS_KEPT:
            store.delete(old.key)


def clear_forgotten(store: ObjectStore, manifest: Manifest, there: dict[str, float], now: float) -> None:
    """Delete what `manifest` does not name and is a day older than `now` (seconds since the epoch): writers that were
    killed have left it, and who reads by a pattern counts it. What somebody is writing is younger."""
    oldest = now - _DAY_SECONDS
    for key in sorted(there.keys() - named_keys(manifest)):
        # Asked again, since another writer may have come to need the same file meanwhile.
        if there[key] < oldest and (stat := store.stat(key)) is not None and stat.modified < oldest:
            store.delete(key)


def clear_written(store: ObjectStore, written: set[str]) -> None:
    """Delete those of the files `written` for a manifest that came too late which the newest does not name."""
    newest = newest_manifest(store) if written else None
    if newest is not None:
        for key in sorted(written - named_keys(newest)):
            store.delete(key)


def named_keys(manifest: Manifest) -> set[str]:
    """Every file that the manifest names."""
    state = () if manifest.sessions is None else (manifest.sessions,)
    return {each.key for each in (*manifest.files, *manifest.candidates, *state)}


def _put(store: ObjectStore, key: str, data: bytes) -> None:
    try:
        store.create(key, data)
    except ObjectExists:
        # Named after its content, which is what its readers expect, whatever it holds; and written now, so that nobody
        # takes it for what a killed writer left a day ago.
        store.replace(key, data)
