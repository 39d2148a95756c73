"""The verdict on a `.relavium.yaml`: whether Relavium would parse it, and whether writing it again changes it."""

from __future__ import annotations

from pydantic import ValidationError

from schemas._relavium_refusals import refused
from schemas.errors import WorkflowRejected
from schemas.relavium_references import reference_refusal
from schemas.relavium_workflow import WorkflowDefinition
from schemas.relavium_yaml import write_yaml
from schemas.relavium_yaml_reader import read_yaml

__all__ = ["describe_workflow", "read_workflow"]


def read_workflow(data: bytes, *, name: str) -> WorkflowDefinition:
    """The workflow in ``data`` by the rules of Relavium's parser: YAML, then the schema, then references. Raises
    WorkflowRejected with the first rule broken.
    """
    return _read(data, name)[1]


def describe_workflow(data: bytes, *, name: str) -> str:
    """What is in an acceptable workflow, and whether serialising it again gives the same bytes. Raises
    WorkflowRejected.
    """
    value, document = _read(data, name)
    spec = document.workflow
    same = write_yaml(value) == data
    stability = "serialises to the same bytes" if same else "serialises to other bytes"
    return f"workflow {spec.id}: {len(spec.nodes)} nodes, {len(spec.edges)} edges; {stability}"


def _read(data: bytes, name: str) -> tuple[dict[str, object], WorkflowDefinition]:
    value = read_yaml(data, name=name)
    try:
        document = WorkflowDefinition.model_validate(value)
    except ValidationError as error:
        raise refused(WorkflowRejected, error, name) from None
    found = reference_refusal(document)
    if found is not None:
        raise WorkflowRejected(name, None, *found)
    return value, document
