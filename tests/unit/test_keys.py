"""Keys and escaped ids."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from schemas.errors import KeyRefused
from storage.keys import check_key, check_prefix, escape_id, unescape_id

any_text = st.text(st.characters(codec=None, categories=None), max_size=40)


@pytest.mark.parametrize(
    "key", ["a", "a/b.sd", "_conversations/x/rounds/r000001.claim", "ü/日本", "a b", "...", "a..b"]
)
def test_ordinary_keys_are_themselves(key: str) -> None:
    assert check_key(key) == key


@pytest.mark.parametrize(
    ("key", "reason"),
    [
        ("", "empty"),
        ("/abs", "absolute"),
        ("a/..", "'..'"),
        ("../a", "'..'"),
        (".", "'.'"),
        ("a//b", "empty"),
        ("a/", "slash"),
        ("..\\..\\etc", "'\\\\'"),
        ("C:\\x", "'\\\\'"),
        ("a\x00", "'\\x00'"),
        ("a\x7f", "'\\x7f'"),
        ("\ud800", "UTF-8"),
        ("x" * 256, "255"),
        ("/".join(["x" * 200] * 6), "1024"),
    ],
)
def test_refused_key_says_why(key: str, reason: str) -> None:
    with pytest.raises(KeyRefused) as refused:
        check_key(key)
    assert reason in refused.value.detail


def test_prefix_is_empty_or_ends_with_one_slash() -> None:
    assert check_prefix("") == ""
    assert check_prefix("a/b/") == "a/b/"
    for prefix in ("a", "a//", "/", "../"):
        with pytest.raises(KeyRefused):
            check_prefix(prefix)


@pytest.mark.parametrize("id", ["sess-a1b2", "72e63ac7-a953-4322", "wf_0e8287", "a.b", "user@host:1", "two words"])
def test_ordinary_id_is_its_own_segment(id: str) -> None:
    assert escape_id(id) == id


@pytest.mark.parametrize(
    ("id", "segment"),
    [
        ("", "%"),
        (".", "%2E"),
        ("..", "%2E."),
        ("_conversations", "%5Fconversations"),
        (".tmp-1", "%2Etmp-1"),
        ("a/b", "a%2Fb"),
        ("../../etc", "%2E.%2F..%2Fetc"),
        ("a\\b", "a%5Cb"),
        ("100%", "100%25"),
        ("é", "%C3%A9"),
        (" a ", "%20a%20"),
        ("\ud800", "%ED%A0%80"),
    ],
)
def test_unusual_id_is_escaped(id: str, segment: str) -> None:
    assert escape_id(id) == segment
    assert unescape_id(segment) == id


@given(any_text)
def test_escaped_id_is_one_usable_segment_and_comes_back(id: str) -> None:
    segment = escape_id(id)
    assert "/" not in segment
    assert not segment.startswith((".", "_"))
    assert segment.isascii()
    if len(segment) <= 255:
        assert check_key(f"{segment}/x") == f"{segment}/x"
    assert unescape_id(segment) == id


@pytest.mark.parametrize("segment", ["", "%2", "%zz", "%41", "a/b", "é", "%c3%a9", "%FF", "_x", "%%"])
def test_segment_that_was_never_escaped_is_refused(segment: str) -> None:
    with pytest.raises(KeyRefused):
        unescape_id(segment)
