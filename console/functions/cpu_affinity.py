"""Pin the server process to one processor, because Python runs its threads one at a time."""

from __future__ import annotations

import contextlib
import os
import random

_before: set[int] | None = None


def stay_on_one() -> None:
    """Pin this process, and its later children, to a single processor.

    Only one thread of an interpreter runs at a time. The thread that commits lets the others run
    for each statement it executes; on one processor it continues before they begin; on several
    processors it waits for up to five milliseconds. ``STATEYARD_PROCESSORS=all`` disables this.
    docs/explanation/decisions/one-processor.md has the figures.
    """
    if os.environ.get("STATEYARD_PROCESSORS") == "all" or not hasattr(os, "sched_setaffinity"):
        return
    global _before  # noqa: PLW0603 - one a process
    _before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {random.choice(sorted(_before))})  # noqa: S311 - no secret


def allowed_processors() -> set[int]:
    """Return the processors this process was started with; empty if unknown.

    They are for its children with work of their own, which must not wait for its threads.
    """
    if _before is not None:
        return _before
    return os.sched_getaffinity(0) if hasattr(os, "sched_getaffinity") else set()


def let_use_all(child: int) -> None:
    """Let a child process use all processors that the server was started with."""
    if _before is not None:
        with contextlib.suppress(OSError):  # it has ended
            os.sched_setaffinity(child, _before)
