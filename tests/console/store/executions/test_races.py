"""One of several concurrent requests for the same thing wins, and the history agrees."""

from __future__ import annotations

import json
import time
from typing import TYPE_CHECKING, Any

import pytest

from console.db import audit, rows
from console.errors import ErrorCode, ServiceError
from console.models import Execution, HistoryEvent, InboxMessage, TaskRow
from console.store.executions import redrive
from console.store.executions.start import start_execution
from console.store.executions.stop import stop_execution
from console.store.tasks import activities, claim, complete, expiry, manual
from tests.console.store.helpers import (
    ACTIVITY,
    REGION,
    WORK,
    assert_nothing_wrong,
    create,
    crowd,
    drain,
    start,
    types,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from console.models import Project

ROUNDS = 6
TIMED = {**WORK, "States": {"A": {**WORK["States"]["A"], "TimeoutSeconds": 60}}}
BEN = audit.Actor("ben")


@pytest.fixture
def open_task(project: Project) -> Callable[[str], tuple[Execution, claim.ClaimedTask]]:
    """Return a function: name -> an execution and its one task, which a worker has."""
    activities.create_activity(project, REGION, "work")
    machine = create(project, TIMED)

    def make(name: str) -> tuple[Execution, claim.ClaimedTask]:
        execution = start(machine, name=name)
        drain(execution)
        work = claim.take_activity_task(ACTIVITY, "w")
        assert work is not None
        return execution, work

    return make


def ending(execution: Execution) -> tuple[str, dict[str, Any]]:
    """Return type and details of the event that ended the task."""
    ends = ("ActivitySucceeded", "ActivityFailed", "ActivityTimedOut")
    row = HistoryEvent.objects.get(execution_id=execution.pk, type__in=ends)
    return row.type, json.loads(row.details)


def sender(execution: Execution, work: claim.ClaimedTask) -> Callable[[int], str]:
    """Return what each of eight does: succeed, fail, by token or by hand, or keep alive."""

    def act(number: int) -> str:
        match number % 4:
            case 0:
                complete.succeed(work.token, f'"{number}"')
            case 1:
                complete.fail(work.token, f"E{number}", "cause")
            case 2:
                manual.succeed(execution, work.task, f'"{number}"', BEN)
            case _:
                complete.heartbeat(work.token)
                return ""
        return str(number)

    return act


def is_task_timed_out(fault: Exception) -> bool:
    """Return whether a caller was refused because the task has ended."""
    return isinstance(fault, ServiceError) and fault.code == ErrorCode.TaskTimedOut


def test_one_of_eight_senders_wins_each_time(
    open_task: Callable[[str], tuple[Execution, claim.ClaimedTask]],
) -> None:
    """The others hear TaskTimedOut, a heartbeat ends nothing, the history is the winner's."""
    for round_ in range(ROUNDS):
        execution, work = open_task(f"x{round_}")
        results = crowd(8, sender(execution, work))
        won = [result for result in results if isinstance(result, str) and result]
        assert len(won) == 1, results
        faults = [result for result in results if isinstance(result, Exception)]
        assert all(is_task_timed_out(fault) for fault in faults), faults
        drain(execution)
        kind, details = ending(execution)
        assert won[0] in (details.get("error", "")[1:], details.get("output", "").strip('"'))
        assert kind == ("ActivityFailed" if "error" in details else "ActivitySucceeded")
    assert_nothing_wrong()


def test_a_deadline_and_the_answers_have_one_winner(
    open_task: Callable[[str], tuple[Execution, claim.ClaimedTask]],
) -> None:
    """When time runs out as the answers come in, either it or one answer counts."""
    for round_ in range(ROUNDS):
        execution, work = open_task(f"x{round_}")
        TaskRow.objects.filter(execution=execution).update(timeout_due_ms=1)

        def act(
            number: int, execution: Execution = execution, work: claim.ClaimedTask = work
        ) -> bool:
            if number < 2:
                return expiry.expire_tasks([(execution.pk, work.task)]) == 1
            complete.succeed(work.token, str(number))
            return True

        results = crowd(8, act)
        assert sum(result is True for result in results) == 1, results
        faults = [result for result in results if isinstance(result, Exception)]
        assert all(is_task_timed_out(fault) for fault in faults), faults
        drain(execution)
        ending(execution)
    assert_nothing_wrong()


def test_a_stop_and_the_answers_leave_one_end(
    open_task: Callable[[str], tuple[Execution, claim.ClaimedTask]],
) -> None:
    """An answer that was taken before the stop may be in the history; one after it never is."""
    for round_ in range(ROUNDS):
        execution, work = open_task(f"x{round_}")

        def act(
            number: int, execution: Execution = execution, work: claim.ClaimedTask = work
        ) -> str:
            if number == 0:
                stop_execution(execution, cause="race")
                return "stopped"
            complete.succeed(work.token, str(number))
            return "answered"

        results = crowd(8, act)
        assert "stopped" in results
        assert results.count("answered") <= 1
        faults = [result for result in results if isinstance(result, Exception)]
        assert all(isinstance(fault, ServiceError) for fault in faults), faults
        drain(execution)
        stored = Execution.objects.get(pk=execution.pk)
        assert stored.status in (["ABORTED"], ["ABORTED", "SUCCEEDED"])[results.count("answered")]
        assert sum(kind in types(execution) for kind in ("ExecutionAborted", "ExecutionSucceeded"))
    assert_nothing_wrong()


def test_the_token_before_a_redrive_ends_nothing_after_it(
    open_task: Callable[[str], tuple[Execution, claim.ClaimedTask]],
) -> None:
    """The redriven task has a token of its own, and only that one opens it."""
    execution, work = open_task("x")
    stop_execution(execution)
    redrive.redrive_execution(Execution.objects.get(pk=execution.pk))
    drain(execution)
    again = claim.take_activity_task(ACTIVITY, "w")
    assert again is not None
    assert again.token != work.token

    def act(number: int) -> str:
        token = again.token if number == 0 else work.token
        complete.succeed(token, str(number))
        return str(number)

    results = crowd(8, act)
    assert [result for result in results if isinstance(result, str)] == ["0"]
    assert drain(execution).output == "0"
    assert not InboxMessage.objects.exists()


def test_many_callers_of_one_name_start_one_execution(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each looks for the name before any of them has written it; all get the same execution."""
    machine = create(project, WORK)
    look = rows.fetch_one

    def slowly(model: Any, *about: Any) -> Any:
        row = look(model, *about)
        if model is Execution:
            time.sleep(0.1)
        return row

    monkeypatch.setattr(rows, "fetch_one", slowly)
    keys = crowd(8, lambda _: start_execution(machine, name="same", input="{}").pk)
    assert Execution.objects.filter(name="same").count() == 1
    assert keys == [Execution.objects.get(name="same").pk] * 8


def test_a_person_and_a_worker_do_not_both_take_a_task(project: Project) -> None:
    """An operator answers as workers poll: the history has one start, whoever it was."""
    activities.create_activity(project, REGION, "work")
    machine = create(project, TIMED)
    for round_ in range(ROUNDS):
        execution = start(machine, name=f"x{round_}")
        drain(execution)
        task = TaskRow.objects.get(execution=execution).task

        def act(number: int, execution: Execution = execution, task: int = task) -> Any:
            if number < 4:
                return claim.take_activity_task(ACTIVITY, f"w{number}")
            return manual.succeed(execution, task, str(number), BEN)

        results = crowd(8, act)
        refused = [result for result in results if isinstance(result, Exception)]
        assert len(refused) == 3
        assert all(is_task_timed_out(fault) for fault in refused), refused
        assert sum(isinstance(result, claim.ClaimedTask) for result in results) <= 1
        assert drain(execution).status == "SUCCEEDED"
        assert types(execution).count("ActivityStarted") == 1
        assert types(execution).count("ActivitySucceeded") == 1
    assert_nothing_wrong()
