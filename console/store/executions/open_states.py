"""Find the state in which an execution is, or was when it was aborted or timed out.

It is the last entered state without an exit, as on the execution's page. In a Parallel, the newest
branch may have ended while an older one continues:

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
