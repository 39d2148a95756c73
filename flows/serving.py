"""Serve a flow to a Prefect server on its schedule, with everything as configured.

A served flow is given no parameters, so that what is not configured would fail every one of its runs; it is refused
before it begins.
"""

from __future__ import annotations

import sys
from typing import Any

from flows.console import exit_code, printable
from flows.settings import PREFIX, load_settings
from schemas.errors import ConfigurationRejected, SessionmillError

__all__ = ["serve_flow"]


def serve_flow(flow: Any, cron: str, *needed: str) -> None:
    """Serve `flow` by `cron` until stopped; leaves with exit code 2 and a sentence where a `needed` setting is not."""
    try:
        _check_configured(needed)
    except SessionmillError as error:
        print(f"sessionmill: {printable(str(error))}", file=sys.stderr)
        sys.exit(exit_code(error))
    flow.serve(name="served", cron=cron, parameters={"parameters": {}})


def _check_configured(needed: tuple[str, ...]) -> None:
    settings = load_settings()
    missing = [name for name in needed if not getattr(settings, name)]
    if missing:
        variables = " and ".join(PREFIX + name.upper() for name in missing)
        raise ConfigurationRejected(
            f"configuration: no {' and no '.join(missing)} to serve the flow with — set {variables}"
        )
