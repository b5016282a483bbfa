"""The worker survives outages of its database and failures of its calls."""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING, Any

import pytest
from django.db import OperationalError, connection

from console.integrations import function as integration
from console.integrations import permissions
from console.models import Execution, Project, StateMachine, TaskRow
from console.store.executions import step
from console.store.tasks import activities, claim, complete, expiry
from console.worker import Embedded, embedded
from tests.console.store.helpers import (
    ACTIVITY,
    REGION,
    WAIT,
    WORK,
    assert_nothing_wrong,
    create,
    drain,
    ended,
    function,
    one,
    start,
)
from tests.waiting import PATIENCE_S, wait_until

if TYPE_CHECKING:
    from collections.abc import Callable

HERE = "tests.console.worker.test_outages"


def double(event: int, context: object) -> int:
    """A function of the tests."""
    del context
    return event * 2


_let_go = threading.Event()
_calls: list[int] = []
_ended_calls: list[int] = []


def hold(event: int, context: object) -> int:
    """A function that returns when the test says so."""
    del context
    _calls.append(event)
    _let_go.wait(2 * PATIENCE_S)
    _ended_calls.append(event)
    return event


def leave(event: object, context: object) -> None:
    """A function that wants to end the process."""
    del event, context
    raise SystemExit(3)


def garble(event: object, context: object) -> str:
    """A function whose answer no database stores."""
    del event, context
    return "\ud800"


@pytest.fixture(autouse=True)
def functions(settings: Any) -> None:
    """Register the functions above."""
    _let_go.clear()
    _calls.clear()
    _ended_calls.clear()
    names = ("double", "leave", "garble")
    settings.STATEYARD_FUNCTIONS = {name: f"{HERE}:{name}" for name in names}


def failing(times: int, real: Callable[..., Any]) -> Callable[..., Any]:
    """Return the function, made to find the database out so many times at first."""
    failures = [times]

    def flaky(*arguments: Any) -> Any:
        failures[0] -= 1
        if failures[0] >= 0:
            raise OperationalError("the connection is closed")
        return real(*arguments)

    return flaky


def cut_connections() -> None:
    """End every other session of the database, where it has sessions."""
    if connection.vendor == "postgresql":
        with connection.cursor() as cursor:
            cursor.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
                " WHERE pid <> pg_backend_pid() AND datname = current_database()"
            )


@pytest.mark.slow
def test_an_outage_is_not_the_executions_fault(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Steps that find the database out are done later, however many they are."""
    execution = start(create(project, one("P", Type="Pass")))
    monkeypatch.setattr(step, "load_step", failing(3, step.load_step))
    worker = Embedded()
    worker.start()
    try:
        assert ended(execution).status == "SUCCEEDED"
    finally:
        worker.stop()


@pytest.mark.slow
def test_cut_connections_are_replaced(project: Project, worker: Embedded) -> None:
    """Engine, clock, sweeper and calls all go on, twice."""
    waits = create(project, one("W", Type="Wait", Seconds=1))
    calls = create(project, one("T", **function("double")), "calls")
    for _ in range(2):
        running = [start(waits) for _ in range(3)]
        time.sleep(0.2)
        cut_connections()
        running += [start(calls, number) for number in range(3)]
        assert {ended(execution).status for execution in running} == {"SUCCEEDED"}
    assert all(thread.is_alive() for thread in worker._threads)
    for end in worker._listeners:
        end()  # without hints only the sweeper finds it
    assert ended(start(calls, 1)).output == "2"


def test_the_clock_outlives_a_failure(
    project: Project, monkeypatch: pytest.MonkeyPatch, worker: Embedded
) -> None:
    """A deadline whose expiry failed is tried again."""
    del worker
    monkeypatch.setattr(expiry, "expire_tasks", failing(1, expiry.expire_tasks))
    activities.create_activity(project, REGION, "work")
    definition = one("A", Type="Task", Resource=ACTIVITY, TimeoutSeconds=1)
    execution = start(create(project, definition))
    while claim.take_activity_task(ACTIVITY) is None:
        time.sleep(0.01)
    assert ended(execution).error == "States.Timeout"


@pytest.mark.parametrize(("where", "name"), [(claim, "claim_call"), (complete, "complete_call")])
def test_a_call_outlives_an_outage(
    project: Project, monkeypatch: pytest.MonkeyPatch, worker: Embedded, where: Any, name: str
) -> None:
    """An outcome is recorded once the database is back; a task not taken is offered again."""
    del worker
    monkeypatch.setattr(where, name, failing(2, getattr(where, name)))
    assert ended(start(create(project, one("T", **function("double"))), 4)).output == "8"
    assert TaskRow.objects.get().dispatches == 1


def test_a_call_whose_target_cannot_be_read_is_made_later(
    project: Project, monkeypatch: pytest.MonkeyPatch, worker: Embedded
) -> None:
    """The settings of the project say where the call goes, and the database has them."""
    del worker
    monkeypatch.setattr(integration, "runs_here", failing(3, integration.runs_here))
    assert ended(start(create(project, one("T", **function("double"))), 4)).output == "8"
    assert TaskRow.objects.get().dispatches == 1


def test_a_call_whose_rights_cannot_be_read_is_made_later(
    project: Project, monkeypatch: pytest.MonkeyPatch, worker: Embedded
) -> None:
    """The settings of the project say what a role may call."""
    del worker
    monkeypatch.setattr(permissions, "find_denial", failing(3, permissions.find_denial))
    assert ended(start(create(project, one("T", **function("double"))), 4)).output == "8"
    assert TaskRow.objects.get().dispatches == 1


def test_a_task_that_got_lost_is_called_again(project: Project, worker: Embedded) -> None:
    """Started, but in nobody's hands: as when the claim's commit was never heard of."""
    execution = start(create(project, one("W", Type="Wait", Seconds=3600)))
    del execution
    machine = create(project, one("T", **function("double")), "calls")
    for end in worker._listeners:
        end()
    execution = start(machine, 5)
    drain(execution)
    assert claim.claim_call(execution.pk, TaskRow.objects.get().task) is not None
    assert ended(execution).output == "10"
    assert TaskRow.objects.get().dispatches == 2


@pytest.mark.parametrize(
    ("name", "status", "said"),
    [("leave", "FAILED", "Runtime.ExitError"), ("garble", "FAILED", "Runtime.MarshalError")],
)
def test_strange_functions_harm_only_their_execution(
    project: Project, worker: Embedded, name: str, status: str, said: str
) -> None:
    """A wish to exit and a text without bytes are errors, as in Lambda; the threads go on."""
    del worker
    machine = create(project, one("T", **function(name)))
    for _ in range(3):
        execution = ended(start(machine, name))
        assert (execution.status, execution.error or execution.output) == (status, said)
    assert_nothing_wrong()


def test_builtin_work_of_a_dead_process_is_done_again(project: Project, settings: Any) -> None:
    """An activity task that a callable was working; the history shows one start."""
    settings.STATEYARD_FUNCTIONS = {"activity:work": f"{HERE}:double"}
    activities.create_activity(project, REGION, "work")
    execution = start(create(project, WORK), 2)
    drain(execution)
    assert claim.claim_call(execution.pk, TaskRow.objects.get().task) is not None
    drain(execution)
    worker = Embedded()
    worker.start()
    try:
        assert ended(execution).output == "4"
    finally:
        worker.stop()
    kinds = list(execution.historyevent_set.values_list("type", flat=True))
    assert kinds.count("ActivityStarted") == 1


def test_calls_of_any_pattern_of_a_dead_process_are_done_again(project: Project) -> None:
    """Also those that would wait for a callback, had the call got through."""
    call = {"QueueUrl": "q", "MessageBody": {"token.$": "$$.Task.Token"}}
    arn = "arn:aws:states:::sqs:sendMessage.waitForTaskToken"
    execution = start(create(project, one("T", Type="Task", Resource=arn, Parameters=call)))
    drain(execution)
    assert claim.claim_call(execution.pk, TaskRow.objects.get().task) is not None
    worker = Embedded()
    worker.start()
    try:
        assert ended(execution).status == "FAILED"
    finally:
        worker.stop()


def test_a_deletion_that_was_cut_short_is_finished(project: Project) -> None:
    """What would enter a further state is ended, and the name is free again."""
    execution = start(create(project, WAIT))
    StateMachine.objects.update(status="DELETING")
    worker = Embedded()
    worker.start()
    try:
        assert ended(execution).status == "ABORTED"
        wait_until(lambda: not StateMachine.objects.exists())
    finally:
        worker.stop()
    assert Execution.objects.get().state_machine_id is None


@pytest.mark.slow
def test_a_deletion_that_was_cut_short_elsewhere_is_finished(project: Project) -> None:
    """Also when the process that had begun it was not this one: the sweeper looks again."""
    states = {"W": {"Type": "Wait", "Seconds": 2, "Next": "P"}, "P": {"Type": "Pass", "End": True}}
    worker = Embedded()
    worker.start()
    try:
        execution = start(create(project, {"StartAt": "W", "States": states}))
        wait_until(lambda: execution.historyevent_set.filter(type="WaitStateEntered").exists())
        StateMachine.objects.update(status="DELETING")
        assert ended(execution).status == "ABORTED"
        assert execution.historyevent_set.filter(type="WaitStateExited").exists()
        wait_until(lambda: not StateMachine.objects.exists())
    finally:
        worker.stop()


def test_timers_do_not_wait_for_deadlines(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However slowly tasks time out, who waits goes on in time; and that by the clock alone."""
    let_go = threading.Event()
    expire = expiry.expire_tasks

    def slowly(late: Any) -> int:
        let_go.wait()
        return expire(late)

    monkeypatch.setattr(expiry, "expire_tasks", slowly)
    monkeypatch.setattr(embedded, "SWEEP_EVERY_S", 10 * PATIENCE_S)
    worker = Embedded()
    worker.start()
    activities.create_activity(project, REGION, "work")
    definition = one("A", Type="Task", Resource=ACTIVITY, TimeoutSeconds=1)
    late = start(create(project, definition))
    while claim.take_activity_task(ACTIVITY) is None:
        time.sleep(0.01)
    waits = start(create(project, one("W", Type="Wait", Seconds=2), "waits"))
    try:
        assert ended(waits).status == "SUCCEEDED"
        let_go.set()
        assert ended(late).error == "States.Timeout"
    finally:
        let_go.set()
        worker.stop()


def test_stopping_hands_over_at_once(
    project: Project, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Stop waits neither for a call under way nor for the next look at the tables."""
    settings.STATEYARD_FUNCTIONS = {"hold": f"{HERE}:hold"}
    monkeypatch.setattr(embedded, "SWEEP_EVERY_S", 10 * PATIENCE_S)
    machine = create(project, one("T", **function("hold")))
    worker = Embedded()
    worker.start()
    for number in range(20):
        start(machine, number)
    wait_until(lambda: _calls)
    worker.stop()
    assert _ended_calls == []
    wait_until(lambda: not any(thread.is_alive() for thread in worker._threads))
    _let_go.set()
    monkeypatch.undo()
    second = Embedded()
    second.start()
    try:
        for execution in Execution.objects.all():
            assert ended(execution).status == "SUCCEEDED"
    finally:
        second.stop()
    assert_nothing_wrong()
