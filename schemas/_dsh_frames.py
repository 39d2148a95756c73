"""The container of a compressed log: standard zstd frames end to end (DSH specification, section 6).

Frames are found by their structure first, without decompressing anything; only the last may be cut short. What comes
out is limited: a few bytes can ask for any amount of memory.
"""

from __future__ import annotations

from typing import NamedTuple

import zstandard

from schemas.errors import LogRejected

__all__ = ["Frame", "compress", "find_frames", "first_frame", "open_frames", "open_torn_frame"]

_MAGIC = b"\x28\xb5\x2f\xfd"
_STEP = 1 << 20
_CONTENT_SIZE_BYTES = (0, 2, 4, 8)
_DICTIONARY_BYTES = (0, 1, 2, 4)


class Frame(NamedTuple):
    """Where a whole frame lies in the file."""

    start: int
    end: int


def find_frames(data: bytes, name: str) -> tuple[list[Frame], int | None]:
    """All whole frames, and where a last one begins that is cut short. Raises LogRejected (``frame``)."""
    frames: list[Frame] = []
    position = 0
    while position < len(data):
        end = _frame_end(data, position, name)
        if end is None:
            return frames, position
        frames.append(Frame(position, end))
        position = end
    return frames, None


def first_frame(data: bytes, name: str) -> Frame | None:
    """The first frame, when ``data`` holds the whole of it. Raises LogRejected (``frame``)."""
    end = _frame_end(data, 0, name)
    return None if end is None else Frame(0, end)


def open_frames(data: bytes, frames: list[Frame], name: str, limit: int) -> list[bytes]:
    """What each frame holds, at most ``limit`` bytes together. Raises LogRejected (``frame``, ``too_large``)."""
    decompressor = zstandard.ZstdDecompressor()
    contents = []
    left = limit
    for frame in frames:
        try:
            with decompressor.stream_reader(data[frame.start : frame.end]) as reader:
                content = reader.read(min(left + 1, _STEP))
                if len(content) >= min(left + 1, _STEP):
                    pieces = [content]
                    while content and left >= sum(map(len, pieces)):
                        content = reader.read(_STEP)
                        pieces.append(content)
                    content = b"".join(pieces)
        except zstandard.ZstdError as error:
            raise LogRejected(name, None, "frame", f"the frame at byte {frame.start} is damaged: {error}") from None
        left -= len(content)
        if left < 0:
            raise LogRejected(name, None, "too_large", f"more than {limit} bytes when decompressed")
        contents.append(content)
    return contents


def open_torn_frame(data: bytes, start: int, name: str, limit: int) -> bytes:
    """What can still be read of the frame that begins at ``start`` and is cut short. Raises LogRejected
    (``too_large``).
    """
    pieces = []
    left = limit
    try:
        with zstandard.ZstdDecompressor().stream_reader(data[start:]) as reader:
            while content := reader.read(_STEP):
                pieces.append(content)
                left -= len(content)
                if left < 0:
                    raise LogRejected(name, None, "too_large", f"more than {limit} bytes when decompressed")
    except zstandard.ZstdError:
        pass  # what is there of it may well end in nonsense
    return b"".join(pieces)


def compress(content: bytes) -> bytes:
    """One frame as the original's writer makes it: level 3, checksum, no content size."""
    compressor = zstandard.ZstdCompressor(level=3, write_checksum=True, write_content_size=False).compressobj()
    return compressor.compress(content) + compressor.flush()


def _frame_end(data: bytes, start: int, name: str) -> int | None:
    """Where the frame at ``start`` ends; None when the file ends first."""
    if start + 4 > len(data):
        return None  # whatever they are, too few bytes to say that they are no frame
    if data[start : start + 4] != _MAGIC:
        raise LogRejected(name, None, "frame", f"no zstd frame at byte {start}")
    if start + 5 > len(data):
        return None
    descriptor = data[start + 4]
    if descriptor & 0x18:
        raise LogRejected(name, None, "frame", f"reserved bits are set in the frame at byte {start}")
    single_segment = descriptor & 0x20
    size = _CONTENT_SIZE_BYTES[descriptor >> 6] or (1 if single_segment else 0)
    position = start + 5 + (0 if single_segment else 1) + _DICTIONARY_BYTES[descriptor & 3] + size
    while True:
        block = data[position : position + 3]
        if len(block) < 3:
            return None
        header = int.from_bytes(block, "little")
        kind = header >> 1 & 3
        if kind == 3:
            raise LogRejected(name, None, "frame", f"a reserved kind of block at byte {position}")
        position += 3 + (1 if kind == 1 else header >> 3)
        if header & 1:
            break
    if descriptor & 4:
        position += 4
    return position if position <= len(data) else None
