"""Companions that are packed or cut in a way that no writer of ours leaves: all that reads counts, and the rest is
named."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import zstandard

from storage.landings import calls_key
from tasks.usage import reading
from tests.memory_store import MemoryStore
from tests.usage_sessions import claude, count, land, rows

SKIPPED = b"\x50\x2a\x4d\x18\x04\x00\x00\x00abcd"
"""A frame that is passed over (Zstandard's format, "Skippable Frames")."""
pack = zstandard.compress


def after_first(data: bytes) -> int:
    return data.index(b"\n") + 1


def counted(packed: Callable[[bytes], bytes]) -> tuple[list[str], list[tuple[int | None, str]]]:
    """The calls that count of two whose companion is packed in that way, and row and rule of what is wrong."""
    zone, usage = MemoryStore(), MemoryStore()
    land(zone, "a", [claude("m1", 100), claude("m2", 50)])
    key = calls_key("a", 1)
    zone.objects[key] = packed(zstandard.decompress(zone.objects[key]))
    problems = count(zone, usage).problems
    assert all(problem.file == key for problem in problems)
    return rows(usage, "call_key"), [(problem.row, problem.rule) for problem in problems]


@pytest.mark.parametrize(
    "packed",
    [
        pack,
        lambda data: pack(data[: after_first(data)]) + pack(data[after_first(data) :]),
        lambda data: pack(data[:30]) + pack(b"") + pack(data[30:]),
        lambda data: pack(b"") + pack(data),
        lambda data: SKIPPED + pack(data) + SKIPPED,
        zstandard.ZstdCompressor(write_content_size=False).compress,
        lambda data: pack(data[:-1]),
        lambda data: pack(data.replace(b"\n", b"\r\n")),
    ],
    ids=[
        *("as written", "a frame a line", "frames within a line", "an empty frame first", "frames to pass over"),
        *("no size", "no last line feed", "CR LF"),
    ],
)
def test_every_frame_and_line_counts(packed: Callable[[bytes], bytes]) -> None:
    assert counted(packed) == (["m1", "m2"], [])


@pytest.mark.parametrize("cut", [1, 40])
def test_a_last_line_that_is_cut_is_named(cut: int) -> None:
    assert counted(lambda data: pack(data[: -1 - cut])) == (["m1"], [(2, "undecodable")])


@pytest.mark.parametrize(
    "packed",
    [
        lambda data: pack(data)[:-1],
        lambda data: pack(data) + pack(data)[:-1],
        lambda data: pack(data) + b"and more",
        lambda data: pack(b""),
        lambda data: SKIPPED,
        lambda data: b"",
        lambda data: data,
    ],
    ids=[
        "cut",
        "cut in the second frame",
        "more behind it",
        "an empty frame",
        "nothing to read",
        "empty",
        "not packed",
    ],
)
def test_a_companion_that_does_not_unpack_is_named(packed: Callable[[bytes], bytes]) -> None:
    assert counted(packed) == ([], [(None, "calls")])


@pytest.mark.parametrize(
    "packed",
    [
        pack,
        lambda data: pack(data[:300]) + pack(data[300:]),
        zstandard.ZstdCompressor(write_content_size=False).compress,
    ],
    ids=["one frame", "two frames", "no size"],
)
def test_a_companion_that_unpacks_to_too_much_is_named(
    packed: Callable[[bytes], bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reading, "MOST_UNPACKED", 300)
    assert counted(packed) == ([], [(None, "calls")])
