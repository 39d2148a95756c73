"""Objects in an S3 bucket, through s3fs.

`create` is one PUT with ``If-None-Match: *`` and the SHA-256 sent along; nothing is looked at first. Every request is
made here once at a time, with all of the client's own retries off, so that this module alone knows which tries may have
succeeded unheard. s3fs's paths and listing cache are not used: its calls take bucket and key as they are, so that
``?versionId=`` or ``//`` in a key means nothing special.
"""

from __future__ import annotations

import base64
import functools
import hashlib
import logging
import os
import random
import re
import time
import uuid
from collections.abc import Callable
from typing import Any, NoReturn, TypeVar

from schemas.errors import (
    ConfigurationRejected,
    KeyRefused,
    ObjectExists,
    ObjectMissing,
    ObjectTooLarge,
    StoreUnavailable,
)
from storage.keys import check_key, check_prefix, is_temporary
from storage.objects import Children, ObjectStat, ObjectStats, StoreSettings
from storage.s3_replies import Answer, Reply, read_reply

__all__ = ["S3Store"]

T = TypeVar("T")

TRIES_UNSAID = 3
_LOG = logging.getLogger("sessionmill.store")
"""Said only where somebody listens: the command line does, on a terminal."""

_BUCKET = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{1,254}")
# Which call wrote an object. aiohttp sends a PUT a second time by itself when a kept connection turns out closed, so
# even a first answer "exists" may be about our own write; this name tells. It is no part of the object's bytes.
_WRITER = "sessionmill-write"


class S3Store:
    """An `ObjectStore` in ``bucket/prefix``. Threads may share it, and it may be used inside a running event loop (it
    waits there: s3fs keeps a loop of its own in a thread). It can be pickled, and used again after a fork."""

    read_ahead = 8

    def __init__(self, place: str, settings: StoreSettings | None = None) -> None:
        self._bucket, _, prefix = place.partition("/")
        if not _BUCKET.fullmatch(self._bucket):
            raise ConfigurationRejected(f"s3://{place}: names no bucket — use s3://bucket or s3://bucket/prefix")
        prefix = prefix.rstrip("/")
        try:
            self._prefix = check_key(prefix) + "/" if prefix else ""
        except KeyRefused as error:
            raise ConfigurationRejected(f"s3://{place}: the prefix is not usable: {error.detail}") from None
        self._settings = settings or StoreSettings()

    @property
    def url(self) -> str:
        return f"s3://{self._bucket}/{self._prefix}".rstrip("/")

    def create(self, key: str, data: bytes) -> None:
        check_key(key)
        self._check_size(key, len(data))
        writer = uuid.uuid4().hex
        condition = {"IfNoneMatch": "*", "Metadata": {_WRITER: writer}}
        unheard = False
        reply: Reply | None = None
        for number in range(self._settings.attempts):
            if number:
                self._wait(number, reply)
            reply = self._try_put(key, data, condition)
            if reply is None:
                return
            if reply.answer is Answer.EXISTS:
                stands = self._what_stands(key, data, writer, compare=unheard)
                if stands is None:  # a write that was under way has failed since, or a folder has this name
                    continue
                if stands:
                    return
                raise ObjectExists(key)
            if reply.answer is not Answer.NOT_NOW:
                self._refuse(key, reply)
            unheard = True
        # The last try may have been heard, too.
        stands = self._what_stands(key, data, writer, compare=True)
        if stands:
            return
        if reply is not None and reply.answer is Answer.NOT_NOW and stands is None:
            raise StoreUnavailable(key, "create", reply.detail)
        raise ObjectExists(key)

    def replace(self, key: str, data: bytes) -> None:
        check_key(key)
        self._check_size(key, len(data))
        self._insist(key, "replace", lambda: self._put(key, data, {}))

    def read(self, key: str) -> bytes:
        check_key(key)
        return self._insist(key, "read", lambda: self._get(key, {}))

    def read_range(self, key: str, start: int, length: int) -> bytes:
        if start < 0 or length < 0:
            raise ValueError("a range starts at 0 or later and has no negative length")
        check_key(key)
        if length == 0:
            if self.stat(key) is None:
                raise ObjectMissing(key)
            return b""
        wanted = {"Range": f"bytes={start}-{start + length - 1}"}
        return self._insist(key, "read_range", lambda: self._get(key, wanted), behind_the_end=b"")

    def list(self, prefix: str) -> ObjectStats:
        return self._list(prefix, {})[1]

    def children(self, prefix: str) -> Children:
        return self._list(prefix, {"Delimiter": "/"})

    def stat(self, key: str) -> ObjectStat | None:
        check_key(key)
        try:
            found = self._insist(key, "stat", lambda: self._call("head_object", Key=self._prefix + key))
        except ObjectMissing:
            return None
        return _object_stat(key, found["ContentLength"], found)

    def delete(self, key: str) -> None:
        check_key(key)
        self._insist(key, "delete", lambda: self._call("delete_object", Key=self._prefix + key))

    def check_root(self) -> None:
        self._insist("", "list", lambda: self._call("list_objects_v2", Prefix=self._prefix, MaxKeys=1))

    def _try_put(self, key: str, data: bytes, condition: dict[str, Any]) -> Reply | None:
        try:
            self._put(key, data, condition)
        except Exception as error:
            reply = read_reply(error)
            if reply.answer is Answer.UNKNOWN:
                raise
            return reply
        return None

    def _what_stands(self, key: str, data: bytes, writer: str, *, compare: bool) -> bool | None:
        """Whether the object that stands is this call's: True, False, or None when there is no object or no answer.

        With `compare`, a try went unheard, and equal bytes count as its success: not every store keeps the writer.
        """
        try:
            found = self._insist(key, "create", lambda: self._call("head_object", Key=self._prefix + key))
            if found.get("Metadata", {}).get(_WRITER) == writer:
                return True
            return compare and found["ContentLength"] == len(data) and self.read(key) == data
        except (ObjectMissing, StoreUnavailable):
            return None

    def _put(self, key: str, data: bytes, condition: dict[str, Any]) -> None:
        digest = base64.b64encode(hashlib.sha256(data).digest()).decode()
        self._call("put_object", Key=self._prefix + key, Body=data, ChecksumSHA256=digest, **condition)

    def _get(self, key: str, wanted: dict[str, str]) -> bytes:
        arguments = {"Bucket": self._bucket, "Key": self._prefix + key, **wanted}
        data: bytes = _run(self._client, _fetch, key, self._settings.max_object_bytes, arguments)
        return data

    def _list(self, prefix: str, arguments: dict[str, str]) -> Children:
        check_prefix(prefix)
        below = self._prefix + prefix
        folders: set[str] = set()
        objects: ObjectStats = []
        page: dict[str, Any] = {"IsTruncated": True}
        continued: dict[str, str] = {}
        while page.get("IsTruncated"):
            ask = functools.partial(self._call, "list_objects_v2", Prefix=below, **arguments, **continued)
            page = self._insist(prefix, "list", ask)
            continued = {"ContinuationToken": page.get("NextContinuationToken", "")}
            for folder in page.get("CommonPrefixes", ()):
                folders.add(folder["Prefix"][len(below) : -1])
            for found in page.get("Contents", ()):
                key = found["Key"][len(self._prefix) :]
                # A key that ends with a slash is a folder some tools make.
                if not key.endswith("/") and not any(map(is_temporary, key.split("/"))):
                    objects.append(_object_stat(key, found["Size"], found))
        names = sorted(name for name in folders if name and not is_temporary(name))
        return names, sorted(objects, key=lambda stat: stat.key)

    def _insist(self, key: str, operation: str, ask: Callable[[], T], *, behind_the_end: T | None = None) -> T:
        """Ask until there is an answer; errors in our words."""
        reply = Reply(Answer.NOT_NOW, "")
        for number in range(self._settings.attempts):
            if number:
                self._wait(number, reply)
            try:
                return ask()
            except Exception as error:
                reply = read_reply(error)
                if reply.answer is Answer.UNKNOWN:
                    raise
            if reply.answer is Answer.BEHIND_THE_END and behind_the_end is not None:
                return behind_the_end
            if reply.answer is not Answer.NOT_NOW:
                self._refuse(key, reply)
        raise StoreUnavailable(key or self.url, operation, reply.detail)

    def _refuse(self, key: str, reply: Reply) -> NoReturn:
        if reply.answer is Answer.MISSING:
            raise ObjectMissing(key)
        if reply.answer is Answer.NOT_FOR_US:
            raise ConfigurationRejected(f"{self.url}: {reply.detail}")
        raise KeyRefused(key, reply.detail)

    def _wait(self, number: int, reply: Reply | None) -> None:
        """Before try `number`: a random wait, so that those who collided once do not again."""
        if number == TRIES_UNSAID and reply is not None:
            _LOG.info("%s does not answer (%s); trying again", self.url, reply.detail)
        longest = self._settings.backoff_seconds * 2 ** (number - 1)
        time.sleep(random.uniform(0, min(longest, self._settings.backoff_limit_seconds)))

    def _check_size(self, key: str, size: int) -> None:
        if size > self._settings.max_object_bytes:
            raise ObjectTooLarge(key, size, self._settings.max_object_bytes)

    def _call(self, method: str, **arguments: Any) -> dict[str, Any]:
        answer: dict[str, Any] = self._client.call_s3(method, Bucket=self._bucket, **arguments)
        return answer

    @property
    def _client(self) -> Any:
        return _file_system(self._settings, os.getpid())


@functools.lru_cache
def _file_system(settings: StoreSettings, process: int) -> Any:
    """One client and its connections for all stores of one process; a forked child needs its own."""
    import s3fs

    client = s3fs.S3FileSystem(
        endpoint_url=settings.endpoint_url,
        client_kwargs={"region_name": settings.region} if settings.region else {},
        config_kwargs={
            "connect_timeout": settings.connect_timeout_seconds,
            "read_timeout": settings.read_timeout_seconds,
            "max_pool_connections": 32,
            "retries": {"total_max_attempts": 1},
            # We send SHA-256 where it matters and check our own digests on reading.
            "request_checksum_calculation": "when_required",
            "response_checksum_validation": "when_required",
        },
        use_listings_cache=False,
        skip_instance_cache=True,
    )
    client.retries = 1
    return client


def _run(client: Any, function: Callable[..., Any], *arguments: Any) -> Any:
    """Run a coroutine function in s3fs's own loop and wait for it."""
    from fsspec.asyn import sync

    return sync(client.loop, function, client, *arguments)


async def _fetch(client: Any, key: str, limit: int, arguments: dict[str, Any]) -> bytes:
    """One GET, its body read only when its size is within the limit."""
    reply = await client._call_s3("get_object", **arguments)
    body = reply["Body"]
    try:
        if reply["ContentLength"] > limit:
            raise ObjectTooLarge(key, reply["ContentLength"], limit)
        data: bytes = await body.read()
        return data
    finally:
        body.close()


def _object_stat(key: str, size: int, found: dict[str, Any]) -> ObjectStat:
    return ObjectStat(key, size, found["LastModified"].timestamp(), str(found.get("ETag", "")).strip('"'))
