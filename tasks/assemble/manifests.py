"""Provider body manifests: the `provider_body/1` documents that say what a landed request or response is (session-flow
specification, "Provider bodies").
"""

from __future__ import annotations

from typing import NamedTuple

import msgspec

from schemas.session_data import Part

from .changes import document_of

__all__ = ["BodyManifest", "body_manifest"]

_SCHEMA = "provider_body/1"


class BodyManifest(NamedTuple):
    """role: request or response. request, previous: ids of the request and of the one before it, "" when unknown."""

    role: str
    request: str
    previous: str


class _Document(msgspec.Struct):
    schema: str = ""
    role: str = ""
    request: str = ""
    previous_request: str = ""


def body_manifest(part: Part) -> BodyManifest | None:
    """The manifest that a data part holds, None when it holds something else."""
    document = document_of(part, _Document, _SCHEMA)
    if document is None or document.schema != _SCHEMA:
        return None
    return BodyManifest(document.role, document.request, document.previous_request)
