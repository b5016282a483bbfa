"""The page of the resilience report."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from console.db import audit
from console.features.named_inputs import store
from console.features.resilience import views
from console.statuses import MachineType
from console.store.executions.start import start_execution
from console.store.tasks import activities, claim, complete
from tests.console.store.helpers import ACTIVITY, REGION, create, drain
from tests.console.web.helpers import markup
from tests.features.resilience.machines import WEAK, WELL_MADE

if TYPE_CHECKING:
    from collections.abc import Callable

    from django.test import Client

    from console.models import Execution, Project, StateMachine

ADDRESS = "/machines/machine/resilience/"


def shown(client: Client, project: Project, definition: Any) -> str:
    """Return the page of a definition."""
    create(project, definition)
    return markup(client.get(ADDRESS))


def test_weaknesses_have_a_remedy(client: Client, project: Project) -> None:
    """State, tested place, what is weak and what to change."""
    text = shown(client, project, WEAK["MaxAttempts 0"][1])
    assert "No retries." in text
    assert "MaxAttempts is 0: this Retrier never retries." in text
    assert "Set MaxAttempts to 1 or more, or remove the Retrier." in text


def test_states_lead_to_the_editor(
    client: Client, project: Project, signed_in: Callable[[str], Client]
) -> None:
    """For editors; a viewer sees the name only."""
    text = shown(client, project, WEAK["MaxAttempts 0"][1])
    link = '<a href="/machines/machine/edit/?state=Charge">'
    weak, _, tried = text.partition('id="trials"')
    assert link in weak
    assert link in tried
    assert "/edit/" not in markup(signed_in("viewer").get(ADDRESS))


def test_trials_have_time_calls_and_cost(client: Client, project: Project) -> None:
    """1 + 2 + 4 + 8 + 16 seconds, 6 calls, 5 retries."""
    text = shown(client, project, WELL_MADE["a Task"])
    assert "No weaknesses" in text
    assert "Every call fails with Lambda.TooManyRequestsException" in text
    assert "by Charge/Catch[0], continues at Failed" in text
    for cell in (">31 s<", ">6<", ">$0.000125<"):
        assert cell in text


def test_each_weakness_has_a_heading() -> None:
    """A new kind must be shown as well."""
    codes = {code for code, _ in WEAK.values()}
    assert codes == set(views.TITLES)


def test_nothing_to_try(client: Client, project: Project) -> None:
    """A machine without calls."""
    definition = {"StartAt": "A", "States": {"A": {"Type": "Pass", "End": True}}}
    assert "Nothing to try" in shown(client, project, definition)


def test_a_page_takes_a_few_seconds_at_most(
    client: Client, project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is not tried is counted, and the command that tries it is named."""
    monkeypatch.setattr(views, "MOST_SECONDS", 0.0)
    states = {f"S{n}": {"Type": "Pass", "Next": f"S{n + 1}"} for n in range(3)}
    charge = {**WELL_MADE["a Task"]["States"], **states}
    charge["S3"] = {"Type": "Pass", "Next": "Charge"}
    text = shown(client, project, {"StartAt": "S0", "States": charge})
    assert "Nothing to try" not in text
    assert "not tried here" in text
    assert "stateyard resilience machine" in text


CHOOSES = {
    "StartAt": "Which",
    "States": {
        "Which": {
            "Type": "Choice",
            "Choices": [{"Variable": "$.id", "NumericLessThan": 3, "Next": "Ask"}],
            "Default": "Bad",
        },
        "Ask": {
            "Type": "Task",
            "Resource": ACTIVITY,
            "Catch": [{"ErrorEquals": ["No"], "Next": "Lost"}],
            "Next": "Done",
        },
        "Done": {"Type": "Succeed"},
        "Bad": {"Type": "Fail"},
        "Lost": {"Type": "Fail", "ErrorPath": "$.Cause"},
    },
}
"""Succeeds with an id below 3; the error of its Catcher is data."""


def succeed(machine: StateMachine, data: str = '{"id": 1}', output: str = "{}") -> Execution:
    """Run an execution to its end, whose activity answers."""
    activities.create_activity(machine.project, REGION, "work")
    execution = drain(start_execution(machine, input=data, name="good"))
    work = claim.take_activity_task(ACTIVITY, "w")
    assert work is not None
    complete.succeed(work.token, output)
    return drain(execution)


def test_the_last_success_lends_its_answers(client: Client, project: Project) -> None:
    """The page says whose they are; a definition that they do not fit is tried state by state."""
    machine = create(project, CHOOSES)
    assert "Each state runs by itself." in markup(client.get(ADDRESS))
    succeed(machine)
    text = markup(client.get(ADDRESS))
    assert 'States that<a href="/machines/machine/executions/good/">good</a>entered' in text
    assert "its input and answers" in text
    assert "prints the same report" in text
    assert '<select id="input"' not in text


def test_a_named_input_is_selected(client: Client, project: Project) -> None:
    """In the report and in the command that prints it; one that leads elsewhere is refused."""
    machine = create(project, CHOOSES)
    for name, text in (("two", '{"id": 2}'), ("three", '{"id": 3}')):
        store.put_input(machine, name, text, audit.Actor("ana"))
    assert "None, each state by itself" in markup(client.get(ADDRESS))
    assert "No execution has succeeded" in markup(client.get(f"{ADDRESS}?input=two"))
    succeed(machine)
    text = markup(client.get(f"{ADDRESS}?input=two"))
    assert '<option value="two" selected>two</option>' in text
    assert "the named input<b>two</b>and its answers" in text
    assert "resilience machine --input-name &quot;two&quot;" in text.replace(
        '"two"', "&quot;two&quot;"
    )
    refused = client.get(f"{ADDRESS}?input=three")
    assert "With the named input “three” and the answers of its last success" in markup(refused)
    assert 'id="trials"' not in markup(refused)
    assert client.get(f"{ADDRESS}?input=four").status_code == 404


def test_a_long_history_is_for_the_command(
    client: Client, project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The page says so, also for a named input."""
    machine = create(project, CHOOSES)
    store.put_input(machine, "two", '{"id": 2}', audit.Actor("ana"))
    succeed(machine)
    monkeypatch.setattr(views, "MOST_EVENTS", 3)
    assert "the history of the last success is too long for this page" in markup(
        client.get(ADDRESS)
    )
    assert "prints the whole report" in markup(client.get(ADDRESS))
    refused = markup(client.get(f"{ADDRESS}?input=two"))
    assert "The history of the last success is too long for this page." in refused


def test_recorded_data_is_masked(client: Client, project: Project) -> None:
    """An error that a Fail state takes from data; those of the definition are shown."""
    definition = json.loads(json.dumps(CHOOSES))
    definition["States"]["Lost"] = {"Type": "Fail", "ErrorPath": "$$.Execution.Input.card"}
    machine = create(project, definition)
    succeed(machine, '{"id": 1, "card": "secret-4711"}')
    assert "with secret-4711" in markup(client.get(ADDRESS))
    project.masked = "$.card"
    project.save()
    text = markup(client.get(ADDRESS))
    assert "secret-4711" not in text
    assert "with (masked)" in text


@pytest.mark.postgres_too
def test_express_executions_lend_nothing(project: Project) -> None:
    """As for the command: the API has no list of them."""
    machine = create(project, CHOOSES)
    succeed(machine)
    assert views._last_success(machine) is not None
    machine.type = MachineType.EXPRESS
    assert views._last_success(machine) is None
