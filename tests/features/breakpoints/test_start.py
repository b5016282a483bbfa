"""An execution is started with breakpoints: by the form, by the API and in a terminal."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from django.utils.html import escape

import engine
from console.models import AuditEntry, Execution, HaltedExecution, RunRow, StateMachine
from console.store.machines.versions import publish_version
from tests.console.store.helpers import PASS, create, drain, function
from tests.features.branches.conftest import key_of, payments
from tests.features.projects.test_api import call

if TYPE_CHECKING:
    from collections.abc import Callable

    from django.test import Client

    from console.models import Project

__all__ = ["key_of", "payments"]
FORM = "/machines/machine/start/"
API = "/api/executions/start"
CALL = {
    "StartAt": "Call",
    "States": {
        "Call": {**function("work"), "Next": "Done"},
        "Done": {"Type": "Pass", "End": True},
    },
}


def shown(answer: Any) -> str:
    """Return the text of a page."""
    return str(answer.content.decode())


def states_of(execution: Execution) -> list[tuple[str, str]]:
    """Return where the lines of an execution stand, once it has been worked on."""
    drain(execution)
    row = HaltedExecution.objects.get(execution=execution)
    return [(line.state, line.when) for line in row.stops]


def test_the_form_starts_with_a_breakpoint(client: Client, project: Project) -> None:
    """It offers the states; the audit says where the execution stops."""
    create(project, CALL)
    assert 'id="break_state"' in shown(client.get(FORM))
    fields = {"name": "run", "input": "{}", "break_state": "Call", "break_when": "before"}
    assert client.post(FORM, fields).status_code == 302
    assert states_of(Execution.objects.get(name="run")) == [("Call", "before")]
    entry = AuditEntry.objects.get(action="StartExecution")
    assert entry.reason == "breakpoints: Call before"


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"break_state": "Nope"}, "got the state &#x27;Nope&#x27;"),
        ({"break_state": "Call", "break_when": "never"}, "wanted before, after, error"),
        ({"break_state": "Call", "break_hits": "0"}, "hits: got 0, wanted 1 to"),
        ({"break_state": "Call", "break_hits": "x"}, "The hit count must be a whole number"),
        ({"break_hits": "3"}, "Breakpoint 1: select a state."),
    ],
)
def test_the_form_refuses(
    client: Client, project: Project, fields: dict[str, str], words: str
) -> None:
    """It keeps what was typed, and nothing starts."""
    create(project, CALL)
    answer = client.post(FORM, {"name": "run", "input": "[7]"} | fields)
    assert answer.status_code == 422
    assert words in shown(answer)
    assert "[7]" in shown(answer)
    assert not Execution.objects.exists()


def test_operators_start_without_breakpoints(
    signed_in: Callable[[str], Client], project: Project
) -> None:
    """The form has no such field, and a request with it is refused in words."""
    create(project, CALL)
    operator = signed_in("operator")
    assert 'id="break_state"' not in shown(operator.get(FORM))
    answer = operator.post(FORM, {"name": "run", "input": "{}", "break_state": "Call"})
    assert answer.status_code == 422
    assert "Only editors and owners set breakpoints." in shown(answer)
    assert not Execution.objects.exists()


@pytest.mark.postgres_too
def test_express_machines_offer_none(client: Client, project: Project) -> None:
    """Nobody could look within their minutes."""
    create(project, CALL)
    StateMachine.objects.update(type="EXPRESS")
    assert 'id="break_state"' not in shown(client.get(FORM))
    answer = client.post(FORM, {"name": "run", "input": "{}", "break_state": "Call"})
    assert "An Express execution has no breakpoints." in shown(answer)
    assert not Execution.objects.exists()


def test_the_form_has_several_breakpoints_with_conditions(client: Client, project: Project) -> None:
    """Each row is one; rows without a state count for nothing."""
    create(project, CALL)
    fields = {
        "name": "run",
        "input": '{"n": 1}',
        "break_state": ["Call", "", "Done"],
        "break_when": ["before", "before", "after"],
        "break_condition": ["$states.input.n > 1", "", "{% $states.input.n = 1 %}"],
        "break_hits": ["3", "", ""],
    }
    assert client.post(FORM, fields).status_code == 302
    run = engine.Run.loads(RunRow.objects.get().snapshot, engine.DictValues())
    assert run.plan is not None
    assert run.plan.breakpoints == (
        engine.Breakpoint("Call", condition="$states.input.n > 1", hits=3),
        engine.Breakpoint("Done", engine.BreakTime.AFTER, "$states.input.n = 1"),
    )
    assert not HaltedExecution.objects.exists()


@pytest.mark.parametrize(
    ("condition", "state", "words"),
    [
        ("$states.input >", "Call", "wanted JSONata"),
        ("true", "", "The condition &#x27;true&#x27; has no state."),
    ],
)
def test_the_form_refuses_a_condition(
    client: Client, project: Project, condition: str, state: str, words: str
) -> None:
    """That cannot be read, or that nothing would ask; the second row stays open."""
    create(project, CALL)
    sent = {"break_state": ["Call", state], "break_condition": ["", condition], "name": "run"}
    answer = client.post(FORM, {**sent, "break_when": ["after", "before"], "input": "{}"})
    assert answer.status_code == 422
    assert words in shown(answer)
    assert f'value="{escape(condition)}"' in shown(answer)
    assert b"<details open><summary>More breakpoints" in answer.content
    assert '<option value="after" selected>' in shown(answer)
    assert not Execution.objects.exists()


def body_of(of: StateMachine, **members: str) -> dict[str, str]:
    """Return a call that stops before the task."""
    places = json.dumps([{"state": "Call"}, {"state": "Done", "when": "after"}])
    return {"machine": of.arn, "name": "run", "breakpoints": places} | members


def test_the_api_starts_with_breakpoints(payments: Project, key_of: Callable[[str], str]) -> None:
    """As an editor; an operator may not, though operators start executions."""
    machine = create(payments, CALL)
    status, refused = call(key_of("otto"), "POST", API, body_of(machine))
    assert (status, refused["__type"]) == (403, "AccessDeniedException")
    assert "DebugExecution" in refused["message"]
    assert not Execution.objects.exists()
    status, answer = call(key_of("ed"), "POST", API, body_of(machine, input="[1]"))
    assert status == 200
    execution = Execution.objects.get(arn=answer["executionArn"])
    assert answer["startDate"] == execution.start_ms / 1000
    assert execution.input == "[1]"
    assert states_of(execution) == [("Call", "before")]


@pytest.mark.parametrize(
    ("members", "words"),
    [
        ({"breakpoints": "{"}, "got no JSON"),
        ({"breakpoints": '[{"state":"Call","state":"Done"}]'}, "the key 'state' stands twice"),
        ({"breakpoints": '[{"state":"Call","why":1}]'}, "got 'why'"),
        ({"breakpoints": '[{"state":"Nope"}]'}, "got the state 'Nope'"),
        ({"stop": "Call"}, "there is no such member"),
    ],
)
def test_the_api_refuses(
    payments: Project, key_of: Callable[[str], str], members: dict[str, str], words: str
) -> None:
    """What cannot stop, and members that nobody reads."""
    machine = create(payments, CALL)
    status, refused = call(key_of("ed"), "POST", API, body_of(machine, **members))
    assert status == 400
    assert words in refused["message"]
    assert not Execution.objects.exists()


def test_a_running_execution_gets_no_breakpoints_by_its_name(
    payments: Project, key_of: Callable[[str], str]
) -> None:
    """A second start with a name and breakpoints is refused: the first one has others."""
    machine = create(payments, CALL)
    assert call(key_of("ed"), "POST", API, body_of(machine))[0] == 200
    status, refused = call(key_of("ed"), "POST", API, body_of(machine))
    assert (status, refused["__type"]) == (400, "ExecutionAlreadyExists")


@pytest.mark.postgres_too
def test_a_version_has_its_own_states(payments: Project, key_of: Callable[[str], str]) -> None:
    """The breakpoints are checked against what runs, not against the current definition."""
    machine = create(payments, CALL)
    other = create(payments, PASS, "other")
    version = publish_version(machine)
    StateMachine.objects.filter(pk=machine.pk).update(definition=other.definition)
    body = body_of(machine, machine=version.arn)
    status, answer = call(key_of("ed"), "POST", API, body)
    assert status == 200, answer
    assert states_of(Execution.objects.get(arn=answer["executionArn"])) == [("Call", "before")]
