"""Listing a source whole, or as far as it lets itself be listed."""

from __future__ import annotations

from schemas.errors import StoreError
from storage.objects import ObjectStat, ObjectStore

__all__ = ["list_all"]


def list_all(store: ObjectStore, *, deepest: int) -> tuple[list[ObjectStat], list[tuple[str, str]]]:
    """Every object, and the places that could not be listed (place, reason). Where the whole cannot be listed at once
    it is gone through folder by folder, down to `deepest` folders, so that one closed folder hides no other."""
    unreadable: list[tuple[str, str]] = []
    try:
        return store.list(""), unreadable
    except StoreError:
        return _walk(store, "", deepest, unreadable), unreadable


def _walk(store: ObjectStore, prefix: str, deepest: int, unreadable: list[tuple[str, str]]) -> list[ObjectStat]:
    try:
        folders, stats = store.children(prefix)
    except StoreError as error:
        unreadable.append((prefix, str(error)))
        return []
    if deepest:
        for folder in folders:
            stats += _walk(store, f"{prefix}{folder}/", deepest - 1, unreadable)
    return stats
