"""The end of an execution stops or keeps its child executions, as the policy says."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from console.errors import ValidationException
from console.models import Execution, RunRow, StateMachine, TaskRow
from console.store.executions import children
from console.store.executions.stop import stop_execution
from console.store.machines import machine_options, tags
from console.store.tasks import claim
from console.worker import task_delivery
from tests.console.store.helpers import WAIT, create, drain, one, start, types

if TYPE_CHECKING:
    from console.models import Project

CALL = "arn:aws:states:::states:startExecution"


def parent_of(project: Project, policy: str = "", *, suffix: str = "", **more: Any) -> StateMachine:
    """Return a machine that starts an execution of the machine ``child``."""
    child = create(project, WAIT, "child")
    arguments = {"StateMachineArn": child.arn, **more}
    definition = one("Start", Type="Task", Resource=CALL + suffix, Parameters=arguments)
    machine = create(project, definition, "parent")
    if policy:
        tags.put_tags(machine.arn, {machine_options.CHILD_POLICY: policy})
    return machine


def called(parent: Execution) -> claim.ClaimedTask:
    """Take the parent's call, as the worker does before it makes it."""
    work = claim.claim_call(parent.pk, TaskRow.objects.get(execution=parent).task)
    assert work is not None
    return work


def child_of(project: Project, name: str) -> Execution:
    """Start the child, as the call does."""
    machine = StateMachine.objects.get(project=project, name="child")
    child = start(machine, name=name)
    drain(child)
    return child


def swept() -> None:
    """Do what the sweeper does."""
    for number in children.to_end():
        children.end_child(number)


def status(execution: Execution) -> str:
    """Return the stored status."""
    return Execution.objects.get(pk=execution.pk).status


@pytest.mark.parametrize("suffix", ["", ".sync", ".sync:2"])
def test_terminate_stops_the_children(project: Project, suffix: str) -> None:
    """Also one that was only started; its cause names the parent, and once is enough."""
    parent = start(parent_of(project, "terminate", suffix=suffix))
    drain(parent)
    child = child_of(project, called(parent).idempotency_key)
    swept()
    assert status(child) == "RUNNING"  # the parent has not ended
    stop_execution(parent)
    swept()
    child = Execution.objects.get(pk=child.pk)
    assert (child.status, child.cause) == (
        "ABORTED",
        f"The execution that started it ended: {parent.arn}",
    )
    assert types(child)[-1] == "ExecutionAborted"
    assert children.to_end() == []


def test_terminate_finds_a_child_by_its_own_name(project: Project) -> None:
    """A Name in the arguments, and a version or a test case after the machine's ARN."""
    machine = parent_of(project, "terminate", Name="mine")
    text = machine.definition.text.replace(":child", ":child:1#Case")
    parent = start(create(project, json.loads(text), "versioned"))
    tags.put_tags(parent.state_machine_arn, {machine_options.CHILD_POLICY: "terminate"})
    drain(parent)
    RunRow.objects.filter(pk=parent.pk).update(children_end=True)
    called(parent)
    child, other = child_of(project, "mine"), child_of(project, "somebody")
    stop_execution(parent)
    swept()
    assert (status(child), status(other)) == ("ABORTED", "RUNNING")


def test_a_call_under_way_is_waited_for(project: Project) -> None:
    """Its child may still come; the run stays marked until it has, or never can."""
    parent = start(parent_of(project, "terminate"))
    drain(parent)
    work = called(parent)
    stop_execution(parent)
    swept()
    assert children.to_end() == [parent.pk]
    child = child_of(project, work.idempotency_key)
    Execution.objects.filter(pk=child.pk).update(start_ms=parent.start_ms + 1)
    swept()
    assert status(child) == "ABORTED"
    assert children.to_end() == []


def test_without_the_tag_nothing_is_marked(project: Project) -> None:
    """AWS's own way: who was only started goes on."""
    parent = start(parent_of(project))
    drain(parent)
    child = child_of(project, called(parent).idempotency_key)
    stop_execution(parent)
    swept()
    assert status(child) == "RUNNING"
    assert not RunRow.objects.filter(children_end=True).exists()


@pytest.mark.parametrize(("policy", "asked"), [("", 1), ("requestCancel", 1), ("abandon", 0)])
def test_only_abandon_leaves_a_waited_for_child_alone(
    project: Project, monkeypatch: pytest.MonkeyPatch, policy: str, asked: int
) -> None:
    """The stop of the job is asked for once, as AWS does, unless the machine says otherwise."""
    from console import integrations
    from console.integrations.outcome import Succeeded
    from console.store.tasks import jobs

    asks: list[str] = []

    def cancel(task: Any, job: str) -> Succeeded:
        asks.append(task.resource + job)
        return Succeeded("{}")

    monkeypatch.setattr(integrations, "cancel_job", cancel)
    parent = start(parent_of(project, policy, suffix=".sync"))
    drain(parent)
    work = called(parent)
    jobs.submit_job(parent.pk, work.task, "{}", '{"ask": {}}', 10)
    drain(parent)
    stop_execution(parent)
    task_delivery.cancel_job(parent.pk, work.task)
    assert len(asks) == asked


def test_a_policy_that_is_none_is_refused(project: Project) -> None:
    """The words say what there is."""
    machine = parent_of(project)
    with pytest.raises(ValidationException, match="must be one of abandon, requestCancel"):
        tags.put_tags(machine.arn, {machine_options.CHILD_POLICY: "explode"})
    assert machine_options.of_machine(machine.arn)[machine_options.CHILD_POLICY] == "requestCancel"
