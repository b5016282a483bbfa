"""Write the rows of a step in its transaction: events, values, timers, tasks, halts and the end.

History events are appended and never changed. Values are write-once texts of a run, read when the
engine needs them. A timer is a row that the step which handles it deletes. The engine's commands
become the other rows.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec
from django.conf import settings
from django.db.models import F

import engine
from console import arns
from console.db import clock, rows, signals
from console.db.rows import Statement, storable
from console.models import MapRun, TaskRow
from console.statuses import DueKind, ExecutionStatus, TaskStatus, Topic
from console.store.events import outbox
from console.store.state import wait_scale
from console.store.state.caches import Belongs
from console.store.tasks import jobs, schedule

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from console.models import Execution
    from console.store.machines.activity_limits import Limits

_EVENT = "execution_id, event_id, previous, at_ms, type, state, details"
# A range uses the primary key; a LIKE would read every value of the execution. Keys compare byte by
# byte: always on SQLite, by migration 0002 on PostgreSQL.
_DELETE_VALUES = Statement(
    50,
    "DELETE FROM console_runvalue WHERE execution_id = %s AND key >= %s AND key < %s",
    ("bigint", "text", "text"),
)
_DELETE_TIMER = Statement(
    50, "DELETE FROM console_timer WHERE execution_id = %s AND name = %s", ("bigint", "text")
)
_CHUNK = 500
_encode = msgspec.json.Encoder().encode
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


def snapshot_text(run: engine.Run) -> str:
    """Serialize a run for storage; "" for a succeeded run, which never continues.

    An exception is a succeeded replay: its snapshot is stored, because it names the origin.
    """
    succeeded = run.status == engine.ExecutionStatus.SUCCEEDED
    return "" if succeeded and "origin" not in run.about else run.dumps()


# -- events ----------------------------------------------------------------------------------------


def append_events(execution_id: int, events: Iterable[engine.Event]) -> None:
    """Append history events, inside the caller's transaction."""
    events = [*events]
    names = {event.state: storable(event.state) for event in events}
    values = [
        (
            execution_id,
            event.id,
            event.previous,
            event.at_ms,
            event.type,
            names[event.state],
            "" if event.details is None else _details_text(event.details),
        )
        for event in events
    ]
    rows.append("console_historyevent", _EVENT, values)


def _details_text(details: Mapping[str, Any]) -> str:
    """Return details as JSON text, by the fast encoder if possible.

    The text has no U+0000, because JSON escapes it, and no lone surrogate, because the fast encoder
    refuses it.
    """
    try:
        return _encode(details).decode()
    except (TypeError, ValueError, OverflowError):  # a lone surrogate, or an integer beyond 64 bits
        return storable(engine.dumps(details))


# -- values ----------------------------------------------------------------------------------------


class StoredValues:
    """The values of one execution, with the additions and deletions of uncommitted steps."""

    def __init__(self, execution_id: int, uncommitted: Mapping[str, str] | None = None) -> None:
        """Read rows lazily, when ``many`` needs them.

        ``uncommitted``: key -> text of values that an earlier, perhaps unfinished commit adds.
        """
        self.execution_id = execution_id
        self._uncommitted = uncommitted or {}
        self.fresh: dict[str, str] = {}
        self.dropped: list[str] = []

    def many(self, keys: Sequence[str]) -> list[str]:
        """Return the texts of keys, in the order of the keys."""
        texts = {key: self._uncommitted[key] for key in keys if key in self._uncommitted}
        texts |= {key: self.fresh[key] for key in keys if key in self.fresh}
        missing = [key for key in keys if key not in texts]
        for start in range(0, len(missing), _CHUNK):
            texts.update(self._read(missing[start : start + _CHUNK]))
        return [texts[key] for key in keys]

    def apply(self, step: engine.Step) -> None:
        """Add the values written by a step, and note the key prefixes of deleted values."""
        for prefix in step.dropped:
            self.fresh = {
                key: text for key, text in self.fresh.items() if not key.startswith(prefix)
            }
            self.dropped.append(prefix)
        self.fresh.update(step.values)

    def _read(self, keys: Sequence[str]) -> dict[str, str]:
        marks = ",".join(["%s"] * len(keys))
        with rows.open_cursor() as cursor:
            cursor.execute(
                "SELECT key, text FROM console_runvalue"
                f" WHERE execution_id = %s AND key IN ({marks})",
                [self.execution_id, *keys],
            )
            return dict(cursor.fetchall())


def save_values(values: StoredValues) -> None:
    """Delete the noted prefixes, then write the added values, inside a transaction."""
    number = values.execution_id
    rows.change(_DELETE_VALUES, [(number, key, _after(key)) for key in values.dropped])
    append_values(number, values.fresh)


def append_values(execution_id: int, values: Mapping[str, str]) -> None:
    """Write added values, inside a transaction."""
    added = [(execution_id, key, text) for key, text in values.items()]
    rows.append("console_runvalue", "execution_id, key, text", added)


def _after(prefix: str) -> str:
    """Return the upper bound of all keys with a prefix (keys are ASCII)."""
    return prefix[:-1] + chr(ord(prefix[-1]) + 1) if prefix else "\x7f"


# -- timers ----------------------------------------------------------------------------------------


def set_timers(execution_id: int, commands: Sequence[engine.Command]) -> None:
    """Insert the timers of commands inside a transaction, except timers cancelled by them."""
    cancelled = {command.timer for command in commands if isinstance(command, engine.CancelTimer)}
    armed = [
        command
        for command in commands
        if isinstance(command, engine.SetTimer) and command.timer not in cancelled
    ]
    if settings.STATEYARD_WAIT_TIME_SCALE == 1:
        values = [(execution_id, command.timer, command.due_ms) for command in armed]
    else:
        values = [
            (execution_id, command.timer, wait_scale.scaled_due_ms(command)) for command in armed
        ]
    rows.append("console_timer", "execution_id, name, due_ms", values)
    for _, _, due_ms in values:
        signals.publish_due(due_ms, DueKind.TIMER, execution_id)


def drop_timers(execution_id: int, names: Sequence[str]) -> None:
    """Delete timers by name, inside a transaction."""
    rows.change(_DELETE_TIMER, [(execution_id, name) for name in names])


# -- commands --------------------------------------------------------------------------------------


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
    set_timers(execution_id, commands)
    for command in commands:
        match command:
            case engine.CancelTimer(timer=name):
                drop_timers(execution_id, [name])
            case engine.CancelTask(task=task):
                schedule.close_task(execution_id, task, now_ms)
                jobs.publish_cancelled(execution_id, task)
            case engine.AnsweredTask(task=answered):
                schedule.record_answered(execution_id, arn, answered, now_ms)
            case engine.NoteEdit():
                _note_edit(execution_id, command, now_ms)
            case engine.RedriveMapRun(task=task):
                _reopen_map_run(execution_id, task)
            case engine.Finish():
                _finish(execution_id, command, now_ms)
                belongs = belongs or _belongs_of(execution_id)
                publish_end(execution_id, arn, command, belongs, row)


def _reopen_map_run(execution_id: int, task: int) -> None:
    """Reopen a Map's task and its Map Run (inside a transaction).

    Its children that did not succeed wait to be redriven; ``map_runs.advance_map_run`` does it. A
    Map Run that had not begun when its parent was stopped begins now.
    """
    map_runs = MapRun.objects.filter(parent_id=execution_id, task=task)
    number = map_runs.values_list("pk", flat=True).first()
    begun = number is not None
    TaskRow.objects.filter(execution_id=execution_id, task=task).update(
        status=TaskStatus.STARTED if begun else TaskStatus.SCHEDULED,
        closed_ms=None,
        dispatches=int(begun),
    )
    if not begun:
        signals.publish((Topic.MAP,), execution_id, task)
        return
    map_runs.update(
        status=ExecutionStatus.RUNNING,
        stop_ms=None,
        redrive_count=F("redrive_count") + 1,
        redrive_ms=clock.now_ms(),
        pending_redrive=F("failed") + F("timed_out") + F("aborted"),
        failed=0,
        timed_out=0,
        aborted=0,
    )
    signals.publish((Topic.MAP_RUN,), number)


def _note_edit(execution_id: int, edit: engine.NoteEdit, now_ms: int) -> None:
    """Store a user's action on a line of control at a breakpoint, or a fault that struck."""
    texts = (storable(text) for text in (edit.state, edit.what, edit.by, edit.before, edit.after))
    values = (execution_id, edit.event, now_ms, *texts)
    rows.append("console_debugedit", _EDIT, [values])


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


# -- breakpoints -----------------------------------------------------------------------------------

# The run's plan in its snapshot is authoritative. Lists read the row of a halted execution instead
# of the snapshot; the step that changes the plan writes the row, so the two never differ.

MOST_LINES = 20
"""Maximum number of lines in a row; the row counts all."""
_FORGET = Statement(50, "DELETE FROM console_haltedexecution WHERE execution_id = %s", ("bigint",))
_HALTED = "execution_id, since_ms, count, newest, lines"


def halts_of(run: engine.Run) -> tuple[engine.Halt, ...]:
    """Return the halts of a run, in the order in which the lines stopped."""
    return run.plan.halts if run.plan is not None else ()


def record_halts(execution_id: int, run: engine.Run) -> None:
    """Write the current halts of a run, inside the transaction of its step."""
    rows.change(_FORGET, [(execution_id,)])
    values = halted_row(run)
    if values is not None:
        rows.append("console_haltedexecution", _HALTED, [(execution_id, *values)])


def halted_row(run: engine.Run) -> tuple[int, int, int, str] | None:
    """Return the values of the row beside a run: since_ms, count, newest, lines; None for none."""
    halts = halts_of(run)
    if not halts:
        return None
    lines = [
        [halt.number, run.frames[halt.frame].state, str(halt.when), halt.since_ms]
        for halt in halts[:MOST_LINES]
    ]
    return halts[0].since_ms, len(halts), halts[-1].number, storable(engine.dumps(lines))
