"""Where a thread stands: its turn, its open response, and what was said in both, each thing once."""

from __future__ import annotations

from collections import Counter

from tasks.land.codex.rows import Row, text

__all__ = ["Said", "Turns"]

_STARTED = {"task_started", "turn_started"}
_CLOSED = {"task_complete", "turn_complete", "turn_aborted"}
_ENTERED = {"EnteredReviewMode", "entered_review_mode"}
_EXITED = {"ExitedReviewMode", "exited_review_mode"}


class Said:
    """Clients write the same words up to three times, as an item and as events, in any order. Whoever comes first with
    words that were said so often is the record of them; the others are its twins."""

    def __init__(self) -> None:
        self._by_side: Counter[tuple[str, str, str]] = Counter()
        self._said: Counter[tuple[str, str]] = Counter()

    def is_new(self, side: str, who: str, texts: list[str]) -> bool:
        """Whether any of the words has not been said before by another side."""
        new = False
        for words in texts:
            words = words.strip()
            self._by_side[side, who, words] += 1
            if self._by_side[side, who, words] > self._said[who, words]:
                self._said[who, words] += 1
                new = True
        return new


class Turns:
    """A thread's turns as its lines tell them."""

    def __init__(self) -> None:
        self.current = ""
        self.call = ""
        self.said = Said()
        self.is_review = False
        self.has_reviewed = False
        self._started: set[str] = set()
        self._reviewers: set[str] = set()
        self._has_tasks = False
        self._is_prompted = False
        self._context = ""

    def enter(self, row: Row, identity: str) -> None:
        """Take in what a line of the thread's own changes before it is read."""
        turn = text(row.payload, "turn_id")
        what = text(row.item, "type") or row.name
        if row.kind == "turn_context":
            self._context_of(turn)
        elif row.kind != "event_msg":
            return
        elif what in _STARTED:
            if self.is_review:
                self._reviewers.add(turn)
                return
            self._has_tasks = True
            self._begin(turn or identity)
        elif what in _ENTERED:
            self.is_review = True
            if turn and turn not in self._started:
                self._has_tasks = True
                self._begin(turn)
        elif what in _EXITED:
            self.is_review, self.has_reviewed = False, True

    def leave(self, row: Row) -> None:
        """Take in what a line changes after it."""
        closes = row.kind == "event_msg" and row.name in _CLOSED
        if closes and not self.is_review and text(row.payload, "turn_id") in ("", self.current):
            self.current, self.call, self.has_reviewed = "", "", False

    def of(self, row: Row) -> str:
        """The turn that a line belongs to, wherever it stands."""
        turn = text(row.payload, "turn_id")
        if row.kind != "event_msg" or not turn or turn in self._reviewers:
            return self.current
        closes = row.name in _CLOSED and not self.is_review
        return turn if turn in self._started or closes else self.current

    def is_reviewers(self, row: Row) -> bool:
        """Whether a line is the reviewer's own, written into the thread that asked for the review."""
        return self.is_review and text(row.item, "type") not in _ENTERED and row.name not in _ENTERED

    def prompted(self, identity: str, side: str, texts: list[str]) -> None:
        """A person's prompt, already said, begins a turn where nothing else does."""
        if not self._has_tasks and (self._is_prompted or not self.current or self.current != self._context):
            self._begin(identity)
            self.said.is_new(side, "user", texts)
        self._is_prompted = True

    def _begin(self, turn: str) -> None:
        self.current, self.call, self.said = turn, "", Said()
        self.has_reviewed = self._is_prompted = False
        self._started.add(turn)

    def _context_of(self, turn: str) -> None:
        if turn and not self._has_tasks and turn != self._context:
            self._begin(turn)
        self._context = turn
