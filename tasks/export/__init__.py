"""Export: a completed session becomes a `.relavium.yaml` scaffold that its author reviews.

`scaffold` is the whole transformation of a Relavium session; `withhold_session` goes before it for sessions of other
agents. `batch` exports conversations of any source: it reads one (`conversation`), finds its turns (`words`,
`exchanges`), asks whether it is over (`completion`), makes a Relavium session of it (`agent_session`) and keeps the
files and their manifest (`session`, `manifest`). `work` is that in a worker's process (`tasks.shards`).
"""

from .scaffold import MAX_TURNS, Scaffold, scaffold, workflow_of
from .withholding import Withheld, withhold_session

__all__ = ["MAX_TURNS", "Scaffold", "Withheld", "scaffold", "withhold_session", "workflow_of"]
