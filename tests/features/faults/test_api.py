"""The HTTP API of faults: signed calls of editors, in the project of their key."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from console.models import AuditEntry, Execution, Project
from tests.console.store.helpers import create, function
from tests.features.branches.conftest import key_of, payments
from tests.features.projects.test_api import call

if TYPE_CHECKING:
    from collections.abc import Callable

    from console.models import StateMachine

__all__ = ["key_of", "payments"]
FAULTS = json.dumps({"seed": 7, "faults": [{"state": "Call", "error": "Busy"}]})


@pytest.fixture
def machine(payments: Project) -> StateMachine:
    """Return a machine with a call."""
    states = {"Call": {**function("work"), "End": True}}
    return create(payments, {"StartAt": "Call", "States": states})


def test_an_editor_starts_with_faults(machine: StateMachine, key_of: Callable[[str], str]) -> None:
    """The answer has the seed; the audit names the faults and the key."""
    body = {"stateMachineArn": machine.arn, "faults": FAULTS, "input": "[1]", "name": "a"}
    status, answer = call(key_of("ed"), "POST", "/api/faults", body)
    execution = Execution.objects.get()
    assert (status, answer["executionArn"], answer["seed"]) == (201, execution.arn, 7)
    assert (execution.name, execution.input, execution.started_by) == ("a", "[1]", "ed")
    entry = AuditEntry.objects.get(action="StartExecution")
    assert entry.reason == "faults (seed 7): Call fails with Busy before its call"
    assert call(key_of("ed"), "POST", "/api/faults", body)[1]["executionArn"] == execution.arn


def test_an_operator_may_not(machine: StateMachine, key_of: Callable[[str], str]) -> None:
    """Who may start executions may not make them fail."""
    body = {"stateMachineArn": machine.arn, "faults": FAULTS}
    status, refused = call(key_of("otto"), "POST", "/api/faults", body)
    assert (status, refused["__type"]) == (403, "AccessDeniedException")
    assert "InjectFaults" in refused["message"]
    assert not Execution.objects.exists()


@pytest.mark.parametrize(
    ("faults", "problem"),
    [
        ("[", "faults must be a JSON text"),
        ("[" * 50_000, "faults must be a JSON text: nested deeper than 500 levels"),
        ('[{"state": "Call", "cause": "\\ud800"}]', "a lone surrogate"),
        ('[{"state": "Call", "state": "Call"}]', "JSON text: the key 'state' stands twice"),
        ("{}", "faults: got None, wanted an array"),
        ('[{"state": "No"}]', "faults[0].state: got the state 'No', wanted one of"),
        ('[{"state": "Call", "type": "delay-callback"}]', "wanted a Task with .waitForTaskToken"),
    ],
)
def test_what_cannot_strike_is_refused(
    machine: StateMachine, key_of: Callable[[str], str], faults: str, problem: str
) -> None:
    """By its place in the document."""
    body = {"stateMachineArn": machine.arn, "faults": faults}
    status, refused = call(key_of("ed"), "POST", "/api/faults", body)
    assert (status, refused["__type"]) == (400, "ValidationException")
    assert problem in refused["message"]


def test_a_key_of_another_machine_is_refused(
    machine: StateMachine, key_of: Callable[[str], str]
) -> None:
    """The machine of another project is not there."""
    body = {"stateMachineArn": machine.arn.replace("machine", "other", 2), "faults": FAULTS}
    assert call(key_of("ed"), "POST", "/api/faults", body)[0] == 400
