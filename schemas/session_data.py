"""Session Data, `sd/1`: landed files and their records, read and written (specification, section 3)."""

from schemas._sd_model import (
    SCHEMA,
    Dropped,
    LandedFile,
    Part,
    Record,
    SessionDataHeader,
    Usage,
)

__all__ = [
    "SCHEMA",
    "Dropped",
    "LandedFile",
    "Part",
    "Record",
    "SessionDataHeader",
    "Usage",
]
