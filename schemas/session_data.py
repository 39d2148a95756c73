"""Session Data, `sd/1`: landed files and their records, read and written (specification, section 3)."""

from schemas import lenient_json
from schemas._sd_model import SCHEMA, Dropped, LandedFile, Part, Record, SessionDataHeader, Usage
from schemas._sd_reader import END_LINE_START, read_session_data
from schemas._sd_writer import (
    encode_record,
    encode_text,
    encode_texts,
    text_size,
    write_and_digest,
    write_session_data,
)

__all__ = [
    "END_LINE_START",
    "SCHEMA",
    "Dropped",
    "LandedFile",
    "Part",
    "Record",
    "SessionDataHeader",
    "Usage",
    "encode_record",
    "encode_text",
    "encode_texts",
    "read_session_data",
    "text_of",
    "text_size",
    "write_and_digest",
    "write_session_data",
]


def text_of(part: Part) -> str:
    """A part's text decoded; empty when it has none."""
    return lenient_json.decode_string(bytes(part.text)) if part.text else ""
