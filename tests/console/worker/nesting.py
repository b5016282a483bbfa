"""Machines whose Tasks call Step Functions, people who start them, and a worker without threads."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from django.contrib.auth import get_user_model

from console.db.audit import NOBODY, Actor
from console.models import Execution, Membership, StateMachine, TaskRow
from console.store.executions.start import start_execution
from console.store.machines import machines
from console.worker import task_delivery
from tests.console.store.helpers import REGION, ROLE, drain, one

if TYPE_CHECKING:
    from console.models import Project

START = "arn:aws:states:::states:startExecution"
SDK = "arn:aws:states:::aws-sdk:sfn:"


def members(project: Project, **roles: str) -> None:
    """Add people with their roles."""
    for name, role in roles.items():
        user, _ = get_user_model().objects.get_or_create(username=name)
        Membership.objects.create(project=project, user=user, role=role)


def machine_of(
    project: Project, editor: str, definition: dict[str, Any], name: str = "machine"
) -> StateMachine:
    """Return a new machine that a person has made."""
    return machines.create_machine(
        project,
        REGION,
        name=name,
        definition=json.dumps(definition),
        role_arn=ROLE,
        actor=Actor(editor) if editor else NOBODY,
    )


def calling(action: str, **parameters: Any) -> dict[str, Any]:
    """Return a machine of one Task that calls the API."""
    return one("Call", Type="Task", Resource=SDK + action, Parameters=parameters)


def starting(child: StateMachine, suffix: str = "", **more: Any) -> dict[str, Any]:
    """Return a machine of one Task that starts a child."""
    parameters = {"StateMachineArn": child.arn, **more}
    return one("Child", Type="Task", Resource=START + suffix, Parameters=parameters)


def started(machine: StateMachine, starter: str = "") -> Execution:
    """Start an execution as a person, up to where it waits."""
    actor = Actor(starter) if starter else NOBODY
    return drain(start_execution(machine, input="{}", actor=actor))


def worked(execution: Execution) -> Execution:
    """Make the calls of an execution, and look at what it waits for; return it anew."""
    for task, status in open_tasks(execution):
        (task_delivery.look_at_job if status == "waiting" else task_delivery.deliver_task)(
            execution.pk, task
        )
    return drain(execution)


def open_tasks(execution: Execution) -> list[tuple[int, str]]:
    """Return the tasks of an execution that have not ended, with their status."""
    rows = TaskRow.objects.filter(execution=execution).exclude(status="closed")
    return list(rows.order_by("task").values_list("task", "status"))


def outcome(machine: StateMachine, starter: str = "") -> Execution:
    """Return an execution of one call, started by a person, when it has ended."""
    return worked(started(machine, starter))
