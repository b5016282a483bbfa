"""Stop an execution, and return after its end is committed."""

from __future__ import annotations

import time

import engine
from console.db import audit, clock
from console.db.writer import is_outage, write
from console.models import Execution
from console.statuses import ExecutionStatus
from console.store.executions import engine_failures, step
from console.store.state import inbox, pause
from console.store.tasks import schedule

_STOP_TRIES = 200


def stop_execution(
    execution: Execution,
    *,
    error: str | None = None,
    cause: str | None = None,
    actor: audit.Actor = audit.NOBODY,
) -> int:
    """Stop an execution and return its stop date (epoch ms); do nothing if it has ended.

    Return after the end is committed, also an end by another cause (G11).
    """

    def ask() -> None:
        if _post_stop(execution.pk, engine.Stop(error, cause)):
            audit.record(execution.project, actor, "StopExecution", execution.arn, cause or "")

    write(ask)
    return _drive_to_end(execution.pk)


def _post_stop(number: int, message: engine.Stop) -> bool:
    """Post a Stop unless the execution has ended; return whether it was posted.

    The lock lets its end, if that is being written just now, come before or after but not between.
    Its tasks are closed first, so that no outcome is accepted that would come after Stop.
    """
    execution = Execution.objects.select_for_update(no_key=True).filter(pk=number)
    running = execution.values_list("status", flat=True).first() == ExecutionStatus.RUNNING
    if running:
        pause.release_pause(number)
        schedule.close_tasks(number, clock.now_ms())
        inbox.post_message(number, message)
    return running


def _drive_to_end(number: int) -> int:
    """Step the execution to its end; other threads may step it at the same time."""
    for attempt in range(_STOP_TRIES):
        stop_ms = Execution.objects.filter(pk=number).values_list("stop_ms", flat=True).first()
        if stop_ms is not None:
            return stop_ms
        try:
            step.step_execution(number)
        except (step.Fenced, engine.NewerFormat):  # another thread does it
            time.sleep(min(0.001 * attempt, 0.05))
        except Exception as error:
            if is_outage(error):
                raise
            engine_failures.record_failure(number, error)
    msg = f"execution {number} did not take its Stop message in {_STOP_TRIES} tries"
    raise engine.EngineBug(msg)
