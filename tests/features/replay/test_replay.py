"""X20: a new execution begins in a state of another one, with its input or an edited one."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

import engine
from console.errors import ValidationException
from console.features.bulk.replays import read_beginning
from console.models import AuditEntry, Execution, Project
from console.store.executions import redrive as redrives
from console.store.executions import replay
from console.store.machines import machines
from tests.console.store.helpers import assert_nothing_wrong, create, drain, function, start, types
from tests.console.web.helpers import MARKUP, page, text
from tests.features.test_state.test_scenario import answer, differences, scenario

if TYPE_CHECKING:
    from collections.abc import Callable

    from django.test import Client

DEFINITION: dict[str, Any] = {
    "QueryLanguage": "JSONata",
    "StartAt": "First",
    "States": {
        "First": {
            "Type": "Pass",
            "Assign": {"n": 3},
            "Output": {"order": 7},
            "Next": MARKUP,
        },
        MARKUP: {"Type": "Pass", "Output": "{% {'order': $states.input.order} %}", "Next": "Pay"},
        "Pay": {**function("pay"), "Output": "{% $states.input.order * $n %}", "Next": "Both"},
        "Both": {
            "Type": "Parallel",
            "Branches": [{"StartAt": "In", "States": {"In": {"Type": "Pass", "End": True}}}],
            "End": True,
        },
    },
}


@pytest.fixture
def failed(project: Project) -> Execution:
    """Return an execution whose third state failed."""
    execution = drain(start(create(project, DEFINITION), {"order": 1}, "x"))
    return answer(execution, "Pay", ("Bad", "it broke"))


def post_replay(
    client: Client, execution: Execution, step: str = "Pay", **fields: str
) -> Execution:
    """Post the form and return the new execution, taken as far as it goes."""
    answered = client.post(page(execution, f"replay/?step={step}"), {"name": "again", **fields})
    assert answered.status_code == 302, answered.content
    return drain(Execution.objects.get(name=fields.get("name", "again")))


def test_x20_the_form_has_what_was_recorded(client: Client, failed: Execution) -> None:
    """The panel leads to it; input and variables are those of the visit."""
    shown = text(client.get(page(failed, "?step=Pay")))
    assert f"{page(failed, 'replay/')}?step=Pay&visit=1" in shown
    context = client.get(page(failed, "replay/?step=Pay")).context
    assert (context["input"], context["variables"]) == ('{"order":7}', '{"n":3}')
    form = text(client.get(page(failed, "replay/?step=Pay")))
    assert "Stateyard only, not an AWS operation." in form
    assert client.get(page(failed, "replay/?step=First")).context["variables"] == "{}"


def test_x20_a_new_execution_begins_in_the_state(client: Client, failed: Execution) -> None:
    """Nothing before runs again; input and variables are as edited, and the page says whence."""
    replay = post_replay(client, failed, input='{"order": 5}', variables='{"n": 4}')
    assert types(replay)[:3] == ["ExecutionStarted", "TaskStateEntered", "LambdaFunctionScheduled"]
    done = answer(replay, "Pay", None)
    assert (done.status, json.loads(done.output or "")) == ("SUCCEEDED", [20])
    shown = text(client.get(page(done)))
    assert "Replay (Stateyard only)." in shown
    assert f'href="/arn/{failed.arn}"' in shown
    assert done.definition_id == failed.definition_id
    assert Execution.objects.get(pk=failed.pk).status == "FAILED"
    entry = AuditEntry.objects.get(target=done.arn)
    assert (entry.action, entry.actor) == ("StartExecution", "editor")
    assert entry.reason == f"replay of {failed.arn} from Pay"
    assert "Replay (Stateyard only)" not in text(client.get(page(failed)))
    assert_nothing_wrong()


def test_x20_it_is_an_execution_like_any_other(client: Client, failed: Execution) -> None:
    """It can be redriven, shows its variables, and becomes a test that begins where it began."""
    replay = post_replay(client, failed, input='{"order": 5}', variables='{"n": 4}')
    answer(replay, "Pay", ("Bad", "again"))
    redrives.redrive_execution(Execution.objects.get(pk=replay.pk))
    drain(replay)
    done = answer(replay, "Pay", None)
    assert json.loads(done.output or "") == [20]
    moment = client.get(page(done, "?at=2")).context["moment"]
    assert [(name, payload.text) for name, payload in moment.variables] == [("n", "4")]
    file = scenario(client, done)
    assert file["Scenario"]["Start"]["StartAt"] == "Pay"
    assert differences(file) == []


def test_x20_the_definition_of_now_can_be_chosen(client: Client, failed: Execution) -> None:
    """Where it was changed since; else there is nothing to choose."""
    assert 'name="definition"' not in text(client.get(page(failed, "replay/?step=Pay")))
    changed = json.loads(json.dumps(DEFINITION))
    changed["States"]["Pay"] = {"Type": "Succeed", "Output": "mended"}
    changed["States"]["Both"]["Comment"] = "unreached"
    changed["States"][MARKUP]["Next"] = "Both"
    changed["States"]["First"]["Next"] = "Way"
    way = {"Condition": "{% $n = 3 %}", "Next": MARKUP}
    changed["States"]["Way"] = {"Type": "Choice", "Choices": [way], "Default": "Pay"}
    machine = failed.state_machine
    assert machine is not None
    machines.update_machine(machine, definition=json.dumps(changed))
    assert 'name="definition"' in text(client.get(page(failed, "replay/?step=Pay")))
    new = post_replay(client, failed, input="{}", definition="changed")
    assert (new.status, new.output) == ("SUCCEEDED", '"mended"')
    old = post_replay(client, failed, input='{"order": 1}', name="old", definition="")
    assert old.definition_id == failed.definition_id


@pytest.mark.parametrize(
    ("step", "fields", "said"),
    [
        ("Pay", {"input": "{"}, "Unexpected"),
        ("Pay", {"input": "{}", "variables": "[1]"}, "enter a JSON object"),
        ("Pay", {"input": "{}", "variables": "{"}, "Invalid variables"),
        ("Pay", {"input": "{}", "name": "x"}, "Execution Already Exists"),
        ("In", {"input": "{}"}, "outside any Parallel or Map"),
        ("Nope", {"input": "{}"}, "'Nope' is not a state"),
    ],
)
def test_x20_what_makes_no_sense_is_refused(
    client: Client, failed: Execution, step: str, fields: dict[str, str], said: str
) -> None:
    """The form comes back as it was typed."""
    answered = client.post(page(failed, f"replay/?step={step}"), fields)
    assert said in text(answered, 422)
    assert Execution.objects.count() == 1


def test_x20_there_is_a_right_to_it(
    signed_in: Callable[[str], Client], client: Client, failed: Execution
) -> None:
    """A viewer finds no link and no form; a state that was not entered has none either."""
    viewer = signed_in("viewer")
    assert "Replay from here" not in text(viewer.get(page(failed, "?step=Pay")))
    assert viewer.get(page(failed, "replay/?step=Pay")).status_code == 403
    assert "did not enter" in text(client.get(page(failed, "replay/?step=Both")), 404)


def test_x20_a_payload_that_speaks_of_an_origin_is_none(project: Project) -> None:
    """What an input says is not what the snapshot says."""
    data = {"origin": "arn:aws:states:us-east-1:123456789012:execution:a:b"}
    execution = start(create(project, DEFINITION), data, "x")
    assert replay.origin_of(Execution.objects.get(pk=execution.pk)) is None


def test_x20_the_deleted_machine_starts_nothing(client: Client, failed: Execution) -> None:
    """And the page says so instead of offering a form."""
    Execution.objects.filter(pk=failed.pk).update(state_machine=None)
    assert "its state machine was deleted" in text(client.get(page(failed, "replay/?step=Pay")))
    with pytest.raises(Exception, match="is not here"):
        replay.start_replay(Execution.objects.get(pk=failed.pk), "Pay", input="{}")


def test_x20_a_start_in_a_state_survives_its_snapshot() -> None:
    """The state is entered in the first step, so every version of the engine can go on from it."""
    machine = engine.parse(json.dumps(DEFINITION))
    message = engine.Start("a", "b", "c", "d", "e", "{}", 0, start_at="Pay", variables='{"n":1}')
    step = engine.advance(machine, engine.NEW_RUN, message, engine.Moment(0), budget=0)
    assert [event.type for event in step.events] == ["ExecutionStarted", "TaskStateEntered"]
    (frame,) = step.run.frames.values()
    assert (frame.phase, frame.state, frame.variables) == ("ready", "Pay", '{"n":1}')


@pytest.mark.postgres_too
def test_a_hidden_value_stays_hidden(project: Project, client: Client) -> None:
    """A state has it under another path: an execution that begins there would show it."""
    states = {
        "Take": {"Type": "Pass", "Parameters": {"number.$": "$.card", "card": 1}, "Next": "Pay"},
        "Pay": {**function("pay"), "End": True},
    }
    machine = create(project, {"StartAt": "Take", "States": states})
    execution = drain(start(machine, {"card": "4242 4242"}))
    execution = answer(execution, "Pay", ("Bad", "it broke"))
    Project.objects.filter(pk=project.pk).update(masked="$.card")
    address = page(execution, "replay/?step=Pay")
    sent = {"input": '{"number": "(masked)", "card": "(masked)"}', "variables": ""}
    answered = client.post(address, sent)
    assert "has values that the project masks at another path" in text(answered, 422)
    fixed = json.dumps({"Comment": "fixed", "StartAt": "Take", "States": states})
    machines.update_machine(machine, definition=fixed)
    with pytest.raises(ValidationException, match="masks at another path"):
        read_beginning(Execution.objects.get(pk=execution.pk))
    sent["input"] = '{"number": "5", "card": "(masked)"}'
    assert client.post(address, sent).status_code == 302
    Project.objects.filter(pk=project.pk).update(masked="$.card\n$.number")
    assert client.post(address, sent).status_code == 302
    assert read_beginning(Execution.objects.get(pk=execution.pk)).state == "Pay"
