"""Find the kinds of waiting work by one statement, before a sweep reads their rows.

The sweep then reads the rows of these kinds only: an idle server makes one statement a second
instead of thirty. Each condition is at least as wide as that of the sweep.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from console.db import clock, rows
from console.statuses import (
    BulkJobStatus,
    DeliveryStatus,
    MachineStatus,
    MapRunStatus,
    TaskStatus,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

_NEXT_TASK = (
    "SELECT 1 FROM console_taskrow WHERE status = '{}' ORDER BY status, kind, scheduled_ms LIMIT 1"
)
"""A query that uses an index because of its order: PostgreSQL may read the whole table for a plain
EXISTS.
"""
_WAITING = f"status = '{DeliveryStatus.WAITING}' AND next_ms <= %(now)s"
_KINDS = {
    # a paused execution has nothing to do, whatever waits for its resume
    "messages": (
        "EXISTS (SELECT 1 FROM console_inboxmessage message WHERE NOT EXISTS"
        " (SELECT 1 FROM console_pause pause WHERE pause.execution_id = message.execution_id))"
    ),
    "runs": "EXISTS (SELECT 1 FROM console_runrow WHERE ready AND parked = '')",
    "timers": "EXISTS (SELECT 1 FROM console_timer WHERE due_ms <= %(until)s)",
    "deadlines": " OR ".join(
        f"EXISTS (SELECT 1 FROM console_taskrow WHERE {kind}_due_ms <= %(until)s)"
        for kind in ("timeout", "heartbeat", "look")
    ),
    "tasks": " OR ".join(
        f"({_NEXT_TASK.format(status)}) IS NOT NULL"
        for status in (TaskStatus.SCHEDULED, TaskStatus.STARTED)
    ),
    "map_runs": f"EXISTS (SELECT 1 FROM console_maprun WHERE status = '{MapRunStatus.RUNNING}')",
    "children": "EXISTS (SELECT 1 FROM console_runrow WHERE children_end)",
    "bulk_jobs": f"EXISTS (SELECT 1 FROM console_bulkjob WHERE status = '{BulkJobStatus.RUNNING}')",
    "deletions": (
        f"EXISTS (SELECT 1 FROM console_statemachine WHERE status = '{MachineStatus.DELETING}')"
    ),
    "events": (
        "EXISTS (SELECT 1 FROM console_outboxevent WHERE NOT routed)"
        f" OR EXISTS (SELECT 1 FROM console_delivery WHERE status = '{DeliveryStatus.SENDING}')"
        f" OR EXISTS (SELECT 1 FROM console_delivery WHERE {_WAITING})"
        " OR EXISTS (SELECT 1 FROM console_eventrule"
        " WHERE next_ms <= %(now)s OR due_ms <= %(now)s)"
    ),
}
_EPOCH = "COALESCE((SELECT value FROM console_serverfact WHERE name = 'epoch'), '0')"


class OpenWork(NamedTuple):
    """Whether rows of each kind of work may exist; ``epoch``: the database's."""

    messages: bool
    runs: bool
    timers: bool
    deadlines: bool
    tasks: bool
    map_runs: bool
    children: bool
    bulk_jobs: bool
    deletions: bool
    events: bool
    epoch: str


_SELECT = f"SELECT {', '.join(f'({_KINDS[kind]})' for kind in OpenWork._fields[:-1])}, {_EPOCH}"


def find_work_and_values(
    horizon_ms: int, expressions: Sequence[str]
) -> tuple[OpenWork, tuple[Any, ...]]:
    """Look for work, and return also the values of SQL ``expressions``, by the same statement.

    Timers and deadlines count as work if they are due within ``horizon_ms``.
    """
    now_ms = clock.now_ms()
    text = ", ".join([_SELECT, *(f"({expression})" for expression in expressions)])
    for name, value in (("%(now)s", now_ms), ("%(until)s", now_ms + horizon_ms)):
        text = text.replace(name, str(value))
    with rows.open_cursor() as cursor:
        cursor.execute(text)
        row = cursor.fetchone()
    count = len(OpenWork._fields) - 1
    work = OpenWork._make([*map(bool, row[:count]), row[count]])
    return work, tuple(row[count + 1 :])
