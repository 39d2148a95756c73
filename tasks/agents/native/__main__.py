"""``python -m tasks.agents.native``: see `tasks.agents.native.program`."""

import sys

from tasks.agents.native.program import main

sys.exit(main())
