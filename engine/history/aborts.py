"""Tell which line of control an abort belongs to.

Where a line of control fails, all others of its Parallel or Map are aborted, and each of these
events points back at the failure. Of a Parallel the state tells the branch. Of a Map it does not:

1. Iteration 0 fails in event 9: ``MapIterationFailed``, then ``TaskStateAborted`` for its own Task.
2. Iteration 1 is aborted: ``MapIterationAborted`` with its index, then ``TaskStateAborted``, which
   points at event 9 and names the same state.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from engine.history.visits import ControlLine


class AbortedIteration:
    """The iteration whose states the next aborts are about."""

    def __init__(self) -> None:
        """Begin before any failure."""
        self._failure = 0
        self._line: ControlLine | None = None

    def begin(self, failure: int, home: ControlLine, owner: str, index: int) -> None:
        """Note the abort of an iteration of the Map ``owner`` that runs on a line of control.

        ``failure``: the event that the abort points at.
        """
        attempt = (home.attempts or {}).get(owner)
        self._failure = failure
        self._line = attempt.lines.get(index) if attempt is not None else None

    def line_near(self, failure: int, failing: ControlLine) -> ControlLine:
        """Return the line that an abort is on or near to; ``failing``: the line that failed."""
        return self._line if self._line is not None and failure == self._failure else failing
