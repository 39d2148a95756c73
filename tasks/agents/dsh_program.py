"""The process in which the DeepSeek Harness SDK works: a task on standard input, events on standard output.

The key and the address of the model stand in its environment, which its runtime inherits. Prints a JSON line for the
session's id, for each event of it and of its children, and for a failure.
"""

from __future__ import annotations

import json
import signal
import sys
from typing import Any, Final, NoReturn

FLUSH_SECONDS: Final = 5.0


def main() -> int:
    from deepseek_harness import DeepSeekHarness, Notification  # type: ignore[import-untyped]

    # Told to end, it lets the runtime write down what it has: who leaves first has it killed.
    signal.signal(signal.SIGTERM, _leave)
    task: dict[str, Any] = json.load(sys.stdin)

    def tell(notification: Notification) -> None:
        if notification.method == "session.event":
            event = dict(notification.payload.get("event") or {})
            # The stream repeats the message piece by piece.
            event["data"] = {name: value for name, value in (event.get("data") or {}).items() if name != "stream"}
            say({"event": event, "of": notification.payload.get("sessionId")})

    try:
        with DeepSeekHarness(**_options(task["options"])) as harness:
            session = harness.start_session() if task["resume"] is None else harness.resume_session(task["resume"])
            say({"session": session.id})
            session.run(task["prompt"], on_notification=tell)
    except Exception as error:
        say({"error": f"{type(error).__name__}: {error}"})
        return 1
    return 0


def _options(given: dict[str, Any]) -> dict[str, Any]:
    options = {name: value for name, value in given.items() if value is not None}
    return options | {"patches": tuple(options["patches"]), "shutdown_timeout_seconds": FLUSH_SECONDS}


def _leave(number: int, frame: object) -> NoReturn:
    raise SystemExit(128 + number)


def say(value: dict[str, Any]) -> None:
    print(json.dumps(value), flush=True)


if __name__ == "__main__":
    sys.exit(main())
