"""Golden data: the original programs' exact bytes. The whole set lies beside the project; a small part of it is kept in
`tests/conformance/data`.
"""

from __future__ import annotations

from pathlib import Path

__all__ = ["GOLDEN", "KEPT", "golden_cases"]

KEPT = Path(__file__).parent / "conformance" / "data"
_WHOLE = Path(__file__).parents[2] / "shared" / "golden"
GOLDEN = _WHOLE if _WHOLE.is_dir() else KEPT
"""The whole set where it is at hand, else the part kept with the tests."""


def golden_cases(kind: str) -> list[Path]:
    """The case folders of one kind, such as `session-flow`, sorted by name."""
    folder = GOLDEN / kind
    return sorted(path for path in folder.iterdir() if path.is_dir()) if folder.is_dir() else []
