"""Withholding secrets from text that other agents wrote, before it is exported.

Four kinds are looked for: private-key blocks, keys and tokens of known shapes, passwords in addresses, and values
assigned to names that sound like a secret. What is found is replaced by ``[withheld]`` in the parsed text, never in
serialised YAML. It is a net, not a proof: a reviewer still reads the file.

The time is linear in the text: each search passes over it once, and what is looked at again has a longest length.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from tasks.export.secret_assignments import assignments
from tasks.export.secret_keys import Span, key_blocks, known_keys, url_passwords
from tasks.export.secret_names import LONGEST_NAME, name_kind
from tasks.export.secret_pairs import pairs
from tasks.export.secret_values import is_secret

__all__ = ["KINDS", "WITHHELD", "Span", "secrets_in", "withhold", "withhold_value"]

WITHHELD: Final = "[withheld]"
KINDS: Final = ("private_key", "key", "url_password", "assignment")


def withhold(text: str) -> tuple[str, dict[str, int]]:
    """``text`` with every secret as `WITHHELD`, and how many of each kind there were."""
    pieces: list[str] = []
    counts: dict[str, int] = {}
    position = 0
    for start, end, kind in _united(sorted(secrets_in(text))):
        pieces += (text[position:start], WITHHELD)
        counts[kind] = counts.get(kind, 0) + 1
        position = end
    return ("".join((*pieces, text[position:])) if pieces else text), counts


def withhold_value(name: str, value: str) -> tuple[str, dict[str, int]]:
    """A map's ``value`` under the key ``name``: withheld whole when the name sounds like a secret."""
    kind = name_kind(name[-LONGEST_NAME:])
    if kind and is_secret("token" if kind == "header" else kind, value, quoted=True):
        return WITHHELD, {"assignment": 1}
    return withhold(value)


def secrets_in(text: str) -> Iterator[Span]:
    """The secrets in ``text``, kind by kind; they may overlap."""
    yield from key_blocks(text)
    yield from known_keys(text)
    yield from url_passwords(text)
    yield from assignments(text)
    yield from pairs(text)


def _united(spans: list[Span]) -> Iterator[Span]:
    """Spans that overlap as one, of the kind of the widest."""
    if not spans:
        return
    start, end, kind = spans[0]
    widest = end - start
    for next_start, next_end, next_kind in spans[1:]:
        if next_start >= end:
            yield start, end, kind
            start, end, kind, widest = next_start, next_end, next_kind, next_end - next_start
            continue
        if next_end - next_start > widest:
            kind, widest = next_kind, next_end - next_start
        end = max(end, next_end)
    yield start, end, kind
