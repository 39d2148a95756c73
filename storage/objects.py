"""One narrow interface to where bytes live, the same for a folder and for S3.

Correctness rests on one primitive: `create`, which never overwrites (DESIGN.md, rule 3). `replace` is for caches alone.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Protocol, TypeAlias
from urllib.parse import unquote

from schemas.errors import ConfigurationRejected

__all__ = ["Children", "ObjectStat", "ObjectStats", "ObjectStore", "StoreSettings", "open_store"]

GIB = 1024**3


@dataclass(frozen=True, slots=True)
class ObjectStat:
    """An object without its bytes: `size` in bytes, `modified` in seconds since the epoch; `etag` follows content."""

    key: str
    size: int
    modified: float
    etag: str


ObjectStats: TypeAlias = list[ObjectStat]
Children: TypeAlias = tuple[list[str], ObjectStats]
"""One level below a prefix: names of folders, and objects."""


@dataclass(frozen=True, slots=True)
class StoreSettings:
    """How to reach a store. Credentials are not here: they come from the environment or the usual AWS places.

    `endpoint_url` None leaves it to ``AWS_ENDPOINT_URL``. `attempts` bounds the tries of one request; between them
    lies a random wait of up to `backoff_seconds`, doubled each time, at most `backoff_limit_seconds`.
    """

    endpoint_url: str | None = None
    region: str | None = None
    max_object_bytes: int = GIB
    attempts: int = 8
    backoff_seconds: float = 0.1
    backoff_limit_seconds: float = 5.0
    connect_timeout_seconds: float = 5.0
    read_timeout_seconds: float = 60.0


class ObjectStore(Protocol):
    """Objects by key. Every method raises `KeyRefused` for a key or prefix that cannot be, `StoreUnavailable` when the
    store does not answer after bounded tries, and `ConfigurationRejected` when it will not serve us at all."""

    @property
    def url(self) -> str:
        """What `open_store` takes to open this store again."""

    @property
    def read_ahead(self) -> int:
        """How many reads are worth having under way at once; 1 where a read is a memory copy."""

    def create(self, key: str, data: bytes) -> None:
        """Create an object, durably, whole or not at all; `ObjectExists` when the key is taken, whatever it holds."""

    def replace(self, key: str, data: bytes) -> None:
        """Write an object over whatever is there. Only for what can be derived again."""

    def read(self, key: str) -> bytes:
        """The object's bytes; `ObjectMissing`, or `ObjectTooLarge` before anything is read into memory."""

    def read_range(self, key: str, start: int, length: int) -> bytes:
        """At most `length` bytes from offset `start`: fewer at the end, none behind it; `ObjectMissing`."""

    def list(self, prefix: str) -> ObjectStats:
        """Every object below `prefix`, sorted by key; unfinished writes are not shown."""

    def children(self, prefix: str) -> Children:
        """One level below `prefix`: names of folders, and objects; both sorted. On S3 a folder may turn out empty."""

    def stat(self, key: str) -> ObjectStat | None:
        """The object without its bytes, or None."""

    def delete(self, key: str) -> None:
        """Remove an object; nothing happens when there is none. Only for what can be derived again."""

    def check_root(self) -> None:
        """Raises `ConfigurationRejected` when the root (folder or bucket) is not there."""


def open_store(url_or_path: str | os.PathLike[str], *, settings: StoreSettings | None = None) -> ObjectStore:
    """The store at a path, a ``file://`` URL or ``s3://bucket/prefix``; nothing is contacted yet.

    Raises `ConfigurationRejected` for any other scheme and for a URL that names no place.
    """
    where = os.fspath(url_or_path)
    settings = settings or StoreSettings()
    scheme, separator, rest = where.partition("://")
    if separator and scheme == "s3":
        from storage.s3 import S3Store

        return S3Store(rest, settings)
    if separator and scheme == "file":
        if not rest.startswith("/"):
            raise ConfigurationRejected(f"{where}: a file URL names an absolute path, as in file:///data/zone")
        where = unquote(rest)
    elif separator:
        raise ConfigurationRejected(f"{where}: no store for {scheme}:// — use a path, file:// or s3://bucket/prefix")
    if not where or "\0" in where:
        raise ConfigurationRejected("the root of a store has no path")
    from storage.local import LocalStore

    return LocalStore(where, settings)
