"""Find the state in which an execution is, was stopped or timed out, or failed.

The open state is the last entered one without an exit, as on the execution's page. In a Parallel,
the newest branch may have ended while an older one continues:

    1. A is entered, then B.   2. B is left; its branch ends.   3. The execution is stopped: in A.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

from django.db import connection
from django.db.models import OuterRef, Subquery

from console.db.prepared import read_rows
from console.models import Execution, HistoryEvent
from engine import event_types

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Sequence

    from django.db.models import QuerySet

_MOVES = event_types.STATE_ENTRIES | event_types.STATE_EXITS
_LOOKED_AT = 200
"""Maximum number of an execution's newest entries and exits to read."""
_AT_ONCE = 100
_NEWEST = """SELECT * FROM (
    SELECT execution_id, type, state, event_id FROM console_historyevent
    WHERE execution_id = %s AND type IN ({}) ORDER BY event_id DESC LIMIT %s
) AS moves"""


def open_states(numbers: Collection[int]) -> dict[int, tuple[str, int]]:
    """Return execution -> its open state, and the id of the entering event.

    Executions that have entered no state are left out. Most cost one query together.
    """
    if not numbers:
        return {}
    states: dict[int, tuple[str, int]] = {}
    exited: list[int] = []
    rows = read_rows("newest moves", _read_newest_moves, tuple(numbers))
    for number, move, state, event in rows:
        if move in event_types.STATE_ENTRIES:
            states[number] = (state, event)
        elif move is not None:
            exited.append(number)
    for place in range(0, len(exited), _AT_ONCE):
        states |= _behind_exits(exited[place : place + _AT_ONCE])
    return states


def _read_newest_moves(numbers: Sequence[int]) -> QuerySet[Execution, Any]:
    """Return the query of the newest entry or exit of each execution."""
    moves = HistoryEvent.objects.filter(execution=OuterRef("pk"), type__in=_MOVES)
    newest = moves.order_by("-event_id")
    rows = Execution.stored.filter(pk__in=numbers).annotate(
        move=Subquery(newest.values("type")[:1]),
        at=Subquery(newest.values("state")[:1]),
        event=Subquery(newest.values("event_id")[:1]),
    )
    return rows.values_list("pk", "move", "at", "event")


def _behind_exits(numbers: list[int]) -> dict[int, tuple[str, int]]:
    """Return the same for executions whose newest state was left."""
    sql = _NEWEST.format(", ".join(["%s"] * len(_MOVES)))
    values: list[int | str] = []
    for number in numbers:
        values += (number, *_MOVES, _LOOKED_AT)
    moves: dict[int, list[tuple[str, str, int]]] = {}
    with connection.cursor() as cursor:
        cursor.execute(" UNION ALL ".join([sql] * len(numbers)), values)
        for number, *move in cursor.fetchall():
            moves.setdefault(number, []).append(tuple(move))
    states = {number: _newest_open(rows) for number, rows in moves.items()}
    return {number: state for number, state in states.items() if state is not None}


def _newest_open(moves: Iterable[tuple[str, str, int]]) -> tuple[str, int] | None:
    """Return the newest entry without an exit; the newest entry if all have one."""
    exits: Counter[str] = Counter()
    newest: tuple[str, int] | None = None
    for kind, state, event in sorted(moves, key=lambda move: -move[2]):
        if kind in event_types.STATE_EXITS:
            exits[state] += 1
            continue
        newest = newest or (state, event)
        if not exits[state]:
            return state, event
        exits[state] -= 1
    return newest


# -- failures --------------------------------------------------------------------------------------

# An execution that timed out or was aborted as a whole has no such events: it ended in its open
# state.

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
