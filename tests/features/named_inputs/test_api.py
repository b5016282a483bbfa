"""The HTTP API of named inputs: signed calls of members, in the project of their key."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from console.features.named_inputs import store
from console.models import AuditEntry, Project
from console.store.machines import machines
from tests.console.store.helpers import PASS, create
from tests.features.branches.conftest import BY, key_of, payments
from tests.features.projects.test_api import call

if TYPE_CHECKING:
    from collections.abc import Callable

    from console.models import StateMachine

__all__ = ["key_of", "payments"]
ADDRESS = "/api/inputs?machine=machine"


@pytest.fixture
def machine(payments: Project) -> StateMachine:
    """Return a machine with an input."""
    machine = create(payments, PASS)
    store.put_input(machine, "paid", '{"card": "4111"}', BY)
    return machine


def test_names_are_listed_and_a_text_is_read(
    machine: StateMachine, key_of: Callable[[str], str]
) -> None:
    """By the name or the ARN of the machine; a viewer gets no text."""
    assert call(key_of("vera"), "GET", ADDRESS) == (200, {"names": ["paid"]})
    answer = (200, {"name": "paid", "input": '{"card": "4111"}'})
    assert call(key_of("otto"), "GET", f"{ADDRESS}&name=paid") == answer
    by_arn = f"/api/inputs?machine={machine.arn.replace(':', '%3A')}&name=paid"
    assert call(key_of("otto"), "GET", by_arn) == answer
    status, refused = call(key_of("vera"), "GET", f"{ADDRESS}&name=paid")
    assert (status, refused["__type"]) == (403, "AccessDeniedException")


def test_an_input_is_saved(machine: StateMachine, key_of: Callable[[str], str]) -> None:
    """By an operator, not by a viewer; once under a name."""
    body = {"machine": "machine", "name": "new", "input": "[1]"}
    assert call(key_of("vera"), "POST", "/api/inputs", body)[0] == 403
    assert call(key_of("otto"), "POST", "/api/inputs", body) == (201, {"name": "new"})
    assert call(key_of("otto"), "POST", "/api/inputs", body)[1]["__type"] == "ConflictException"
    assert store.get_input(machine, "new").text == "[1]"


def test_a_read_of_hidden_values_is_noted(
    machine: StateMachine, payments: Project, key_of: Callable[[str], str]
) -> None:
    """As the API gives them to operators elsewhere; an input without any is not noted."""
    store.put_input(machine, "plain", "1", BY)
    Project.objects.filter(pk=payments.pk).update(masked="$.card")
    call(key_of("otto"), "GET", f"{ADDRESS}&name=plain")
    assert not AuditEntry.objects.filter(action="RevealPayloads").exists()
    assert "4111" in call(key_of("otto"), "GET", f"{ADDRESS}&name=paid")[1]["input"]
    row = AuditEntry.objects.get(action="RevealPayloads")
    assert (row.actor, row.target) == ("otto", machine.arn)
    assert row.reason == "input “paid” read by GetNamedInput"


@pytest.mark.parametrize(
    ("query", "code"),
    [
        ("machine=other", "StateMachineDoesNotExist"),
        ("machine=machine&name=gone", "ResourceNotFound"),
    ],
)
def test_what_is_not_there_is_named(
    machine: StateMachine, key_of: Callable[[str], str], query: str, code: str
) -> None:
    """The machine, or the input of it."""
    assert call(key_of("otto"), "GET", f"/api/inputs?{query}")[1]["__type"] == code


def test_a_name_in_two_regions_is_refused(
    payments: Project, machine: StateMachine, key_of: Callable[[str], str]
) -> None:
    """An ARN names one of the state machines."""
    role = "arn:aws:iam::123456789012:role/test"
    machines.create_machine(
        payments, "eu-west-1", name="machine", definition=json.dumps(PASS), role_arn=role
    )
    status, answer = call(key_of("otto"), "GET", f"{ADDRESS}&name=paid")
    assert status == 400
    assert "several regions" in answer["message"]
    by_arn = f"/api/inputs?machine={machine.arn.replace(':', '%3A')}&name=paid"
    assert call(key_of("otto"), "GET", by_arn)[0] == 200
