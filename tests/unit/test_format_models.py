"""The formats' types at the edges: what pydantic takes and gives back is what the codecs read and write."""

from __future__ import annotations

import pytest
from pydantic import BaseModel, TypeAdapter, ValidationError

from schemas.session_data import Part, Record, SessionDataHeader, encode_text, write_session_data
from schemas.session_flow import RoundHeader
from schemas.verdict import check_bytes

HEADER = {
    "h": 1,
    "schema": "sd/1",
    "seq": 7,
    "at": "2026-08-07T09:00:00Z",
    "kind": "transcript",
    "adapter": "a",
    "dialect": "d/1",
    "src": "x",
    "session": "s",
    "stream": "main",
}


class Holder(BaseModel):
    header: SessionDataHeader


def test_a_model_takes_a_value_or_its_plain_form_and_gives_the_plain_form() -> None:
    holder = Holder.model_validate({"header": HEADER})
    assert holder.header.seq == 7
    assert Holder(header=holder.header).model_dump() == {"header": HEADER}
    assert list(holder.model_dump()["header"]) == list(HEADER)


def test_omitted_fields_stay_omitted_and_content_stays_json() -> None:
    record = Record(ord=1, off=0, sha="0", bytes=1, from_="agent", parts=(Part(k="text", text=encode_text("hi")),))
    plain = TypeAdapter(Record).dump_python(record)
    assert plain == {
        "ord": 1,
        "off": 0,
        "sha": "0",
        "bytes": 1,
        "from": "agent",
        "parts": [{"k": "text", "text": "hi"}],
    }
    assert TypeAdapter(Record).validate_python(plain) == record


@pytest.mark.parametrize("change", [{"seq": "7"}, {"seq": -1}, {"heading": 1}, {"h": None}])
def test_what_the_format_refuses_is_refused(change: dict[str, object]) -> None:
    with pytest.raises(ValidationError):
        Holder.model_validate({"header": {**HEADER, **change}})


def test_the_json_schema_is_that_of_the_format() -> None:
    schema = TypeAdapter(RoundHeader).json_schema()
    assert schema["properties"]["conversation"] == {"type": "string"}
    assert "talks" in schema["required"]
    assert "title" not in schema["required"]


def test_an_accepted_file_shows_its_header() -> None:
    header = TypeAdapter(SessionDataHeader).validate_python(HEADER)
    verdict = check_bytes("x.sd", write_session_data(header, []))
    assert verdict.model_dump()["header"] == HEADER
