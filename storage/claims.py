"""Claims: round N promised before it is published (DESIGN.md, rule 3).

``rounds/rNNNNNN.claim`` is created once and kept forever. It holds what is needed to make round N's exact bytes
again, and their digest; only a round with that digest may become round N. So whoever finds a claim without its round
completes it, and a slow process that lost the race cannot put a second round N beside the first. Readers of the
original format see a foreign name and ignore it.
"""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, ValidationError

from schemas.errors import ChainRejected

__all__ = ["Claim", "claim_name", "read_claim"]

Digest = Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{64}$")]


class Claim(BaseModel):
    """One claim. Field order is writing order.

    `previous` is the digest of round N-1 (empty for round 1), `indexed_seq` the highest landed sequence known when
    the claim was made, `absent` the ranges (first, last) up to there that had no landed file then, `digest` that of
    the round to come.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    conversation: str
    session: str
    round: Annotated[int, Field(ge=1)]
    previous: str
    from_seq: Annotated[int, Field(ge=1)]
    through_seq: Annotated[int, Field(ge=0)]
    indexed_seq: Annotated[int, Field(ge=0)]
    absent: list[tuple[int, int]]
    digest: Digest
    parser: str
    policy: str

    def to_bytes(self) -> bytes:
        """One line of JSON."""
        return self.model_dump_json().encode() + b"\n"


def claim_name(number: int) -> str:
    """File name of round `number`'s claim."""
    return f"r{number:06d}.claim"


def read_claim(data: bytes, *, name: str, conversation: str, number: int) -> Claim:
    """The claim in `data`; raises `ChainRejected` (rule ``claim``) when it is none, or another round's."""
    try:
        claim = Claim.model_validate_json(data)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        detail = f"{'.'.join(map(str, first['loc'])) or 'the file'}: {first['msg']}"
        raise ChainRejected(name, None, "claim", detail) from None
    if (claim.conversation, claim.round) != (conversation, number):
        detail = f"it claims round {claim.round} of conversation {claim.conversation}"
        raise ChainRejected(name, None, "claim", detail)
    return claim
