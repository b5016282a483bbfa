"""Apply the engine's commands in the step's commit: write tasks, timers and the end."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import engine
from console import arns
from console.db import clock, rows, signals
from console.db.rows import Statement, storable
from console.statuses import DueKind, Topic
from console.store.events import outbox
from console.store.executions import redrive
from console.store.state import step_rows
from console.store.state.caches import Belongs
from console.store.tasks import jobs, schedule

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from console.models import Execution
    from console.store.machines.activity_limits import Limits

_BELONGS = "SELECT map_run_id, project_id, parent, parent_task FROM console_execution WHERE id = %s"
_FINISH = Statement(
    40,
    "UPDATE console_execution SET status = %s, output = %s, error = %s, cause = %s, stop_ms = %s"
    " WHERE id = %s AND status = 'RUNNING'",
    ("text", "text", "text", "text", "bigint", "bigint"),
    key=(5,),
    returning="id",
    owns=True,
)
_EDIT = "execution_id, event_id, at_ms, state, what, by, before, after"
_ENDED = ("succeeded", "failed", "timed_out", "aborted")
_COUNT = Statement(
    80,
    f"UPDATE console_maprun SET {', '.join(f'{name} = {name} + %s' for name in _ENDED)}"
    " WHERE id = %s",
    (*["integer"] * len(_ENDED), "bigint"),
    merged="UPDATE console_maprun m SET "
    + ", ".join(f"{name} = m.{name} + ended.c{place}" for place, name in enumerate(_ENDED))
    + " FROM (SELECT "
    + ", ".join(f"sum(c{place})::integer AS c{place}" for place in range(len(_ENDED)))
    + ", c4 FROM {given} GROUP BY c4 ORDER BY c4) ended WHERE m.id = ended.c4",
)
"""Last of a transaction: it is the only row that all children of a Map Run write."""
_LEFT = tuple(
    Statement(order, f"DELETE FROM {table} WHERE execution_id = %s", ("bigint",))
    for order, table in ((71, "console_timer"), (72, "console_inboxmessage"))
)


class Fenced(Exception):
    """Another process committed a step of this execution first; nothing was written."""


def apply_commands(
    execution_id: int,
    arn: str,
    commands: Sequence[engine.Command],
    belongs: Belongs | None = None,
    row: Execution | None = None,
    limits: Mapping[str, Limits] | None = None,
) -> None:
    """Apply the engine's commands (inside a transaction).

    ``belongs``: the owners of the execution; ``row``: its row, for the event of its end;
    ``limits``: the time limits of the activities in its commands. Omitted values are read when
    needed.
    """
    now_ms = clock.now_ms()
    tasks = [command for command in commands if isinstance(command, engine.RunTask)]
    if tasks:
        schedule.schedule_tasks(execution_id, arn, tasks, now_ms, limits)
    step_rows.set_timers(execution_id, commands)
    for command in commands:
        match command:
            case engine.CancelTimer(timer=name):
                step_rows.drop_timers(execution_id, [name])
            case engine.CancelTask(task=task):
                schedule.close_task(execution_id, task, now_ms)
                jobs.publish_cancelled(execution_id, task)
            case engine.AnsweredTask(task=answered):
                schedule.record_answered(execution_id, arn, answered, now_ms)
            case engine.NoteEdit():
                _note_edit(execution_id, command, now_ms)
            case engine.RedriveMapRun(task=task):
                redrive.reopen_map_run(execution_id, task)
            case engine.Finish():
                _finish(execution_id, command, now_ms)
                belongs = belongs or _belongs_of(execution_id)
                publish_end(execution_id, arn, command, belongs, row)


def _note_edit(execution_id: int, edit: engine.NoteEdit, now_ms: int) -> None:
    """Store a user's action on a line of control at a breakpoint, or a fault that struck."""
    texts = (storable(text) for text in (edit.state, edit.what, edit.by, edit.before, edit.after))
    values = (execution_id, edit.event, now_ms, *texts)
    rows.append("console_debugedit", _EDIT, [values])


def end_of_new(commands: Sequence[engine.Command]) -> engine.Finish | None:
    """Return how a new execution has ended, if it has no other commands; else None.

    Its row can then be inserted with the end: it has no task, timer or message.
    """
    match commands:
        case [engine.Finish() as finish]:
            return finish
        case _:
            return None


def end_columns(finish: engine.Finish) -> dict[str, Any]:
    """Return the columns for the end of an execution."""
    return {
        "status": finish.status,
        "output": finish.output,
        "error": None if finish.error is None else storable(finish.error),
        "cause": None if finish.cause is None else storable(finish.cause),
        "stop_ms": finish.stop_ms,
    }


def _belongs_of(execution_id: int) -> Belongs:
    return Belongs(*rows.fetch_row(_BELONGS, [execution_id]))


def _finish(execution_id: int, finish: engine.Finish, now_ms: int) -> None:
    """Write the end once, and delete the remaining timers and messages."""
    if rows.change(_FINISH, [(*end_columns(finish).values(), execution_id)]) != 1:
        raise Fenced
    # The tasks come first: a thread that closes one now holds its row until its message is
    # posted, and the messages are deleted below.
    schedule.close_tasks(execution_id, now_ms)
    for statement in _LEFT:
        rows.change(statement, [(execution_id,)])


def publish_end(
    execution_id: int,
    arn: str,
    finish: engine.Finish,
    belongs: Belongs,
    row: Execution | None = None,
) -> None:
    """Publish the end of an execution: signals, and its event in the outbox."""
    if row is not None:
        for name, value in end_columns(finish).items():
            setattr(row, name, value)
    outbox.put_execution_ended(execution_id, belongs.project, row)
    signals.publish((Topic.ENDED,), execution_id)
    if belongs.map_run is not None:
        _count_child(belongs.map_run, finish.status)
    if belongs.parent is not None and belongs.parent_task is not None:
        # the parent waits for this execution: it looks now, not later
        signals.publish_due(clock.now_ms(), DueKind.LOOK, belongs.parent, belongs.parent_task)
    if arns.is_express(arn):  # a synchronous caller may wait for it
        signals.publish((Topic.ANSWERED, execution_id))


def _count_child(map_run_id: int, status: str) -> None:
    """Count the end of a child execution of a Map Run, in the transaction that ends it."""
    column = status.lower()
    rows.change(_COUNT, [(*(int(name == column) for name in _ENDED), map_run_id)])
    signals.publish((Topic.MAP_RUN,), map_run_id)
