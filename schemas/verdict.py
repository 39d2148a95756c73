"""The verdict on one file, as `sessionmill check` gives it."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict

from schemas.errors import RejectedData, WrongUse
from schemas.session_data import SessionDataHeader, read_session_data
from schemas.session_flow import RoundHeader, check_round


class Verdict(BaseModel):
    """Whether one file keeps its format's rules.

    ``rule`` is the short name of the rule broken first, and None for an accepted file. ``detail`` is then what was
    found in it (a round's digest, ``3 records``, a workflow's id), and otherwise how the rule is broken; ``row`` is
    where, None for the whole file. ``header`` is what an accepted .sd or .sf file says of itself.
    """

    model_config = ConfigDict(frozen=True)

    file: str
    accepted: bool
    rule: str | None = None
    row: int | None = None
    detail: str
    header: RoundHeader | SessionDataHeader | None = None


def check_bytes(name: str, data: bytes) -> Verdict:
    """The verdict on ``data``, read as what the suffix of ``name`` says: ``.sd``, ``.sf`` or ``.relavium.yaml``. Raises
    WrongUse for another.
    """
    try:
        if name.endswith(".sd"):
            landed = read_session_data(data, name=name)
            number = len(landed.records)
            detail = f"{number} record" if number == 1 else f"{number} records"
            return Verdict(file=name, accepted=True, detail=detail, header=landed.header)
        if name.endswith(".sf"):
            header, digest = check_round(data, name=name)
            return Verdict(file=name, accepted=True, detail=digest, header=header)
        if name.endswith(".relavium.yaml"):
            # Its models are many; no other command should wait for them.
            from schemas.relavium_verdict import describe_workflow

            return Verdict(file=name, accepted=True, detail=describe_workflow(data, name=name))
    except RejectedData as error:
        return Verdict(file=name, accepted=False, rule=error.rule, row=error.row, detail=error.detail)
    raise WrongUse(f"{name}: cannot tell its format — check takes .sd, .sf and .relavium.yaml files")
