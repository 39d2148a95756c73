"""A log's milliseconds as Session Data's times."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

__all__ = ["Clock"]

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class Clock:
    """Events come in bursts: the text of a second is made once."""

    def __init__(self) -> None:
        self._second: int | None = None
        self._text = ""

    def text(self, milliseconds: int) -> str:
        """RFC 3339 with three decimals; empty for what is beyond years of four digits."""
        second, rest = divmod(milliseconds, 1000)
        if second != self._second:
            try:
                moment = _EPOCH + timedelta(seconds=second)
            except OverflowError:
                return ""
            self._second, self._text = second, f"{moment.year:04d}-{moment:%m-%dT%H:%M:%S}"
        return f"{self._text}.{rest:03d}Z"
