"""Pause an execution: no step runs until a user resumes it.

A pause is rows, so it outlives any process:

* ``RunRow.parked`` is set and the version increased: a step in progress is fenced, none begins.
* Timers are moved ``AWAY_MS`` into the future, so none comes due. A resume moves them back. If the
  clock stands still, they are then due later by the length of the pause.
* Outcomes of calls in progress, and answers, wait in the inbox. These calls keep their own time
  limits, because they run outside.

A stop resumes the execution and ends it in the same step, and so does the deletion of its state
machine.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.db import connection

from console import arns
from console.db import audit, clock, signals
from console.db.writer import write
from console.errors import ConflictException
from console.models import Execution, Pause
from console.statuses import ExecutionStatus, Topic

if TYPE_CHECKING:
    from django.db.models import QuerySet

    from console.models import StateMachine

CLOCKS = {"runs": False, "stops": True}
"""The form's choices for waits and time limits -> whether they stop during a pause."""
TIMERS = {"run": False, "still": True}
"""The same choices by their names in commands and in the API."""
PARKED = "paused"
"""The value of ``RunRow.parked`` of a paused execution."""
AWAY_MS = 1 << 50
"""A time later than any timer: the due time of timers that are stopped by a pause."""
_PARK = (
    "UPDATE console_runrow SET version = version + 1, parked = %s"
    " WHERE execution_id = %s AND parked = ''"
)
_UNPARK = "UPDATE console_runrow SET parked = '' WHERE execution_id = %s AND parked = %s"
_MOVE_AWAY = "UPDATE console_timer SET due_ms = due_ms + %s WHERE execution_id = %s"
_MOVE_BACK = (
    "UPDATE console_timer SET due_ms = due_ms - %s + %s WHERE execution_id = %s AND due_ms >= %s"
)


def pause_refusal(execution: Execution) -> str:
    """Return why an execution cannot be paused (Express), "" if it can."""
    if execution.status != ExecutionStatus.RUNNING:
        return "The execution has ended."
    if arns.is_express(execution.arn):
        return "An Express execution cannot be paused."
    return ""


def pause_execution(
    execution: Execution, actor: audit.Actor, *, stops_clock: bool, note: str = ""
) -> Pause:
    """Pause an execution; raise ConflictException if it has ended or is paused.

    ``stops_clock``: its waits, backoffs and own time limit stop meanwhile.
    """

    def store() -> Pause:
        refusal = pause_refusal(_lock(execution.pk))
        pause = find_pause(execution.pk)
        if pause is not None:
            refusal = f"The execution is already paused by {pause.paused_by or 'the server'}."
        if refusal:
            raise ConflictException(refusal)
        with connection.cursor() as cursor:
            cursor.execute(_PARK, [PARKED, execution.pk])
            cursor.execute(_MOVE_AWAY, [AWAY_MS, execution.pk])
        pause = Pause.objects.create(
            execution=execution,
            since_ms=clock.now_ms(),
            paused_by=actor.name,
            stops_clock=stops_clock,
            note=note,
        )
        audit.record(execution.project, actor, "PauseExecution", execution.arn, note)
        signals.publish((Topic.EXECUTION, execution.pk))
        return pause

    return write(store)


def resume_execution(execution: Execution, actor: audit.Actor) -> None:
    """Resume an execution; raise ConflictException if it is not paused."""

    def store() -> None:
        _lock(execution.pk)
        if not release_pause(execution.pk):
            raise ConflictException("The execution is not paused.")
        audit.record(execution.project, actor, "ResumeExecution", execution.arn)

    write(store)


def release_pause(number: int) -> bool:
    """End the pause of an execution, if any (inside a transaction that locks its row).

    Return whether it was.
    """
    pause = find_pause(number)
    if pause is None:
        return False
    later_ms = max(clock.now_ms() - pause.since_ms, 0) if pause.stops_clock else 0
    with connection.cursor() as cursor:
        cursor.execute(_UNPARK, [number, PARKED])
        cursor.execute(_MOVE_BACK, [AWAY_MS, later_ms, number, AWAY_MS])
    pause.delete()
    signals.publish((Topic.EXECUTION, number))
    signals.publish_runnable(number)
    return True


def release_pauses(executions: QuerySet[Execution]) -> None:
    """End the pauses of executions (inside a transaction)."""
    paused = Pause.objects.filter(execution__in=executions).order_by("execution")
    for number in list(paused.values_list("execution", flat=True)):
        _lock(number)
        release_pause(number)


def find_pause(number: int) -> Pause | None:
    """Return the pause of an execution, None if it is not paused."""
    return Pause.objects.filter(execution=number).first()


def has_paused_executions(machine: StateMachine) -> bool:
    """Return whether an execution of a state machine is paused."""
    return Pause.objects.filter(execution__state_machine=machine).exists()


def paused_executions() -> QuerySet[Pause, int]:
    """Return the numbers of all paused executions, for queries that leave them out."""
    return Pause.objects.values_list("execution", flat=True)


def _lock(number: int) -> Execution:
    """Return the execution with its row locked: its end comes before or after, not between."""
    return Execution.objects.select_for_update(no_key=True).get(pk=number)
