"""Session Flow, `sf/1`: the rounds of a conversation chain, read, written and folded (specification, section 7)."""

from schemas._sf_fold import View, view_json
from schemas._sf_model import (
    SCHEMA,
    Commit,
    Counts,
    Entity,
    NodeFacts,
    Ref,
    RelationFacts,
    Round,
    RoundHeader,
    UnresolvedFacts,
)
from schemas._sf_reader import read_round
from schemas._sf_writer import build_round, encode_attrs, encode_facts, round_file_name

__all__ = [
    "SCHEMA",
    "Commit",
    "Counts",
    "Entity",
    "NodeFacts",
    "Ref",
    "RelationFacts",
    "Round",
    "RoundHeader",
    "UnresolvedFacts",
    "View",
    "build_round",
    "encode_attrs",
    "encode_facts",
    "read_round",
    "round_file_name",
    "view_json",
]
