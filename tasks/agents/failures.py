"""What kind of failure a program's words describe: programs give a code, a status or only a sentence.

The kinds decide what is tried again: a provider that is away or asks for patience is, a refusal is not.
"""

from __future__ import annotations

import re
from typing import Final

from schemas.agent_run import StopReason

__all__ = ["by_status", "failure_kind"]

_CODES: Final[dict[str, StopReason]] = {
    "MISSING_CREDENTIAL": "missing_key",
    "RATE_LIMIT": "rate_limited",
    "SERVER": "provider_unavailable",
    "TIMEOUT": "provider_unavailable",
    "TRANSPORT": "provider_unavailable",
    "EMPTY_RESPONSE": "provider_unavailable",
    "CONTEXT_WINDOW_EXCEEDED": "context_overflow",
    "INVALID_REQUEST": "provider_refused",
    "INVALID_CREDENTIAL": "provider_refused",
    "QUOTA_EXCEEDED": "provider_refused",
}

_WORDS: Final[tuple[tuple[StopReason, str], ...]] = (
    ("missing_key", r"missing environment variable|not logged in|please run /login|no api key|missing_credential"),
    ("context_overflow", r"prompt is too long|context[ _](?:length|window)[ _]?exceed|ran out of room in the model"),
    ("output_limit", r"max_output_tokens|exceeded the \d+ output token"),
    ("rate_limited", r"rate.?limit|\b429\b|too many requests"),
    (
        "provider_unavailable",
        r"overloaded|high demand|server_error|internal server error|stream disconnected|\b5\d\d\b",
    ),
    (
        "provider_unavailable",
        r"connection (?:error|closed|dropped|refused)|\bE(?:CONN\w+|PIPE|TIMEDOUT)\b|unable to connect",
    ),
    ("provider_unavailable", r"error sending request|timed? ?out|reset by peer|hang up"),
    ("provider_unavailable", r"fetch failed|terminated"),
    ("provider_refused", r"invalid_request|authentication|permission_error|unauthori[sz]ed|\b4\d\d\b|not_found"),
)


def by_status(status: int) -> StopReason:
    """The kind of an HTTP answer of the provider."""
    if status == 429:
        return "rate_limited"
    return "provider_unavailable" if status >= 500 or status == 408 else "provider_refused"


def failure_kind(text: str, *, code: str = "", status: int | None = None) -> StopReason:
    """The kind of a failure: by its code if that is known, by the provider's status, else by its words."""
    if code in _CODES:
        return _CODES[code]
    if status is not None:
        return by_status(status)
    return next((kind for kind, words in _WORDS if re.search(words, text, re.IGNORECASE)), "runner_failed")
