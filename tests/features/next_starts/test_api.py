"""The HTTP API of next starts: set, listed and removed by keys of editors."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import pytest

from console.models import AuditEntry, StateMachine
from console.store.executions import next_starts
from tests.console.store.executions.test_next_starts import BUSY, CALLED, as_read, start
from tests.console.store.helpers import create
from tests.features.branches.conftest import key_of, payments
from tests.features.projects.test_api import call

if TYPE_CHECKING:
    from collections.abc import Callable

    from console.models import Project

__all__ = ["key_of", "payments"]
API, REMOVE = "/api/next-starts", "/api/next-starts/remove"


@pytest.fixture
def machine(payments: Project) -> StateMachine:
    """Return a machine with a call."""
    return create(payments, CALLED)


def body_of(machine: StateMachine, **members: Any) -> dict[str, Any]:
    """Return a call that sets a breakpoint and a fault for three starts."""
    places = [{"state": "Call", "when": "after", "condition": "true", "hits": 2}]
    return {
        "machine": machine.arn,
        "starts": "3",
        "hours": "5",
        "breakpoints": json.dumps(places),
        "faults": json.dumps([BUSY]),
        **members,
    }


def test_an_editor_sets_lists_and_removes(
    machine: StateMachine, key_of: Callable[[str], str]
) -> None:
    """A viewer lists; nobody reads conditions."""
    key = key_of("ed")
    status, answer = call(key, "POST", API, body_of(machine))
    assert status == 201, answer
    assert answer["until"] - answer["since"] == 5 * 3600
    assert {name: answer[name] for name in ("starts", "taken", "by", "problem")} == {
        "starts": 3,
        "taken": 0,
        "by": "ed",
        "problem": "",
    }
    assert answer["breakpoints"] == ["Stops after Call, with a condition, from hit 2 on"]
    assert answer["faults"] == ["Call fails with Busy before its call"]
    assert call(key, "POST", API, body_of(machine)) == (201, answer)
    assert call(key, "POST", API, body_of(machine, starts=3, hours=5)) == (201, answer)
    assert next_starts.place_of(start(machine, name="a")) is not None
    listed = 200, {"nextStarts": [{**answer, "taken": 1}]}
    assert call(key_of("vera"), "GET", API) == listed
    assert call(key, "GET", f"{API}?machine={quote(machine.arn, safe='')}") == listed
    status, refused = call(key, "POST", API, body_of(machine))
    assert (status, refused["__type"]) == (409, "ConflictException")
    status, removed = call(key, "POST", REMOVE, {"machine": machine.arn})
    assert (status, removed["taken"]) == (200, 1)
    assert call(key, "GET", API) == (200, {"nextStarts": []})
    assert call(key, "POST", REMOVE, {"machine": machine.arn})[0] == 409
    actions = AuditEntry.objects.filter(target=machine.arn, actor="ed")
    assert [*actions.order_by("pk").values_list("action", flat=True)] == [
        "SetNextStarts",
        "RemoveNextStarts",
    ]


@pytest.mark.parametrize("name", ["otto", "vera"])
def test_others_may_not(machine: StateMachine, key_of: Callable[[str], str], name: str) -> None:
    """Neither set nor remove."""
    for path, body in ((API, body_of(machine)), (REMOVE, {"machine": machine.arn})):
        status, refused = call(key_of(name), "POST", path, body)
        assert (status, refused["__type"]) == (403, "AccessDeniedException")
    assert as_read(machine).next_starts is None


@pytest.mark.parametrize(
    ("members", "words"),
    [
        ({"starts": "101"}, "starts: got 101, expected 1 to 100"),
        ({"starts": "1000000000000"}, "starts: got 1000000000000, expected 1 to 100"),
        ({"hours": "1" * 5_000}, "expected a whole number"),
        ({"starts": "two"}, "starts: got 'two', expected a whole number"),
        ({"hours": "169"}, "hours: got 169, expected 1 to 168"),
        ({"breakpoints": "{"}, "got no JSON"),
        ({"faults": "["}, "faults must be a JSON text"),
        ({"faults": "[" * 50_000}, "faults must be a JSON text: nested deeper than 500 levels"),
        ({"faults": '[{"state": "Call", "cause": "\\ud800"}]'}, "a lone surrogate"),
        ({"faults": '[{"state": "A", "state": "B"}]'}, "the key 'state' stands twice"),
        ({"breakpoints": '[{"state": "A", "state": "B"}]'}, "the key 'state' stands twice"),
        ({"faults": "[]"}, "faults: got none"),
        ({"faults": '[{"state": "No"}]'}, "faults[0].state: got the state 'No'"),
        ({"until": "tomorrow"}, "there is no such member"),
    ],
)
def test_what_is_not_understood_is_refused(
    machine: StateMachine, key_of: Callable[[str], str], members: dict[str, str], words: str
) -> None:
    """By its name."""
    status, refused = call(key_of("ed"), "POST", API, body_of(machine, **members))
    assert status == 400
    assert words in refused["message"]
    assert as_read(machine).next_starts is None


def test_a_machine_of_another_project_is_not_there(
    project: Project, machine: StateMachine, key_of: Callable[[str], str]
) -> None:
    """Whoever knows its ARN."""
    other = create(project, CALLED, "other")
    for body, path in ((body_of(other), API), ({"machine": other.arn}, REMOVE)):
        status, refused = call(key_of("ed"), "POST", path, body)
        assert (status, refused["__type"]) == (400, "StateMachineDoesNotExist")
    status, _ = call(key_of("vera"), "GET", f"{API}?machine={quote(other.arn, safe='')}")
    assert status == 400
    assert machine.project_id != other.project_id


def test_an_express_machine_is_refused(machine: StateMachine, key_of: Callable[[str], str]) -> None:
    """In words."""
    StateMachine.objects.filter(pk=machine.pk).update(type="EXPRESS")
    status, refused = call(key_of("ed"), "POST", API, body_of(machine))
    assert status == 400
    assert "Express execution" in refused["message"]
