"""The kinds of file that Claude Code keeps, and the ids it names them by (Claude Code specification, section 1)."""

from __future__ import annotations

import re

__all__ = ["AGENT_ID", "JOURNAL", "MANIFEST", "PREFIXES", "SCRIPT", "SESSION_ID", "SIDECAR", "TRANSCRIPT"]

TRANSCRIPT = "transcript"
SIDECAR = "agent_meta"
JOURNAL = "journal"
MANIFEST = "workflow_manifest"
SCRIPT = "workflow_script"

PREFIXES = {
    TRANSCRIPT: "transcript",
    SIDECAR: "meta",
    JOURNAL: "journal",
    MANIFEST: "manifest",
    SCRIPT: "script",
}
"""What the names of a kind's landed files begin with."""

SESSION_ID = re.compile(r"[0-9a-fA-F]{8}-(?:[0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12}")
AGENT_ID = re.compile(r"a[0-9a-f]{16}")
