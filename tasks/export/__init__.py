"""Export: a completed session becomes a `.relavium.yaml` scaffold that its author reviews.

`scaffold` is the whole transformation; `withhold_session` goes before it for sessions of other agents.
"""

from .scaffold import MAX_TURNS, Scaffold, scaffold, workflow_of
from .withholding import Withheld, withhold_session

__all__ = ["MAX_TURNS", "Scaffold", "Withheld", "scaffold", "withhold_session", "workflow_of"]
