"""Nested executions start, end and stop exactly once, without the API's process."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from django.db import OperationalError

from console import own_api
from console.config import quotas
from console.db import signals
from console.models import Execution, HistoryEvent, TaskRow
from console.statuses import Topic
from console.store.executions import redrive
from console.store.executions.start import start_execution
from console.store.executions.stop import stop_execution
from console.store.tasks import claim
from console.worker import own_calls, task_delivery
from tests.console.store.helpers import PASS, WAIT, create, drain, ended, types
from tests.console.worker.nesting import START, calling, open_tasks, started, starting, worked
from tests.waiting import wait_until

if TYPE_CHECKING:
    from console.models import Project, StateMachine
    from console.worker import Embedded

FAIL = {"StartAt": "F", "States": {"F": {"Type": "Fail", "Error": "E", "Cause": "c"}}}


class Died(BaseException):
    """The process is gone."""


@pytest.fixture
def parent(project: Project) -> Execution:
    """An execution that is about to start a child and to wait for it."""
    child = create(project, WAIT, "child")
    return started(create(project, starting(child, ".sync"), "parent"))


def children() -> list[Execution]:
    """Return the executions of the machine ``child``."""
    return list(Execution.objects.filter(state_machine__name="child").order_by("pk"))


@pytest.mark.parametrize("suffix", ["", ".sync", ".sync:2"])
def test_no_address_is_called(
    project: Project, worker: Embedded, settings: Any, suffix: str
) -> None:
    """Nobody listens at the server's own address, and nobody has an access key."""
    del worker
    settings.STATEYARD_URL = "http://127.0.0.1:9"
    child = create(project, PASS, "child")
    machine = create(project, starting(child, suffix, Input={"a": 1}), "parent")
    parent = ended(start_execution(machine, input="{}"))
    assert (parent.status, parent.cause) == ("SUCCEEDED", None)
    (one_child,) = children()
    output = json.loads(parent.output or "")
    assert output["ExecutionArn"] == one_child.arn
    if suffix:
        expected = {"a": 1} if suffix == ".sync:2" else '{"a":1}'
        assert (output["Status"], output["Output"]) == ("SUCCEEDED", expected)
    assert ended(one_child).input == '{"a":1}'


def test_an_express_child_is_waited_for(project: Project, worker: Embedded) -> None:
    """StartSyncExecution answers when the child has ended."""
    del worker
    child = create(project, PASS, "child")
    type(child).objects.update(type="EXPRESS")
    parameters = {"StateMachineArn": child.arn, "Input": {"a": 1}}
    machine = create(project, calling("startSyncExecution", **parameters), "parent")
    parent = ended(start_execution(machine, input="{}"))
    assert parent.status == "SUCCEEDED", parent.cause
    assert json.loads(parent.output or "")["Output"] == '{"a":1}'


def test_the_child_and_its_task_are_one_commit(
    parent: Execution, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Who is killed between the two has done nothing; the next one does both."""
    ((task, _),) = open_tasks(parent)

    def die(*_: Any) -> bool:
        raise Died

    with monkeypatch.context() as patch:
        patch.setattr(own_calls, "record_outcome", die)
        with pytest.raises((Died, OperationalError)):
            task_delivery.deliver_task(parent.pk, task)
    assert children() == []
    assert open_tasks(parent) == [(task, "started")]
    assert claim.release_all_calls() == 1
    task_delivery.deliver_task(parent.pk, task)
    assert len(children()) == 1
    assert open_tasks(parent) == [(task, "waiting")]


def test_a_worker_that_was_overtaken_starts_nothing(parent: Execution) -> None:
    """Its task was called again by another one, whose child is the only one."""
    ((task, _),) = open_tasks(parent)
    late = claim.claim_call(parent.pk, task)
    assert late is not None
    claim.release_all_calls()
    task_delivery.deliver_task(parent.pk, task)
    assert own_calls.begin_call(late, task_delivery._task(late)) is None
    assert len(children()) == 1


def test_a_task_that_has_ended_starts_nothing(parent: Execution) -> None:
    """The parent was stopped after a worker had taken the task, and before it called."""
    ((task, _),) = open_tasks(parent)
    work = claim.claim_call(parent.pk, task)
    assert work is not None
    stop_execution(parent)
    assert own_calls.begin_call(work, task_delivery._task(work)) is None
    assert children() == []


def test_a_call_waits_for_the_database(parent: Execution, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is no failure of the task that the database was away for a moment."""
    answer, failures = own_api.answer, [OperationalError("gone"), OperationalError("gone")]

    def flaky(*asked: Any) -> Any:
        if failures:
            raise failures.pop()
        return answer(*asked)

    monkeypatch.setattr(own_api, "answer", flaky)
    assert worked(parent).status == "RUNNING"
    assert len(children()) == 1
    assert "TaskSubmitted" in types(parent)


def test_the_end_of_a_child_lets_its_parent_look(parent: Execution) -> None:
    """At once, and not when the row of the task says so."""
    worked(parent)
    ((task, status),) = open_tasks(parent)
    assert status == "waiting"
    due: list[Any] = []
    stop = signals.subscribe((Topic.DUE,), lambda _, *what: due.append(what))
    try:
        stop_execution(children()[0], error="E", cause="c")
    finally:
        stop()
    assert ("look", parent.pk, task) in due
    execution = worked(parent)
    assert (execution.status, execution.error) == ("FAILED", "States.TaskFailed")
    assert json.loads(execution.cause or "")["Status"] == "ABORTED"


def test_a_machine_that_starts_itself_ends(
    project: Project, worker: Embedded, settings: Any
) -> None:
    """At the depth that the quota allows, by an error that a Catch can name."""
    del worker
    settings.STATEYARD_QUOTAS = {"nesting_depth": 3}
    quotas.forget()
    arn = "arn:aws:states:us-east-1:123456789012:stateMachine:again"
    catch = [{"ErrorEquals": ["StepFunctions.ExecutionLimitExceededException"], "Next": "Deep"}]
    again = {"Type": "Task", "Resource": START, "Parameters": {"StateMachineArn": arn}}
    states = {
        "Again": {**again, "Catch": catch, "End": True},
        "Deep": {"Type": "Pass", "End": True},
    }
    machine = create(project, {"StartAt": "Again", "States": states}, "again")
    start_execution(machine, input="{}")
    try:
        deepest = _until_deep(3)
        assert "Deep" in (
            HistoryEvent.objects.filter(execution=deepest).values_list("state", flat=True)
        )
        assert Execution.objects.count() == 4
    finally:
        quotas.forget()


def _until_deep(depth: int) -> Execution:
    """Return the execution of a depth when it has ended."""
    execution = wait_until(lambda: Execution.objects.filter(depth=depth).first())
    assert execution is not None
    return ended(execution)


def test_a_stopped_parent_stops_its_child(parent: Execution) -> None:
    """Without any right of a person: it belongs to the start that was allowed."""
    worked(parent)
    ((task, _),) = open_tasks(parent)
    stop_execution(parent)
    task_delivery.cancel_job(parent.pk, task)
    assert children()[0].status == "ABORTED"


def test_a_redriven_parent_starts_a_child_of_its_own(project: Project) -> None:
    """The one that failed is over: the new attempt must not take it for its own."""
    child = create(project, FAIL, "child")
    parent = started(create(project, starting(child, ".sync"), "parent"))
    worked(parent)
    drain(children()[0])
    assert worked(parent).status == "FAILED"
    redrive.redrive_execution(Execution.objects.get(pk=parent.pk))
    drain(parent)
    worked(parent)
    assert len(children()) == 2
    assert drain(parent).status == "RUNNING"


def test_terminate_finds_children_by_their_parent(project: Project) -> None:
    """Also those that it started before it was redriven."""
    from console.store.executions import children as store
    from console.store.machines import machine_options, tags

    child = create(project, WAIT, "child")
    machine = create(project, starting(child), "parent")
    tags.put_tags(machine.arn, {machine_options.CHILD_POLICY: machine_options.TERMINATE})
    parent = started(machine)
    worked(parent)
    Execution.objects.filter(pk=children()[0].pk).update(name="renamed")
    store.end_child(parent.pk)
    assert children()[0].status == "ABORTED"


def test_a_remote_target_is_called_there(parent: Execution, settings: Any) -> None:
    """targets.json may say that Step Functions are elsewhere; they are called by HTTP then."""
    remote = {"endpoint_url": "http://127.0.0.1:9", "access_key_id": "a", "secret_access_key": "b"}
    settings.STATEYARD_TARGETS = {"stepfunctions": remote}
    execution = worked(parent)
    assert (execution.status, execution.error) == ("FAILED", "StepFunctions.SdkClientException")
    assert children() == []


@pytest.mark.parametrize(
    ("name", "error"),
    [("a b", "StepFunctions.InvalidNameException"), ("same", "ExecutionAlreadyExistsException")],
)
def test_refusals_are_named_as_by_the_service(project: Project, name: str, error: str) -> None:
    """The names that a Catch of a state machine for AWS has."""
    child: StateMachine = create(project, WAIT, "child")
    start_execution(child, name="same", input='{"other":1}')
    parent = worked(started(create(project, starting(child, Name=name), "parent")))
    assert (parent.status, (parent.error or "").endswith(error)) == ("FAILED", True)
    assert "Service: AWSStepFunctions; Status Code: 400" in (parent.cause or "")
    assert not TaskRow.objects.exclude(status="closed").exists()
