"""X11: an execution becomes a test, which does again what was done."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from django.core.management import call_command

import engine
from console.integrations import mocks
from console.integrations.outcome import Failed, Succeeded
from console.integrations.targets import MachineKey
from console.masking import mask
from console.models import Execution, TaskRow, Timer
from console.store.executions import redrive as redrives
from console.store.executions.start import start_execution
from console.store.executions.stop import stop_execution
from console.store.state import inbox
from console.store.tasks import activities
from tests.console.store.helpers import (
    ACTIVITY,
    PASS,
    REGION,
    create,
    drain,
    ended,
    function,
    one,
    start,
)
from tests.console.web.helpers import CHAIN, page, text
from tests.features.imports.test_imports import ARN, HISTORY, brought

if TYPE_CHECKING:
    from pathlib import Path

    from django.test import Client

    from console.models import Project

MACHINE = MachineKey("default", "machine")
RETRY = [{"ErrorEquals": ["Busy"], "IntervalSeconds": 1, "MaxAttempts": 3}]
CATCHING = {"ErrorEquals": ["Bad"], "Next": "Last"}
CATCH = [{"ErrorEquals": ["States.ALL"], "ResultPath": "$.e", "Next": "Sorry"}]
ITEM = {
    "StartAt": "Look",
    "States": {"Look": function("look", Retry=RETRY, Next="Send"), "Send": function("send")},
}
ITEM["States"]["Send"]["End"] = True
SHOP: dict[str, Any] = {
    "StartAt": "Pay",
    "States": {
        "Pay": function("pay", Retry=RETRY, Catch=CATCH, ResultPath="$.paid", Next="Nap"),
        "Nap": {"Type": "Wait", "Seconds": 600, "Next": "Each"},
        "Each": {
            "Type": "Map",
            "ItemsPath": "$.items",
            "ItemProcessor": ITEM,
            "ResultPath": "$.sent",
            "Next": "Ask",
        },
        "Ask": {"Type": "Task", "Resource": ACTIVITY, "Catch": CATCH, "End": True},
        "Sorry": {"Type": "Pass", "End": True},
    },
}


def answer(execution: Execution, state: str, outcome: Any, nth: int = 0) -> Execution:
    """Let an open task of a state succeed with a value, or fail with (error, cause)."""
    rows = TaskRow.objects.filter(execution_id=execution.pk, state=state, closed_ms=None)
    number = rows.order_by("task").values_list("task", flat=True)[nth]
    rows.filter(task=number).update(status="closed", closed_ms=1)
    failed = isinstance(outcome, tuple)
    message: engine.Message = engine.TaskSucceeded(number, json.dumps(outcome))
    if failed:
        message = engine.TaskFailed(number, *outcome)
    inbox.post_message(execution.pk, message)
    return drain(execution)


def hurry(execution: Execution) -> None:
    """Let the open timers fire."""
    Timer.objects.update(due_ms=0)
    drain(execution)


@pytest.fixture
def shopped(project: Project) -> Execution:
    """Return an execution with retries, a wait, two items done crosswise, and a caught error."""
    activities.create_activity(project, REGION, "work")
    execution = drain(start(create(project, SHOP), {"items": ["a", "b"]}, "x"))
    answer(execution, "Pay", ("Busy", "later"))
    hurry(execution)
    answer(execution, "Pay", {"id": 7})
    hurry(execution)
    answer(execution, "Look", {"look": "second"}, nth=1)
    answer(execution, "Send", {"send": "second"})
    answer(execution, "Look", ("Busy", None))
    hurry(execution)
    answer(execution, "Look", {"look": "first"})
    answer(execution, "Send", {"send": "first"})
    return answer(execution, "Ask", ("Refused", "not today"))


def scenario(client: Client, execution: Execution) -> dict[str, Any]:
    """Download an execution as a test."""
    document: dict[str, Any] = json.loads(text(client.get(page(execution, "scenario.json"))))
    return document


def differences(file: dict[str, Any]) -> list[str]:
    """Replay a scenario."""
    return [str(difference) for difference in engine.replay(json.dumps(file))]


def test_x11_an_execution_is_replayed_to_the_same_end(client: Client, shopped: Execution) -> None:
    """Same path and output, whichever iteration was faster."""
    file = scenario(client, shopped)
    assert shopped.status == "SUCCEEDED"
    assert file["Scenario"]["Expected"]["Output"] == json.loads(shopped.output or "")
    paths = {line["Line"]: line["States"] for line in file["Scenario"]["Expected"]["Path"]}
    assert paths == {
        "": ["Pay", "Nap", "Each", "Ask", "Sorry"],
        "Each[0]": ["Look", "Send"],
        "Each[1]": ["Look", "Send"],
    }
    assert differences(file) == []


def test_x11_the_file_is_a_mock_configuration(
    client: Client, shopped: Execution, settings: Any
) -> None:
    """Each state answers in the order in which it was called."""
    settings.STATEYARD_MOCKS = scenario(client, shopped)
    assert mocks.test_cases(MACHINE) == ["x"]
    assert mocks.mocked_outcome(MACHINE, "x", "Pay", 0) == Failed("Busy", "later")
    assert mocks.mocked_outcome(MACHINE, "x", "Pay", 1) == Succeeded('{"id":7}')
    assert mocks.mocked_outcome(MACHINE, "x", "Look", 0) == Failed("Busy", None)
    assert mocks.mocked_outcome(MACHINE, "x", "Look", 1) == Succeeded('{"look":"second"}')


def test_x11_the_file_has_what_test_state_is_asked(client: Client, shopped: Execution) -> None:
    """Each attempt's input and mock give what the attempt gave."""
    file = scenario(client, shopped)
    definition = json.dumps(file["Scenario"]["Definition"])
    told = []
    for one_of_them in file["TestState"]:
        machine, name = engine.parse_state(definition, one_of_them["stateName"])
        mock = one_of_them["mock"]
        error = mock.get("errorOutput", {})
        trial = engine.try_state(
            machine,
            name,
            one_of_them["input"],
            engine.Moment(0),
            about={},
            mock=engine.Mock(mock.get("result"), error.get("error"), error.get("cause")),
            retries=one_of_them.get("stateConfiguration", {}).get("retrierRetryCount", 0),
        )
        told.append((name, trial.status))
    assert told == [
        ("Pay", "RETRIABLE"),
        ("Pay", "SUCCEEDED"),
        ("Each", "SUCCEEDED"),
        ("Look", "RETRIABLE"),
        ("Look", "SUCCEEDED"),
        ("Look", "SUCCEEDED"),
        ("Send", "SUCCEEDED"),
        ("Send", "SUCCEEDED"),
        ("Ask", "CAUGHT_ERROR"),
    ]


def test_x11_stops_and_redrives_are_part_of_it(project: Project, client: Client) -> None:
    """What was stopped, redriven and then failed does so again."""
    definition = {
        "StartAt": "First",
        "States": {"First": function("a", Next="Then"), "Then": function("b", End=True)},
    }
    execution = drain(start(create(project, definition), name="x"))
    answer(execution, "First", 1)
    stop_execution(execution, error="No", cause="wrong")
    redrives.redrive_execution(Execution.objects.get(pk=execution.pk))
    drain(execution)
    failed = answer(execution, "Then", ("Bad", "it broke"))
    file = scenario(client, failed)
    assert [act["Act"] for act in file["Scenario"]["Acts"]] == ["Stop", "Redrive"]
    assert file["Scenario"]["Expected"]["Error"] == "Bad"
    assert differences(file) == []


@pytest.mark.postgres_too
def test_x11_a_timeout_comes_again(project: Project, client: Client) -> None:
    """The execution's own limit counts, not its machine's."""
    machine = create(project, one("A", **function("a")))
    execution = drain(start_execution(machine, name="x", timeout_s=60))
    hurry(execution)
    execution = Execution.objects.get(pk=execution.pk)
    assert execution.status == "TIMED_OUT"
    assert differences(scenario(client, execution)) == []


@pytest.mark.usefixtures("worker")
@pytest.mark.parametrize("kind", ["distributed", "parallel"])
def test_x11_groups_are_replayed(project: Project, client: Client, kind: str) -> None:
    """A distributed Map gives what its Map Run gave; a failed branch fails again."""
    item = {"StartAt": "Double", "States": {"Double": {"Type": "Pass", "End": True}}}
    config = {"ProcessorConfig": {"Mode": "DISTRIBUTED", "ExecutionType": "STANDARD"}}
    fails = {"StartAt": "F", "States": {"F": {"Type": "Fail", "Error": "Bad"}}}
    states: dict[str, Any] = {
        "distributed": {
            "Type": "Map",
            "ItemProcessor": {**item, **config},
            "Items": "{% $n %}",
            "Output": "{% {'all': $states.result} %}",
        },
        "parallel": {"Type": "Parallel", "Branches": [item, fails], "Catch": [CATCHING]},
    }
    assign = {"Type": "Pass", "Assign": {"n": "{% $states.input.n %}"}, "Next": "Group"}
    definition = {
        "QueryLanguage": "JSONata",
        "StartAt": "First",
        "States": {
            "First": assign,
            "Group": {**states[kind], "Next": "Last"},
            "Last": {"Type": "Pass", "End": True},
        },
    }
    done = ended(start(create(project, definition), {"n": [1, 2]}, "x"))
    assert done.status == "SUCCEEDED"
    file = scenario(client, done)
    assert differences(file) == []
    mocked = {request["stateName"]: request for request in file["TestState"]}
    if kind == "distributed":
        assert json.loads(mocked["Group"]["mock"]["result"]) == [1, 2]
        assert mocked["Group"]["variables"] == '{"n":[1,2]}'


def test_x11_the_command_compares_and_says_what_differs(
    client: Client, shopped: Execution, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Exit code 0 and a line; with a changed definition 1 and what, where, got, wanted."""
    file, changed = tmp_path / "x.json", tmp_path / "changed.json"
    file.write_text(json.dumps(scenario(client, shopped)), encoding="utf-8")
    call_command("replay", str(file))
    assert capsys.readouterr().out == f"{file}: same path, same output\n"
    other = json.loads(json.dumps(SHOP))
    del other["States"]["Pay"]["Retry"]
    changed.write_text(json.dumps(other), encoding="utf-8")
    with pytest.raises(SystemExit) as exited:
        call_command("replay", str(file), "--definition", str(changed))
    assert exited.value.code == 1
    assert f"{file}: path, state 2 (after Pay): got Sorry, wanted Nap" in capsys.readouterr().out


def test_x11_what_ran_on_aws_becomes_a_test(project: Project, client: Client) -> None:
    """An imported history replays here; one that was cut says why it cannot."""
    del project
    path = brought(client)
    assert f'href="{path}scenario.json"' in text(client.get(path))
    file = json.loads(text(client.get(f"{path}scenario.json")))
    assert file["Scenario"]["Start"]["ExecutionArn"] == ARN
    assert differences(file) == []
    whole = json.dumps(HISTORY)
    cut = brought(client, history=whole.replace('{"output": "5"}', '{"output": "{"}'))
    assert "not whole" in text(client.get(f"{cut}scenario.json"), 404)
    half = brought(client, history=json.dumps({"events": HISTORY["events"][:5]}))
    assert "still running" in text(client.get(f"{half}scenario.json"), 404)


def test_x11_a_test_needs_an_end(project: Project, client: Client) -> None:
    """While it runs its page says why there is none; afterwards the page links it."""
    running = drain(start(create(project, CHAIN), name="x"))
    assert "still running" in text(client.get(page(running, "scenario.json")), 404)
    done = drain(start(create(project, PASS, "other"), name="y"))
    shown = text(client.get(page(done)))
    assert f'href="{page(done, "scenario.json")}"' in shown
    answer_ = client.get(page(done, "scenario.json"))
    assert answer_["Content-Disposition"] == 'attachment; filename="y.scenario.json"'
    assert answer_["Cache-Control"] == "no-store"


def test_the_page_keeps_an_execution_as_a_test(client: Client, shopped: Execution) -> None:
    """As a file for pytest, a suite, or a mock configuration; another word is refused."""
    shown = client.get(page(shopped)).content.decode()
    for kind, content in (
        ("pytest", "import engine"),
        ("test-state", '"cliInput"'),
        ("mock-config", '"MockedResponses"'),
    ):
        assert f"scenario.json?as={kind}" in shown
        answer = client.get(page(shopped, f"scenario.json?as={kind}"))
        assert content in text(answer)
    assert (
        "test_x.py" in client.get(page(shopped, "scenario.json?as=pytest"))["Content-Disposition"]
    )
    assert "choose pytest" in text(client.get(page(shopped, "scenario.json?as=junit")), 404)


def test_a_test_hides_what_the_page_hides(client: Client, shopped: Execution) -> None:
    """A masked answer is in none of the tests."""
    project = shopped.project
    project.masked = "$.look"
    project.save()
    suite = json.loads(text(client.get(page(shopped, "scenario.json?as=test-state"))))
    looks = [each["cliInput"]["mock"] for each in suite if each["name"] == "Look 2"]
    assert json.loads(looks[0]["result"]) == {"look": mask.MASK}
    file = json.loads(text(client.get(page(shopped, "scenario.json?as=mock-config"))))
    assert file["MockedResponses"]["Look"]["1"] == {"Return": {"look": mask.MASK}}
