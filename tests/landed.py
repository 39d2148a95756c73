"""The demo's archive as a zone for tests: landed in a folder or anywhere else, under its own names or others, and
damaged."""

from __future__ import annotations

import msgspec

from schemas.session_data import read_session_data, write_session_data
from storage.objects import ObjectStore
from tests.demo_zone import first_files

__all__ = ["damage", "land", "renamed"]


def land(store: ObjectStore, files: list[tuple[str, bytes]]) -> None:
    """Put landed files into a store."""
    for key, data in files:
        store.create(key, data)


def renamed(session: str) -> list[tuple[str, bytes]]:
    """The demo's `bakery-orders` as a session of another name."""
    files = []
    for key, data in first_files():
        if key.startswith("bakery-orders/"):
            landed = read_session_data(data, name=key)
            header = msgspec.structs.replace(landed.header, session=session)
            files.append((key.replace("bakery-orders", session, 1), write_session_data(header, landed.records)))
    return files


def damage(store: ObjectStore, session: str) -> tuple[str, bytes]:
    """Change a word in the session's first landed file; its key, and what it held."""
    key = min((stat.key for stat in store.list(f"{session}/streams/")), key=lambda key: key[-9:])
    whole = store.read(key)
    store.replace(key, whole.replace(b"external", b"internal", 1))
    return key, whole
