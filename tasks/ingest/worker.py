"""A shard in a process of its own: `python -m tasks.ingest.worker`, spoken to over its standard streams.

Assembly is work for a processor, so threads would neither run side by side nor stop when told. A process does both, and
may be killed at any moment: nothing half-written is ever visible.

One JSON line on standard input is the order; the stream then stays open, and its end means that whoever asked is gone,
so the worker stops too. Each session is answered by one JSON line on standard output, in the order asked.
"""

from __future__ import annotations

import base64
import gc
import os
import pickle
import sys
import threading
import traceback
from functools import cache
from typing import BinaryIO

from pydantic import BaseModel, ConfigDict

from schemas.errors import SessionmillError
from storage.objects import ObjectStore, StoreSettings, open_store
from storage.zone import Zone
from tasks.export.batch import export_one
from tasks.export.manifest import Manifest, read_manifest
from tasks.export.outcome import ExportOrder, ExportOutcome
from tasks.ingest.outcome import IngestOptions, SessionOutcome
from tasks.ingest.session import ingest_session
from tasks.verify import verify_session
from tasks.verify.outcome import VerifyOutcome, outcome_of

__all__ = ["Answer", "Order", "main"]


class Order(BaseModel):
    """Which sessions of which zone, and what to do with them: ingest by `options`, export, or else verify."""

    model_config = ConfigDict(frozen=True)

    zone: str
    store: StoreSettings
    sessions: tuple[str, ...]
    options: IngestOptions | None = None
    export: ExportOrder | None = None
    verify: bool = False


class Answer(BaseModel):
    """One session's outcome, or the error that ended the shard (pickled: errors keep their fields across processes)."""

    outcome: SessionOutcome | None = None
    exported: ExportOutcome | None = None
    verified: VerifyOutcome | None = None
    raised: str | None = None

    def error(self) -> SessionmillError | None:
        """The error that ended the shard, if one did."""
        if self.raised is None:
            return None
        error = pickle.loads(base64.b64decode(self.raised))
        return error if isinstance(error, SessionmillError) else None


def main() -> None:
    """Do one order and leave."""
    # Whatever a library prints must not end up between the answers.
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    # Sessions are hundreds of thousands of small values without cycles: the collector would walk them for nothing.
    gc.set_threshold(50_000)
    order = Order.model_validate_json(sys.stdin.buffer.readline())
    threading.Thread(target=_leave_at_end_of, args=(sys.stdin.buffer,), daemon=True).start()
    for session in order.sessions:
        answer = _answer(order, session)
        answers.write(answer.model_dump_json().encode() + b"\n")
        answers.flush()
        if answer.raised is not None:
            break
    # Not a return: the thread that waits for the end of standard input would hold up the interpreter's own end.
    os._exit(0)


def _answer(order: Order, session: str) -> Answer:
    try:
        zone = Zone(_open(order.zone, order.store))
        if order.export is not None:
            return Answer(exported=_export(zone, session, order.export, order.store))
        if order.verify:
            return Answer(verified=outcome_of(verify_session(zone, session)))
        assert order.options is not None
        return Answer(outcome=ingest_session(zone, session, order.options))
    except SessionmillError as error:
        return Answer(raised=base64.b64encode(pickle.dumps(error)).decode())
    except Exception as error:
        # A fault of ours must not take the shard's other sessions with it; the traceback goes to the log.
        traceback.print_exc()
        failure = f"{type(error).__name__}: {error}"
        if order.export is not None:
            return Answer(exported=ExportOutcome(conversation=session, state="failed", reason=failure))
        if order.verify:
            return Answer(verified=VerifyOutcome(session=session, failure=failure))
        return Answer(outcome=SessionOutcome(session=session, failure=failure))


def _export(zone: Zone, conversation: str, order: ExportOrder, settings: StoreSettings) -> ExportOutcome:
    exports, manifest = _exports(order.to, settings)
    return export_one(zone, exports, conversation, order.options, manifest)


@cache
def _exports(url: str, settings: StoreSettings) -> tuple[ObjectStore, Manifest]:
    exports = _open(url, settings)
    return exports, read_manifest(exports)


@cache
def _open(url: str, settings: StoreSettings) -> ObjectStore:
    return open_store(url, settings=settings)


def _leave_at_end_of(stream: BinaryIO) -> None:
    while stream.read(4096):
        pass
    os._exit(1)


if __name__ == "__main__":
    main()
