"""Reading a .relavium.yaml: YAML's own limits, the workflow's rules, references, and the verdict."""

from __future__ import annotations

from typing import Any

import pytest

from schemas.errors import WorkflowRejected
from schemas.relavium import read_workflow, write_yaml
from schemas.relavium_references import references
from schemas.relavium_workflow import MAX_SOURCE_UNITS
from schemas.relavium_yaml_reader import read_yaml
from schemas.verdict import check_bytes
from tests.relavium_sessions import AGENT

NODES: list[dict[str, Any]] = [{"id": "input", "type": "input"}, {"id": "output", "type": "output"}]


def document(**spec: Any) -> dict[str, Any]:
    workflow = {"id": "a", "nodes": NODES, "edges": [{"from": "input", "to": "output"}]} | spec
    return {"schema_version": "1.0", "workflow": workflow}


def rejected(data: bytes) -> WorkflowRejected:
    with pytest.raises(WorkflowRejected) as error:
        read_workflow(data, name="f")
    return error.value


def refusal(value: dict[str, Any]) -> tuple[str, str]:
    error = rejected(write_yaml(value))
    return error.rule, error.field


# --- YAML ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("data", "rule", "row"),
    [
        (b"a: &x 1\n", "anchor", 1),
        (b"a: 1\nb: *x\n", "anchor", 2),
        (b"a: !!binary aGk=\n", "tag", 1),
        (b"a: !!python/object:os.system x\n", "tag", 1),
        (b"a: 1\nb: 2\na: 3\n", "duplicate_key", 3),
        (b"? [a]\n: 1\n", "key", 1),
        (b"a: 1\n---\nb: 2\n", "documents", 2),
        (b"a: 'b\n", "yaml", None),
        (b"a: [1\n", "yaml", None),
        (b"a: \xff\n", "encoding", None),
        (b"[" * 600 + b"]" * 600, "too_deep", 1),
    ],
)
def test_yaml_that_is_not_plain_data_is_refused(data: bytes, rule: str, row: int | None) -> None:
    error = rejected(data)
    assert error.rule == rule
    assert row is None or error.row == row


def test_an_alias_bomb_is_refused_at_its_first_anchor() -> None:
    bomb = b"a0: &a0 [x]\n" + b"".join(
        b"a%d: &a%d [%s]\n" % (n, n, b",".join([b"*a%d" % (n - 1)] * 9)) for n in range(1, 30)
    )
    assert rejected(bomb).rule == "anchor"


def test_a_source_of_more_than_2_mi_units_is_refused() -> None:
    assert rejected(b"a: " + b"x" * MAX_SOURCE_UNITS).rule == "too_big"
    # An emoji is two units.
    assert rejected(("a: " + "😀" * (MAX_SOURCE_UNITS // 2)).encode()).rule == "too_big"


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("yes", "yes"),
        ("2026-07-01", "2026-07-01"),
        ("1:30", "1:30"),
        ("1_000", "1_000"),
        ("0b11", "0b11"),
        ("=", "="),
        ("017", 17),
        ("0o17", 15),
        ("0x1F", 31),
        ("1e3", 1000.0),
        (".5", 0.5),
        ("-0", -0.0),
        ("9007199254740993", 9007199254740992.0),
        ("9" * 401, float("inf")),
        ("-" + "9" * 401, float("-inf")),
        ("0x" + "f" * 401, float("inf")),
        ("+" + "9" * 5000, float("inf")),
        ("-" + "0" * 5000 + "17", -17),
        (".inf", float("inf")),
        ("~", None),
        ("", None),
        ("NULL", None),
        ("True", True),
        ("tRUE", "tRUE"),
        ("'1'", "1"),
        ("a\tb", "a\tb"),
        ("a \t b", "a \t b"),
        ("a\u2028b\x85c", "a\u2028b\x85c"),
        ('"a\x7f\\ud83d\\\\ud83d"', "a\x7f\ud83d\\ud83d"),
        ("a\\ud83d", "a\\ud83d"),
        ("|\n \tx\n", "\tx\n"),
    ],
)
def test_scalars_are_read_by_the_core_schema_of_yaml_1_2(text: str, value: object) -> None:
    (read,) = read_yaml(f"k: {text}\n".encode(), name="f").values()
    assert (read, type(read), str(read)) == (value, type(value), str(value))


def test_keys_are_strings_and_nothing_is_merged() -> None:
    assert read_yaml(b"1: a\nnull: b\n<<: {c: 1}\n", name="f") == {"1": "a", "null": "b", "<<": {"c": 1}}


# --- the document ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("value", "rule", "field"),
    [
        ({"schema_version": 1.0, "workflow": document()["workflow"]}, "invalid_literal", "schema_version"),
        (document() | {"more": 1}, "unrecognized_keys", "more"),
        (document(more=1), "unrecognized_keys", "workflow.more"),
        (document(**{"AKIA" + "IOSFODNN7EXAMPLE": 1}), "unrecognized_keys", "workflow.AKIA..."),
        (document(**{"password=x": 1}), "unrecognized_keys", "workflow.pass..."),
        (document(id="A"), "invalid_string", "workflow.id"),
        (document(nodes=[]), "too_small", "workflow.nodes"),
        (document(nodes=[*NODES, NODES[0]]), "duplicate", "workflow.nodes"),
        (document(agents=[AGENT, AGENT]), "duplicate", "workflow.agents"),
        (document(agents=[{"$ref": ""}]), "too_small", "workflow.agents.0.$ref"),
        (document(nodes=[{"id": "a", "type": "loop"}]), "invalid_union_discriminator", "workflow.nodes.0.type"),
        (document(nodes=[{"id": "a", "type": "input", "model": "m"}]), "unrecognized_keys", "workflow.nodes.0.model"),
        (document(nodes=[{"id": "a", "type": "transform"}]), "required", "workflow.nodes.0.transform"),
        (document(edges=[{"from": "input", "to": "Output"}]), "invalid_string", "workflow.edges.0.to"),
        (document(inputs=[{"name": "a", "type": "secret", "default": "x"}]), "secret", "workflow.inputs.0.default"),
        (document(context=[{"key": "k", "value": "1"}] * 2), "duplicate", "workflow.context"),
    ],
    ids=str,
)
def test_a_document_that_breaks_a_rule_is_refused_by_field(value: dict[str, Any], rule: str, field: str) -> None:
    assert refusal(value) == (rule, field)


@pytest.mark.parametrize("data", [b"", b"- a\n", b"text\n", b"null\n"])
def test_what_is_no_document_is_refused(data: bytes) -> None:
    assert rejected(data).rule == "invalid_type"


def test_what_an_author_adds_is_accepted() -> None:
    nodes = [
        *NODES,
        {"id": "pick", "type": "condition", "expression": "x", "branches": [{"when": True, "target_node": "gate"}]},
        {"id": "gate", "type": "human_gate", "gate_type": "approval", "message_template": "{{inputs.who}}?"},
        {"id": "fan", "type": "parallel", "parallel_of": ["gate"]},
    ]
    edges = [{"from": "pick:true", "to": "gate"}, {"from": "fan", "to": "gate", "label": "b"}]
    inputs = [{"name": "who", "type": "string", "default": "me", "validation": {"max_length": 9}}]
    value = document(nodes=nodes, edges=edges, inputs=inputs, agents=[{"$ref": "./a.agent.yaml"}], tags=["t"])
    assert read_workflow(write_yaml(value), name="f").workflow.tags == ["t"]


def test_an_edge_of_a_parallel_node_must_be_one_of_its_branches() -> None:
    nodes = [*NODES, {"id": "fan", "type": "parallel", "parallel_of": ["input"]}]
    value = document(nodes=nodes, edges=[{"from": "fan", "to": "output"}])
    assert refusal(value) == ("not_listed", "workflow.edges.0.to")


# --- references ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("template", "found"),
    [
        ("{{ inputs.a }} and {{ctx.b.c|upper}}", ["inputs.a", "ctx.b"]),
        ('{{ run.outputs["n"].x | json }}', ["run.outputs"]),
        ('{{ inputs.a | default("}} {{secrets.k}}") }}', ["inputs.a"]),
        ("{{ nothing }} {{secrets.k", []),
        ("{ {secrets.k}}", []),
        ("{{x}}{{secrets.k}}", ["secrets.k"]),
    ],
)
def test_references_are_found_between_braces(template: str, found: list[str]) -> None:
    assert references(template) == found


def agent_says(text: str) -> dict[str, Any]:
    return {"agents": [AGENT | {"system_prompt": text}]}


def test_a_snapshot_that_would_show_a_secret_exports_but_is_not_parsed() -> None:
    assert refusal(document(**agent_says("use {{secrets.k}}"))) == (
        "secret_reference",
        "workflow.agents.0.system_prompt",
    )
    read_workflow(write_yaml(document(**agent_says("{{ctx.a}} {{inputs.b}}"))), name="f")


def test_a_secret_is_followed_through_context_values() -> None:
    inputs = [{"name": "key", "type": "secret"}]
    context = [{"key": "b", "value": "{{ctx.a}}"}, {"key": "a", "value": "{{inputs.key}}"}]
    laundered = document(inputs=inputs, context=context, **agent_says("{{ctx.b}}"))
    assert refusal(laundered)[0] == "secret_reference"
    read_workflow(write_yaml(document(inputs=inputs, context=context, **agent_says("{{ctx.c}}"))), name="f")


def test_a_context_value_cannot_read_a_nodes_output() -> None:
    context = [{"key": "a", "value": "{{run.outputs['input']}}"}]
    assert refusal(document(context=context)) == ("node_output", "workflow.context.0.value")


# --- verdicts --------------------------------------------------------------------------------------------------------


def test_an_accepted_file_says_whether_it_serialises_to_itself() -> None:
    data = write_yaml(document())
    assert check_bytes("a.relavium.yaml", data).detail == ("workflow a: 2 nodes, 1 edges; serialises to the same bytes")
    assert check_bytes("a.relavium.yaml", b"# note\n" + data).detail.endswith("serialises to other bytes")


def test_a_rejected_file_has_rule_line_and_field() -> None:
    verdict = check_bytes("a.relavium.yaml", b"a: 1\na: 2\n")
    assert (verdict.accepted, verdict.rule, verdict.row) == (False, "duplicate_key", 2)
    verdict = check_bytes("a.relavium.yaml", write_yaml(document(nodes=[])))
    assert (verdict.rule, verdict.row, verdict.detail.split(":")[0]) == ("too_small", None, "workflow.nodes")


def test_text_of_blanks_and_line_feeds_is_accepted_though_it_does_not_come_back() -> None:
    data = write_yaml(document(description="   \n"))
    assert check_bytes("a.relavium.yaml", data).detail.endswith("serialises to other bytes")
