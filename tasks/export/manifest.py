"""The manifest of an exports folder: which session and rounds each file came from, and what a reader should know of it.

Derived like the files: without it the next export writes it again. Exporters that run at once may each write it, so a
write is read back and repeated until it holds what this one exported, or something newer; nothing here locks.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping

from pydantic import BaseModel, ConfigDict, ValidationError

from schemas.errors import ObjectMissing
from storage.keys import MAX_SEGMENT_BYTES, escape_id
from storage.objects import ObjectStore
from tasks.export.outcome import ExportedFile

__all__ = ["MANIFEST", "Manifest", "file_name", "manifest_warnings", "read_manifest", "record_exports"]

MANIFEST = "manifest.json"
SUFFIX = ".relavium.yaml"
_ATTEMPTS = 10
_KEPT_OF_A_LONG_ID = 120


class Manifest(BaseModel):
    """What stands in an exports folder, by file name."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    schema_version: str = "exports/1"
    files: dict[str, ExportedFile] = {}


def file_name(conversation: str) -> str:
    """The name of a conversation's file: its escaped id, with a digest for the rest of one that is too long."""
    name = escape_id(conversation)
    if len(name) + len(SUFFIX) > MAX_SEGMENT_BYTES:
        digest = hashlib.sha256(conversation.encode("utf-8", "surrogatepass")).hexdigest()
        # No escaped id holds "%-", so no other conversation has this name.
        name = f"{name[:_KEPT_OF_A_LONG_ID]}%-{digest}"
    return name + SUFFIX


def read_manifest(exports: ObjectStore) -> Manifest:
    """The manifest; an empty one when there is none, or none that can be read: it is derived."""
    try:
        return Manifest.model_validate_json(exports.read(MANIFEST))
    except (ObjectMissing, ValidationError):
        return Manifest()


def manifest_warnings(exports: ObjectStore) -> list[str]:
    """What to know of the manifest before an export puts it right: that what is there cannot be read."""
    try:
        Manifest.model_validate_json(exports.read(MANIFEST))
    except ObjectMissing:
        return []
    except ValidationError:
        return [f"{MANIFEST} cannot be read, and is made again: it lists only what is exported from now on"]
    return []


def record_exports(exports: ObjectStore, files: Mapping[str, ExportedFile]) -> None:
    """Put `files` into the manifest, unless it has a file of more rounds already. Not written when nothing changes."""
    for _ in range(_ATTEMPTS):
        standing = read_manifest(exports).files
        news = {name: file for name, file in files.items() if _replaces(file, standing.get(name))}
        data = manifest_bytes(Manifest(files={**standing, **news}))
        try:
            if exports.read(MANIFEST) == data:
                return
        except ObjectMissing:
            if not files:
                return
        exports.replace(MANIFEST, data)


def manifest_bytes(manifest: Manifest) -> bytes:
    """The manifest as it is written: the same files give the same bytes."""
    return json.dumps(manifest.model_dump(mode="json"), indent=2, sort_keys=True).encode() + b"\n"


def _replaces(file: ExportedFile, standing: ExportedFile | None) -> bool:
    return standing is None or standing.rounds[: len(file.rounds)] != file.rounds or standing.rounds == file.rounds
