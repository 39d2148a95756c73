"""References in a workflow's templates, and where a secret would reach a model or a person.

A template field may hold ``{{ inputs.name }}``, ``{{ ctx.key }}``, ``{{ secrets.name }}`` and
``{{ run.outputs["node"] }}``, with filters after ``|``. Two rules are checked on the text alone, as Relavium's parser
does (Relavium notes, section 3): a context value is resolved before any node runs, so it may not read a node's output;
and no secret, nor a context value made from one, may stand in the text of an agent or a human gate.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from schemas._relavium_refusals import Refusal
from schemas.relavium_agent import Agent
from schemas.relavium_nodes import AgentNode, HumanGateNode
from schemas.relavium_workflow import WorkflowDefinition

__all__ = ["reference_refusal", "references"]

_NODE_OUTPUT = re.compile(r"""run\.outputs\[\s*(?:'[^'"]*'|"[^'"]*")\s*\]""")
_NAMED = re.compile(r"(inputs|ctx|secrets)\.([A-Za-z0-9_-]+)")
_MARKS = re.compile(r"""["'\[\]()|\\]|\}\}""")
_OUTPUTS = "run.outputs"


def references(template: str) -> list[str]:
    """What the template reads, in order: ``inputs.name``, ``ctx.key``, ``secrets.name`` or ``run.outputs``; anything
    else between braces is left out.
    """
    found = []
    position = 0
    while (start := template.find("{{", position)) >= 0:
        head_end, end = _closed(template, start + 2)
        if end < 0:
            break
        head = template[start + 2 : head_end].strip()
        if _NODE_OUTPUT.match(head):
            found.append(_OUTPUTS)
        elif named := _NAMED.match(head):
            found.append(f"{named[1]}.{named[2]}")
        position = end
    return found


def reference_refusal(document: WorkflowDefinition) -> Refusal | None:
    """The first reference that Relavium's parser refuses: its rule, its field and why."""
    spec = document.workflow
    for place, entry in enumerate(spec.context or []):
        if _OUTPUTS in references(entry.value):
            detail = "reads a node's output, but is resolved before any node runs"
            return "node_output", f"workflow.context.{place}.value", detail
    tainted = _tainted(document)
    for field, template in _texts(document):
        for name in references(template):
            if name in tainted or name.startswith("secrets."):
                return "secret_reference", field, f"{name} would reach a model or a person"
    return None


def _closed(template: str, start: int) -> tuple[int, int]:
    """Where the reference's head ends (at its first filter, or with it) and where the text after it begins; (-1, -1)
    when it is not closed. Quotes and brackets hide what is in them.
    """
    quote = ""
    depth = 0
    head_end = -1
    position = start
    while (mark := _MARKS.search(template, position)) is not None:
        position = mark.end()
        sign = mark[0]
        if sign == "\\":
            # Outside quotes a backslash is a letter like any other.
            position += bool(quote)
        elif quote:
            if sign == "}}":
                position = mark.start() + 1
            quote = "" if sign == quote else quote
        elif sign in "\"'":
            quote = sign
        elif sign in "[(":
            depth += 1
        elif sign in "])":
            depth = max(0, depth - 1)
        elif depth == 0 and sign == "|":
            head_end = mark.start() if head_end < 0 else head_end
        elif depth == 0 and sign == "}}":
            return (mark.start() if head_end < 0 else head_end), position
        elif sign == "}}":
            position = mark.start() + 1
    return -1, -1


def _tainted(document: WorkflowDefinition) -> set[str]:
    """Inputs and context values that are secrets or are made from one."""
    readers: dict[str, list[str]] = {}
    tainted = {f"inputs.{item.name}" for item in document.workflow.inputs or [] if item.type == "secret"}
    for entry in document.workflow.context or []:
        for name in references(entry.value):
            readers.setdefault(name, []).append(f"ctx.{entry.key}")
    todo = [*tainted, *(name for name in readers if name.startswith("secrets."))]
    while todo:
        for reader in readers.get(todo.pop(), []):
            if reader not in tainted:
                tainted.add(reader)
                todo.append(reader)
    return tainted


def _texts(document: WorkflowDefinition) -> Iterator[tuple[str, str]]:
    """Every text that a model or a person gets to see, by its field."""
    spec = document.workflow
    for place, agent in enumerate(spec.agents or []):
        if isinstance(agent, Agent):
            yield f"workflow.agents.{place}.system_prompt", agent.system_prompt
    for place, node in enumerate(spec.nodes):
        if isinstance(node, AgentNode):
            fields = {"prompt_template": node.prompt_template, "system_prompt_append": node.system_prompt_append}
        elif isinstance(node, HumanGateNode):
            fields = {"assignee": node.assignee, "message_template": node.message_template}
        else:
            continue
        for field, template in fields.items():
            if template:
                yield f"workflow.nodes.{place}.{field}", template
