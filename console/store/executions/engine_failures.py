"""End an execution that the engine cannot continue, without harm to other executions (G14).

After three failed steps in a row, or three crashes of the process, the execution ends FAILED with
``States.Runtime``.
"""

from __future__ import annotations

from django.db import connection

import engine
from console.db import clock, signals
from console.db.writer import is_outage, write
from console.statuses import Topic
from console.store.executions import step, step_rows
from console.store.state.caches import kept_runs
from engine import event_types

MAX_FAILURES = 3
_DIED = "The engine could not go on: its process ended in the middle of a step"
_ENDS = sorted(event_types.EXECUTION_ENDS.keys() - {"ExecutionSucceeded"})
_COUNT = "UPDATE console_runrow SET failures = failures + %s WHERE execution_id = %s"
_FAILURES = "SELECT failures FROM console_runrow WHERE execution_id = %s"
_PASS_ON = (
    "UPDATE console_runrow SET version = version + 1, next_event = next_event + 1, ready = %s"
    " WHERE execution_id = %s"
)
_NEXT_EVENT = "UPDATE console_runrow SET next_event = %s WHERE execution_id = %s"
_END = (
    "SELECT h.event_id, h.at_ms, h.type, e.arn, e.redrive_count FROM console_historyevent h"
    " JOIN console_execution e ON e.id = h.execution_id"
    " WHERE h.execution_id = %s ORDER BY h.event_id DESC LIMIT 1"
)


def record_failure(execution_id: int, error: BaseException, *, counted: bool = False) -> bool:
    """Count a step that raised an exception; after three in a row end the execution.

    Return whether to try again. ``counted``: the attempt was counted before it was made. Do not
    call this for an outage of the database, which is not the execution's fault. Data that a later
    version wrote is not counted either: a worker of that version takes it (G16).
    """
    kept_runs.forget(execution_id)
    if isinstance(error, engine.NewerFormat):
        write(lambda: _count(execution_id, -1 if counted else 0))
        return False
    if write(lambda: _count(execution_id, 0 if counted else 1)) < MAX_FAILURES:
        return True
    try:
        end_execution(execution_id, f"The engine could not go on: {type(error).__name__}: {error}")
    except step.Fenced:
        return True  # another process has stepped it
    return False


def may_try(execution_id: int) -> bool:
    """Count an attempt before it is made; end the execution after three crashes.

    The first crash is not counted by this function. Return whether to make the attempt.
    """
    if write(lambda: _count(execution_id, 1)) < MAX_FAILURES:
        return True
    end_execution(execution_id, _DIED)
    return False


def record_crash(execution_id: int) -> None:
    """Count a crash of the process during a step; end the execution after three."""
    count = write(lambda: _count(execution_id, 1))
    if count > MAX_FAILURES:  # the engine could not even end it
        write(lambda: _by_hand(execution_id, _DIED))
    elif count == MAX_FAILURES:
        end_execution(execution_id, _DIED)


def _count(execution_id: int, more: int) -> int:
    """Add to the failures and return their number (inside a transaction)."""
    with connection.cursor() as cursor:
        cursor.execute(_COUNT, [more, execution_id])
        cursor.execute(_FAILURES, [execution_id])
        row = cursor.fetchone()
    return 0 if row is None else int(row[0])


def end_execution(execution_id: int, cause: str) -> None:
    """End an execution FAILED with ``States.Runtime``, even if the engine cannot read it."""
    try:
        _by_the_engine(execution_id, cause)
    except Exception as error:
        if is_outage(error) or isinstance(error, (step.Fenced, engine.NewerFormat)):
            raise
        write(lambda: _by_hand(execution_id, cause))


def _by_the_engine(execution_id: int, cause: str) -> None:
    loaded = step.load_step(execution_id)
    if loaded is None:
        return
    steps, now = [], step.current_moment(loaded.machine, loaded.arn)
    if loaded.run.status != engine.ExecutionStatus.RUNNING:
        # a redrive was to come: the history has its event first
        steps.append(engine.advance(loaded.machine, loaded.run, engine.Redrive(), now, budget=0))
        loaded.run = steps[0].run
    steps.append(engine.abandon(loaded.machine, loaded.run, cause, now))
    loaded.run = steps[-1].run
    for new_step in steps:
        loaded.values.apply(new_step)
    write(lambda: step.commit_step(loaded, steps))


def _by_hand(execution_id: int, cause: str) -> None:
    """Write the end without snapshot, definition and messages, if these are unreadable."""
    with connection.cursor() as cursor:
        cursor.execute(_PASS_ON, [False, execution_id])
        cursor.execute(_END, [execution_id])
        last, last_ms, kind, arn, redrives = cursor.fetchone()
        at_ms = max(clock.now_ms(), last_ms)
        events = []
        if kind in _ENDS:  # it was to be redriven
            redrive_details = {"redriveCount": redrives}
            events.append(engine.Event(last + 1, last, at_ms, "ExecutionRedriven", redrive_details))
        number = last + len(events) + 1
        details = {"error": "States.Runtime", "cause": cause}
        events.append(engine.Event(number, number - 1, at_ms, "ExecutionFailed", details))
        cursor.execute(_NEXT_EVENT, [number + 1, execution_id])
        cursor.execute("DELETE FROM console_runvalue WHERE execution_id = %s", [execution_id])
    step_rows.append_events(execution_id, events)
    end = engine.Finish(
        engine.ExecutionStatus.FAILED, error="States.Runtime", cause=cause, stop_ms=at_ms
    )
    step_rows.apply_commands(execution_id, arn, [end])
    signals.publish((Topic.EXECUTION, execution_id))
