"""Secrets in every form in which they leave a run."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest
import zstandard

from tasks.agents.masking import Mask
from tests.scripted_agents import SECRET


def test_secret_is_masked_in_every_form() -> None:
    mask = Mask([SECRET, "line one of it\nline two of it"])
    said = [
        SECRET,
        json.dumps({"a": SECRET}),
        "x line two of it y",
        "c2stInZlcnkiL3NlY3JldC0wMTIz",
        "sk-%22very%22%2Fsecret-0123",
    ]
    assert [mask.text(each) for each in said] == ["***", '{"a": "***"}', "x *** y", "***", "***"]
    assert Mask([]).text("anything") == "anything"


def _json_level(text: str, level: int) -> str:
    for _ in range(level):
        text = json.dumps(text)[1:-1]
    return text


@pytest.mark.parametrize("level", [0, 1, 2, 3])
def test_secret_in_json_within_json_is_masked(level: int) -> None:
    written = _json_level(SECRET, level)
    line = json.dumps({"arguments": _json_level(SECRET, level)}).encode()
    assert Mask([SECRET]).text(f"a {written} b") == "a *** b"
    if level < 3:
        masked = Mask([SECRET]).file(line)
        assert len(masked) == len(line)
        assert set(json.loads(masked)["arguments"]) == {"*"}


@pytest.mark.parametrize("key", ["sk-stub-0123456789abcdef/+=", "sk-0123456789abcdefg", "sk?~>ÿ0123456789?>"])
@pytest.mark.parametrize("encode", [base64.b64encode, base64.urlsafe_b64encode])
@pytest.mark.parametrize("around", [("", ""), ("", "\n"), ("user:", ""), ("ab", "\n"), ("a", "bc"), ("abc", "d")])
def test_secret_in_base64_is_masked_wherever_it_begins(key: str, encode: Any, around: tuple[str, str]) -> None:
    before, after = around
    encoded = encode(f"{before}{key}{after}".encode()).decode()
    masked = Mask([key]).text(encoded)
    # What is left belongs to what is around it as well.
    assert len(masked.replace("***", "").rstrip("=")) <= len(f"{before}{after}") * 8 / 6 + 2
    assert masked.count("***") == 1


@pytest.mark.parametrize(
    "encoded",
    [
        "736b2f31322b2033343d353b3637",
        "736B2F31322B2033343D353B3637",
        "sk%2F12%2B%2034%3D5%3B67",
        "sk%2f12%2b%2034%3d5%3b67",
        "sk/12%2B%2034%3D5%3B67",
        "sk%2F12%2B+34%3D5%3B67",
        "sk/12+%2034=5;67",
    ],
)
def test_secret_in_hexadecimal_or_percent_encoding_is_masked(encoded: str) -> None:
    assert Mask(["sk/12+ 34=5;67"]).text(f"<{encoded}>") == "<***>"


def test_long_secret_in_lines_of_base64_and_hexadecimal_is_masked() -> None:
    key = "sk-" + "".join(f"{number:04d}" for number in range(40))
    for encoded, width in ((base64.b64encode(key.encode()).decode(), 76), (key.encode().hex(), 60)):
        lines = [encoded[at : at + width] for at in range(0, len(encoded), width)]
        assert set(Mask([key]).text("".join(lines))) == {"*"}
        assert set(Mask([key]).text("\n".join(lines))) == {"*", "\n"}


def test_secrets_that_overlap_are_masked_to_the_last_character() -> None:
    assert Mask(["abcdefgh12", "gh12345678"]).text("xabcdefgh12345678y") == "x***y"
    assert Mask(["abcdefgh12", "cdefgh12"]).text("abcdefgh12 cdefgh12") == "*** ***"


def test_only_the_beginning_of_a_secret_at_the_end_of_what_was_cut_is_told() -> None:
    begun = Mask(["sk-0123456789", "other-secret-1"]).begun
    assert [begun(each) for each in (b"x sk-01234", b"x other-secret-", b"x sk-", b"sk-01234 x")] == [8, 13, 0, 0]


def test_masked_file_keeps_its_length_and_stays_json() -> None:
    line = json.dumps({"out": f"key={SECRET}", "n": 1}).encode() + b"\n"
    masked = Mask([SECRET]).file(line)
    assert len(masked) == len(line)
    assert set(json.loads(masked)["out"][4:]) == {"*"}


def test_secret_inside_of_zstandard_frames_is_masked_and_other_frames_keep_their_bytes() -> None:
    pack = zstandard.ZstdCompressor().compress
    clean, dirty = pack(b'{"a":1}\n'), pack(json.dumps({"k": SECRET}).encode() + b"\n")
    masked = Mask([SECRET]).file(clean + dirty + clean + clean[:-3])
    assert masked.startswith(clean)
    assert masked.endswith(clean + clean[:-3])
    frames = zstandard.ZstdDecompressor().stream_reader(masked[: -len(clean) + 3], read_across_frames=True).read()
    assert b"secret" not in frames
    assert frames.count(b"\n") == 3
