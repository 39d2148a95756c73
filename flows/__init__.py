"""Prefect flows, one module each, and the command line.

Importing the package settles Prefect's environment before Prefect reads it: no usage statistics leave the machine (with
them on, the temporary API also logs "database is locked" at its start), a slow machine gets time to start that API, and
the console shows what sessionmill says. Whatever the caller has set already stands.
"""

import os

_PREFECT_DEFAULTS = {
    "DO_NOT_TRACK": "1",
    "PREFECT_SERVER_ANALYTICS_ENABLED": "false",
    "PREFECT_SERVER_EPHEMERAL_STARTUP_TIMEOUT_SECONDS": "120",
}

for _name, _value in _PREFECT_DEFAULTS.items():
    os.environ.setdefault(_name, _value)
