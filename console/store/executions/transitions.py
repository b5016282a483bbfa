"""Count state transitions as AWS does."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from console.models import Execution


def count_transitions(moves: int, redrives: int, ends: int) -> int:
    """Return the number of state transitions by AWS's rules, for one execution or many.

    ``moves``: entered states, and retries of calls, Maps and Parallels; ``redrives``: each counts
    as one; ``ends``: the number of ended executions, each of which counts as one even if it was
    redriven. Pages show this number, which AWS would charge.
    """
    return moves + redrives + ends


def transitions_of(execution: Execution, moves: int) -> int:
    """Return the state transitions of an execution, from its state entries and retries."""
    ended = execution.status != "RUNNING" or execution.redrive_count > 0
    return count_transitions(moves, execution.redrive_count, int(ended))
