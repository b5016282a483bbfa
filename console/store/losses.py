"""What becomes of a call whose worker is gone, so that nobody knows its outcome?

It is made again, with the same idempotency key - unless its state machine says that no call may be
made twice (``stepyard:onWorkerLoss`` = fail): then its attempt has failed, and Retry decides.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import engine
from console import clock
from console.models import Execution
from console.store import inbox, switches, tasks
from console.store.writer import write

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

UNKNOWN = "outcome unknown: the worker was lost while the call was under way; it was not made again"
_AT_ONCE = 100


def take_up_all() -> tuple[int, int]:
    """Take up what a process that is gone had started.

    Return how many tasks failed and how many are made again.
    """
    failed = _fail(tasks.held_here())
    return failed, tasks.release_called()


def take_up(execution_id: int, task: int) -> bool:
    """Take up a task that was started here and lost; return whether it is made again."""
    if _fail([(execution_id, task)]):
        return False
    return tasks.release(execution_id, task)


def _fail(held: Sequence[tuple[int, int]]) -> int:
    """End those of the tasks (execution, task) that must not be called twice."""
    never = _never_twice({execution for execution, _ in held})
    lost = [one for one in held if one[0] in never]
    failed = 0
    for start in range(0, len(lost), _AT_ONCE):
        batch = lost[start : start + _AT_ONCE]
        failed += write(lambda batch=batch: sum(_fail_one(*one) for one in batch))  # type: ignore[misc]
    return failed


def _never_twice(executions: Iterable[int]) -> set[int]:
    """Return those of the executions whose machine forbids that a call is made twice."""
    rows = Execution.objects.filter(pk__in=set(executions))
    machines = dict(rows.values_list("pk", "state_machine_arn"))
    failing = switches.machines_with(switches.ON_WORKER_LOSS, switches.FAIL, machines.values())
    return {number for number, arn in machines.items() if switches.base(arn) in failing}


def _fail_one(execution_id: int, task: int) -> bool:
    """End a lost task and tell its execution (inside a transaction)."""
    if not tasks.close_lost(execution_id, task, clock.now_ms()):
        return False
    inbox.post(execution_id, engine.TaskFailed(task, "States.TaskFailed", UNKNOWN))
    return True
