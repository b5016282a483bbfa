"""Read the rows that a step needs: the run, its messages, its due timers.

Of many executions at once where each statement is a round trip (PostgreSQL): to plan and execute
one statement for thirty executions takes a few times as long as for one.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, NamedTuple

from console import clock
from console.fast_path import rows
from console.statuses import ExecutionStatus
from console.store.db.writer import is_embedded

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

MESSAGES = 100
"""A step takes at most so many; there is another step for the rest."""
_COLUMNS = (
    "SELECT r.version, r.snapshot, r.ready, r.parked, e.status, e.arn, e.definition_id, m.status,"
    " e.map_run_id, e.state_machine_arn, e.project_id, e.parent, e.parent_task"
)
_FROM = (
    " FROM console_runrow r JOIN console_execution e ON e.id = r.execution_id"
    " LEFT JOIN console_statemachine m ON m.id = e.state_machine_id"
)
LOAD = f"{_COLUMNS}{_FROM} WHERE r.execution_id = %s"
_STATUS, _MAP_RUN, _ARN = 7, 8, 9
"""Places in the columns: the status of the machine, the Map Run, the ARN of the machine."""
_INBOX = (
    "SELECT id, kind, body, created_ms FROM console_inboxmessage WHERE execution_id = %s"
    f" ORDER BY id LIMIT {MESSAGES}"
)
_DUE = "SELECT name FROM console_timer WHERE execution_id = %s AND due_ms <= %s ORDER BY due_ms"
_OF_MANY = (
    f"{_COLUMNS},"
    " (SELECT json_agg(json_build_array(i.id, i.kind, i.body, i.created_ms) ORDER BY i.id)::text"
    " FROM (SELECT id, kind, body, created_ms FROM console_inboxmessage"
    f" WHERE execution_id = r.execution_id ORDER BY id LIMIT {MESSAGES}) i),"
    " (SELECT array_agg(t.name::text ORDER BY t.due_ms) FROM console_timer t"
    " WHERE t.execution_id = r.execution_id AND t.due_ms <= %s),"
    f" r.execution_id{_FROM} WHERE r.execution_id = ANY(%s::bigint[])"
)
_MACHINES = "SELECT arn, status FROM console_statemachine WHERE arn IN ({})"
"""For children of Map Runs, whose rows name no machine; a join would cost all others."""


class StepRows(NamedTuple):
    """What was read of an execution. ``run``: a row of ``LOAD``, None if it cannot go on.

    ``messages``: (id, kind, body, epoch milliseconds) of those that came first; ``timers``: the
    names of those that are due.
    """

    run: Sequence[Any] | None = None
    messages: Sequence[Any] = ()
    timers: Sequence[str] = ()


def read_step_rows(execution_ids: Sequence[int]) -> dict[int, StepRows]:
    """Return the rows of each of the executions."""
    now_ms = clock.now_ms()
    if is_embedded():
        read = {number: _read_alone(number, now_ms) for number in execution_ids}
    else:
        read = dict.fromkeys(execution_ids, StepRows()) | _read_together(execution_ids, now_ms)
    above = {
        _machine_of(row.run) for row in read.values() if row.run and row.run[_MAP_RUN] is not None
    }
    if not above:
        return read
    statuses = _statuses(above)
    return {number: _with_status(row, statuses) for number, row in read.items()}


def _read_alone(execution_id: int, now_ms: int) -> StepRows:
    with rows.open_cursor() as cursor:
        cursor.execute(LOAD, [execution_id])
        row = cursor.fetchone()
        if row is None or not _can_go_on(row):
            return StepRows()
        cursor.execute(_INBOX, [execution_id])
        messages = cursor.fetchall()
        cursor.execute(_DUE, [execution_id, now_ms])
        return StepRows(row, messages, [name for (name,) in cursor.fetchall()])


def _read_together(execution_ids: Sequence[int], now_ms: int) -> dict[int, StepRows]:
    with rows.open_cursor() as cursor:
        cursor.execute(_OF_MANY, [now_ms, list(execution_ids)])
        read = cursor.fetchall()
    return {
        number: StepRows(row, json.loads(messages or "[]"), timers or ())
        for *row, messages, timers, number in read
        if _can_go_on(row)
    }


def _can_go_on(row: Sequence[Any]) -> bool:
    return row[4] == ExecutionStatus.RUNNING and not row[3]


def _machine_of(row: Sequence[Any]) -> str:
    """Return the ARN of the machine above ``MACHINE/label``."""
    return str(row[_ARN]).partition("/")[0]


def _with_status(found: StepRows, statuses: dict[str, str]) -> StepRows:
    """Return the rows of a child of a Map Run with the status of the machine above it."""
    if found.run is None or found.run[_MAP_RUN] is None:
        return found
    row = list(found.run)
    row[_STATUS] = statuses.get(_machine_of(row))
    return found._replace(run=row)


def status_above(child_arn: str) -> str | None:
    """Return the status of the machine above ``MACHINE/label``, None if it is gone."""
    arn = child_arn.partition("/")[0]
    return _statuses([arn]).get(arn)


def _statuses(arns: Iterable[str]) -> dict[str, str]:
    names = list(arns)
    with rows.open_cursor() as cursor:
        cursor.execute(_MACHINES.format(",".join(["%s"] * len(names))), names)
        return dict(cursor.fetchall())
