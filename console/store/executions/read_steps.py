"""Read the rows that a step needs: the run, its messages, its due timers.

One statement reads many executions at once. On PostgreSQL a statement for thirty executions takes a
few times as long as for one; on SQLite it needs one call of the database instead of ninety, in
which other threads could interrupt.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, NamedTuple

from console.db import clock, rows
from console.db.writer import is_embedded
from console.statuses import ExecutionStatus

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

MESSAGES = 100
"""Maximum number of messages of a step; the next step reads further messages."""
_COLUMNS = (
    "SELECT r.version, r.snapshot, r.ready, r.parked, e.status, e.arn, e.definition_id, m.status,"
    " e.map_run_id, e.state_machine_arn, e.project_id, e.parent, e.parent_task"
)
_JOINED = (
    " JOIN console_execution e ON e.id = r.execution_id"
    " LEFT JOIN console_statemachine m ON m.id = e.state_machine_id"
)
_FROM = f" FROM console_runrow r{_JOINED}"
LOAD = f"{_COLUMNS}{_FROM} WHERE r.execution_id = %s"
_STATUS, _MAP_RUN, _ARN = 7, 8, 9
"""Places in the columns: the status of the machine, the Map Run, the ARN of the machine."""
_MESSAGES = (
    "(SELECT id, kind, body, created_ms FROM console_inboxmessage"
    f" WHERE execution_id = r.execution_id ORDER BY id LIMIT {MESSAGES})"
)
_DUE = "console_timer t WHERE t.execution_id = r.execution_id AND t.due_ms <= %s"


def _select(collect: str, array: str, source: str) -> str:
    """Return the statement for many executions, with the database's names of JSON functions."""
    messages = f"{collect}({array}(i.id, i.kind, i.body, i.created_ms))"
    timers = f"{collect}({array}(t.due_ms, t.name))"
    return (
        f"{_COLUMNS}, (SELECT CAST({messages} AS text) FROM {_MESSAGES} i),"
        f" (SELECT CAST({timers} AS text) FROM {_DUE}),"
        f" r.execution_id{source}"
    )


_OF_MANY = _select(
    "json_agg",
    "json_build_array",
    # a kept plan for "= ANY" could read the whole index of one of the tables
    " FROM unnest(%s::bigint[]) AS asked(number)"
    f" JOIN console_runrow r ON r.execution_id = asked.number{_JOINED}",
)
_OF_MANY_EMBEDDED = _select(
    "json_group_array",
    "json_array",
    f"{_FROM} WHERE r.execution_id IN (SELECT value FROM json_each(%s))",
)
_MACHINES = "SELECT arn, status FROM console_statemachine WHERE arn IN ({})"
"""For children of Map Runs, whose rows name no machine; a join would cost all others."""


class StepRows(NamedTuple):
    """The rows of an execution. ``run``: a row of ``LOAD``, None if it cannot continue.

    ``messages``: (id, kind, body, epoch milliseconds) of the oldest ones; ``timers``: the names of
    the due ones.
    """

    run: Sequence[Any] | None = None
    messages: Sequence[Any] = ()
    timers: Sequence[str] = ()


def read_step_rows(execution_ids: Sequence[int]) -> dict[int, StepRows]:
    """Return the rows of each of the executions."""
    read = dict.fromkeys(execution_ids, StepRows()) | _read(execution_ids, clock.now_ms())
    above = {
        _machine_of(row.run) for row in read.values() if row.run and row.run[_MAP_RUN] is not None
    }
    if not above:
        return read
    statuses = _statuses(above)
    return {number: _with_status(row, statuses) for number, row in read.items()}


def _read(execution_ids: Sequence[int], now_ms: int) -> dict[int, StepRows]:
    numbers = list(execution_ids)
    if is_embedded():
        read = rows.fetch_rows(_OF_MANY_EMBEDDED, [now_ms, str(numbers)])
    else:
        read = rows.fetch_rows(_OF_MANY, [now_ms, numbers], keep_plan=True)
    return {
        number: StepRows(row, _listed(messages), [name for _, name in _listed(timers)])
        for *row, messages, timers, number in read
        if _can_go_on(row)
    }


def _listed(text: str | None) -> list[Any]:
    """Return the entries of a JSON array in their order: by id, or by due time."""
    return [] if text is None or text == "[]" else sorted(json.loads(text))


def _can_go_on(row: Sequence[Any]) -> bool:
    return row[4] == ExecutionStatus.RUNNING and not row[3]


def _machine_of(row: Sequence[Any]) -> str:
    """Return the machine's ARN in ``MACHINE/label``."""
    return str(row[_ARN]).partition("/")[0]


def _with_status(stored: StepRows, statuses: dict[str, str]) -> StepRows:
    """Add the machine's status to the rows of a Map Run's child."""
    if stored.run is None or stored.run[_MAP_RUN] is None:
        return stored
    row = list(stored.run)
    row[_STATUS] = statuses.get(_machine_of(row))
    return stored._replace(run=row)


def status_above(child_arn: str) -> str | None:
    """Return the status of the machine in ``MACHINE/label``, None if it is gone."""
    arn = child_arn.partition("/")[0]
    return _statuses([arn]).get(arn)


def _statuses(arns: Iterable[str]) -> dict[str, str]:
    names = list(arns)
    with rows.open_cursor() as cursor:
        cursor.execute(_MACHINES.format(",".join(["%s"] * len(names))), names)
        return dict(cursor.fetchall())
