"""Find the states in which executions failed, from the last events of their histories.

An execution that timed out or was aborted as a whole has no such event: it ended in its open state
(``open_states``).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.db import connection

from console.store.executions.open_states import open_states

if TYPE_CHECKING:
    from collections.abc import Sequence

_OUTER = ("ParallelStateFailed", "MapStateFailed", "MapIterationFailed", "MapRunFailed")
# The event that ended an execution, and the three before it on its line of control.
_WHERE = """
SELECT r.execution_id, a.type, a.state, a.event_id, b.type, b.state, b.event_id,
    c.type, c.state, c.event_id
FROM console_runrow r
JOIN console_historyevent e ON e.execution_id = r.execution_id AND e.event_id = r.next_event - 1
LEFT JOIN console_historyevent a ON a.execution_id = e.execution_id AND a.event_id = e.previous
LEFT JOIN console_historyevent b ON b.execution_id = e.execution_id AND b.event_id = a.previous
LEFT JOIN console_historyevent c ON c.execution_id = e.execution_id AND c.event_id = b.previous
WHERE r.execution_id IN ({})
"""


def failed_states(numbers: Sequence[int]) -> dict[int, str]:
    """Return execution -> the innermost failed state."""
    states = {number: state for number, (state, _) in _failures(numbers).items()}
    ended_outside = [number for number, state in states.items() if not state]
    return states | {number: state for number, (state, _) in open_states(ended_outside).items()}


def failing_events(numbers: Sequence[int]) -> dict[int, int]:
    """Return execution -> the id of the event of its innermost failure."""
    return {number: event for number, (_, event) in _failures(numbers).items()}


def _failures(numbers: Sequence[int]) -> dict[int, tuple[str, int]]:
    if not numbers:
        return {}
    marks = ", ".join(["%s"] * len(numbers))
    with connection.cursor() as cursor:
        cursor.execute(_WHERE.format(marks), list(numbers))
        return {row[0]: _innermost(row[1:]) for row in cursor.fetchall()}


def _innermost(events: Sequence[Any]) -> tuple[str, int]:
    """Return the innermost failed state and its event, skipping failures of outer states."""
    state, event = "", 0
    for kind, name, number in zip(events[::3], events[1::3], events[2::3], strict=True):
        state, event = name or state, number or event
        if kind not in _OUTER:
            break
    return state, event
