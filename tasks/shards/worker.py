"""A shard in a process of its own: `python -m tasks.shards.worker`, spoken to over its standard streams.

Assembly is work for a processor, so threads would neither run side by side nor stop when told. A process does both, and
may be killed at any moment: nothing half-written is ever visible.

One JSON line on standard input is the order; the stream then stays open, and its end means that whoever asked is gone,
so the worker stops too. Each name is answered by one JSON line on standard output, in the order asked; news of work
that takes long comes in lines before it.
"""

from __future__ import annotations

import base64
import gc
import os
import pickle
import sys
import threading
import traceback
from importlib import import_module
from typing import Any, BinaryIO

from pydantic import BaseModel, ConfigDict

from schemas.errors import SessionmillError
from tasks.shards.work import Outcome, Tell, Work

__all__ = ["Answer", "Order", "main"]


class Order(BaseModel):
    """Which names, and what to do with them: the class of a `Work`, as ``module:name``, and its value in JSON."""

    model_config = ConfigDict(frozen=True)

    names: tuple[str, ...]
    kind: str
    work: str

    @classmethod
    def of(cls, work: Work[Any], names: tuple[str, ...]) -> Order:
        kind = type(work)
        return cls(names=names, kind=f"{kind.__module__}:{kind.__qualname__}", work=work.model_dump_json())

    def to_work(self) -> Work[Outcome]:
        module, _, name = self.kind.partition(":")
        kind: type[Work[Outcome]] = getattr(import_module(module), name)
        return kind.model_validate_json(self.work)


class Answer(BaseModel):
    """One name's outcome, news of it, or the error that ended the shard (pickled: errors keep their fields across
    processes). Outcome and news are JSON texts."""

    outcome: str | None = None
    news: str | None = None
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
    work = order.to_work()

    def say(answer: Answer) -> None:
        answers.write(answer.model_dump_json().encode() + b"\n")
        answers.flush()

    for name in order.names:
        answer = _answer(work, name, lambda news: say(Answer(news=news.model_dump_json())))
        say(answer)
        if answer.raised is not None:
            break
    # Not a return: the thread that waits for the end of standard input would hold up the interpreter's own end.
    os._exit(0)


def _answer(work: Work[Outcome], name: str, tell: Tell) -> Answer:
    try:
        outcome = work.do(name, tell)
    except SessionmillError as error:
        return Answer(raised=base64.b64encode(pickle.dumps(error)).decode())
    except Exception as error:
        # A fault of ours must not take the shard's other sessions with it; the traceback goes to the log.
        traceback.print_exc()
        outcome = work.failed(name, f"{type(error).__name__}: {error}")
    assert isinstance(outcome, BaseModel)
    return Answer(outcome=outcome.model_dump_json())


def _leave_at_end_of(stream: BinaryIO) -> None:
    while stream.read(4096):
        pass
    os._exit(1)


if __name__ == "__main__":
    main()
