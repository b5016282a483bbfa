"""Repeat or fail calls whose worker died, so that their outcome is unknown.

Such a call is repeated with the same idempotency key, unless its state machine forbids a second
call (``stateyard:onWorkerLoss`` = fail). Then the attempt has failed, and Retry decides.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import engine
from console.db import clock
from console.db.writer import write
from console.models import Execution, TaskRow
from console.statuses import TaskStatus
from console.store.machines import machine_options
from console.store.state import inbox
from console.store.tasks import claim, schedule

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from django.db.models import QuerySet

UNKNOWN = "outcome unknown: the worker was lost while the call was under way; it was not made again"
_AT_ONCE = 100


def recover_all() -> tuple[int, int]:
    """Recover the calls of all processes.

    Return how many tasks failed and how many calls are repeated.
    """
    return _fail(claim.claimed_by_servers()), claim.release_all_calls()


def recover_from(alive: Sequence[str]) -> int:
    """Recover the calls of all processes but these; return how many."""
    return _fail(claim.claimed_by_servers(alive)) + claim.release_calls_except(alive)


def recover_call(execution_id: int, task: int) -> bool | None:
    """Recover a lost call of this process.

    Return True if it is repeated, False if its task failed, None if the task had ended already.
    """
    if _fail(claim.claimed_by_this_process().filter(execution_id=execution_id, task=task)):
        return False
    return claim.release_call(execution_id, task) or None


def _fail(tasks: QuerySet[TaskRow]) -> int:
    """Fail the tasks that must not be called twice; return how many."""
    rows = list(tasks.values_list("execution_id", "task", "worker"))
    never = _never_twice({execution for execution, _, _ in rows}) if rows else set()
    lost = [row for row in rows if row[0] in never]
    batches = [lost[start : start + _AT_ONCE] for start in range(0, len(lost), _AT_ONCE)]
    return sum(write(partial(_fail_some, batch)) for batch in batches)


def _fail_some(lost: Sequence[tuple[int, int, str]]) -> int:
    return sum(_fail_one(*row) for row in lost)


def _never_twice(execution_ids: Iterable[int]) -> set[int]:
    """Return the executions whose machine forbids a second call."""
    rows = Execution.objects.filter(pk__in=set(execution_ids))
    machines = dict(rows.values_list("pk", "state_machine_arn"))
    failing = machine_options.machines_with(
        machine_options.ON_WORKER_LOSS, machine_options.FAIL, machines.values()
    )
    return {number for number, arn in machines.items() if machine_options.base_arn(arn) in failing}


def _fail_one(execution_id: int, task: int, worker: str) -> bool:
    """Fail a lost task, and post the message to its execution (inside a transaction)."""
    rows = TaskRow.objects.filter(execution_id=execution_id, task=task)
    lost = rows.filter(status=TaskStatus.STARTED, worker=worker).exists()
    if not lost or not schedule.close_task(execution_id, task, clock.now_ms()):
        return False
    inbox.post_message(execution_id, engine.TaskFailed(task, "States.TaskFailed", UNKNOWN))
    return True
