"""Which processor does a server run on, whose threads take turns anyway?"""

from __future__ import annotations

import os
import random


def stay_on_one() -> None:
    """Keep this process, and what it starts later, to one of the processors it may use.

    Of the threads of one interpreter one runs at a time. The thread that commits lets the others
    run for each statement it executes; on one processor it goes on before they begin, on several
    it has lost its turn, for up to five milliseconds. ``STEPYARD_PROCESSORS=all`` leaves it.
    """
    if os.environ.get("STEPYARD_PROCESSORS") == "all" or not hasattr(os, "sched_setaffinity"):
        return
    allowed = sorted(os.sched_getaffinity(0))
    os.sched_setaffinity(0, {random.choice(allowed)})  # noqa: S311 - nobody must not guess it
