"""The index kept between runs unpacks to no more than a session can need; what does not fit is as if it were not
there.
"""

from __future__ import annotations

import resource
from pathlib import Path

import pytest
import zstandard

from storage.objects import open_store
from storage.zone import Zone
from tasks.assemble import AssembleOptions, assemble_session
from tasks.assemble.checkpoint import read_checkpoint
from tests.invented import SESSION, land_session

FILES = 6


def assembled(root: Path, files: int = FILES) -> Zone:
    root.mkdir()
    zone = Zone(open_store(root))
    land_session(zone, files)
    assemble(zone)
    return zone


def assemble(zone: Zone) -> None:
    assemble_session(zone, SESSION, AssembleOptions(now=1, max_round_bytes=6_000))


def rounds(zone: Zone) -> dict[str, bytes]:
    chain = zone.chain(SESSION)
    return {each.name: chain.read(each) for each in chain.rounds()}


@pytest.fixture
def saved(tmp_path: Path) -> bytes:
    data = assembled(tmp_path / "saved").read_index(SESSION)
    assert data is not None
    return data


def test_a_checkpoint_is_read_up_to_its_limit_and_no_further(saved: bytes) -> None:
    size = len(zstandard.ZstdDecompressor().decompress(saved))
    assert read_checkpoint(saved, size) is not None
    assert read_checkpoint(saved, size - 1) is None
    assert read_checkpoint(saved, 0) is None


def bomb(size: int, *, tell: bool = True) -> bytes:
    pack = zstandard.ZstdCompressor(write_content_size=tell).compressobj(size=size if tell else -1)
    return b"".join([*(pack.compress(b"\0" * (1 << 20)) for _ in range(size >> 20)), pack.flush()])


@pytest.mark.parametrize(
    "data",
    [
        bomb(1 << 28),
        bomb(1 << 28, tell=False),
        b"\x28\xb5\x2f\xfd\xe0" + b"\xff" * 8 + b"\0" * 20,  # a header that promises 2^64 - 1 bytes
        zstandard.compress(b"\xc1"),
        zstandard.compress(b"\x91" * 100_000),
        b"",
        b"no frame",
    ],
    ids=["large", "of unknown size", "of a false size", "no message", "nested", "empty", "none"],
)
def test_what_is_no_checkpoint_or_too_large_is_none_and_takes_no_memory(data: bytes) -> None:
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    assert read_checkpoint(data, 1 << 24) is None
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 100_000  # KiB; the large ones hold 256 MiB


def test_a_bomb_in_a_checkpoints_place_changes_no_byte(tmp_path: Path) -> None:
    undisturbed, bombed = assembled(tmp_path / "undisturbed"), assembled(tmp_path / "bombed")
    for zone in (undisturbed, bombed):
        land_session(zone, 2, first=FILES + 1)
    bombed.write_index(SESSION, bomb(1 << 28))
    for zone in (undisturbed, bombed):
        assemble(zone)
    assert rounds(bombed) == rounds(undisturbed)
    assert len(rounds(bombed)) > 2
    mended = bombed.read_index(SESSION)
    assert mended is not None
    assert read_checkpoint(mended, 1 << 24) is not None
