"""E20: the page that tests a state shows what the API's TestState answers."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from console import access
from console.awsapi import services, shapes
from console.awsapi.operations.call import Call
from console.db.audit import Actor
from console.models import Execution, Membership, Role, StateMachine
from console.store.machines import machines
from tests.console.store.helpers import REGION, ROLE, create, drain, function, start
from tests.console.web.helpers import MARKUP, page, text
from tests.console.web.masking.test_masking import CANARY, INPUT, mask

if TYPE_CHECKING:
    from collections.abc import Callable

    from django.test import Client

    from console.models import Project

    SignIn = Callable[[str], Client]

MODEL = shapes.service_model().operation_model("TestState")
ADDRESS = "/machines/machine/test/"
MOST_QUERIES = 15
INNER = {"Type": "Pass", "Parameters": {"was.$": "$.n"}, "End": True}
RETRY = [{"ErrorEquals": ["Busy"], "IntervalSeconds": 7, "MaxAttempts": 2}]
CATCH = [{"ErrorEquals": ["Lost"], "ResultPath": "$.lost", "Next": "Done"}]
STATES: dict[str, Any] = {
    "Choose": {
        "Type": "Choice",
        "Choices": [{"Variable": "$.n", "NumericGreaterThan": 3, "Next": "Work"}],
        "Default": "Done",
    },
    "Shape": {
        "Type": "Pass",
        "InputPath": "$.order",
        "Parameters": {"id.$": "$.id", "kept.$": "$kept"},
        "ResultPath": "$.made",
        "Assign": {"seen.$": "$.id"},
        "Next": "Choose",
    },
    "Work": {
        **function("double"),
        "Parameters": {"n.$": "$.n"},
        "ResultSelector": {"twice.$": "$.n"},
        "ResultPath": "$.work",
        "Retry": RETRY,
        "Catch": CATCH,
        "Next": "Sum",
    },
    "Sum": {
        "Type": "Pass",
        "QueryLanguage": "JSONata",
        "Output": {"total": "{% $sum($states.input.items) + $plus %}"},
        "Next": "Each",
    },
    "Each": {
        "Type": "Map",
        "ItemsPath": "$.items",
        "ItemProcessor": {"StartAt": "Inner", "States": {"Inner": INNER}},
        "ResultPath": "$.done",
        "Next": "Both",
    },
    "Both": {
        "Type": "Parallel",
        "Branches": [
            {"StartAt": "Left", "States": {"Left": {"Type": "Pass", "End": True}}},
            {"StartAt": "Right", "States": {"Right": {"Type": "Pass", "End": True}}},
        ],
        "Next": "Ask",
    },
    "Ask": {
        "Type": "Pass",
        "Parameters": {"name.$": "$$.Execution.Name"},
        "Next": "Refuse",
    },
    "Refuse": {"Type": "Fail", "Error": "Refused", "CausePath": "$.why"},
    "Done": {"Type": "Succeed"},
}
DEFINITION = {"StartAt": "Shape", "States": STATES}
CONTEXT = {"Execution": {"Name": "made up"}}
# what is typed -> what the API is asked
TRIED: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "pass": (
        {"state": "Shape", "input": '{"order": {"id": 1.50}}', "variables": '{"kept": [1]}'},
        {"variables": '{"kept": [1]}'},
    ),
    "choice": ({"state": "Choose", "input": '{"n": 4}'}, {}),
    "default": ({"state": "Choose", "input": '{"n": 1}'}, {}),
    "mocked": (
        {"state": "Work", "input": '{"n": 2}', "mock": "result", "result": '{"n": 4}'},
        {"mock": {"result": '{"n": 4}', "fieldValidationMode": "STRICT"}},
    ),
    "called": ({"state": "Work", "input": '{"n": 21}'}, {}),
    "retried": (
        {"state": "Work", "input": '{"n": 2}', "mock": "error", "error": "Busy", "retries": "1"},
        {
            "mock": {"errorOutput": {"error": "Busy"}},
            "stateConfiguration": {"retrierRetryCount": 1},
        },
    ),
    "caught": (
        {"state": "Work", "input": '{"n": 2}', "mock": "error", "error": "Lost", "cause": "so"},
        {"mock": {"errorOutput": {"error": "Lost", "cause": "so"}}},
    ),
    "jsonata": (
        {"state": "Sum", "input": '{"items": [1, 2]}', "variables": '{"plus": 4}'},
        {"variables": '{"plus": 4}'},
    ),
    "map": (
        {"state": "Each", "input": '{"items": [{}]}', "mock": "result", "result": "[1]"},
        {"mock": {"result": "[1]", "fieldValidationMode": "STRICT"}},
    ),
    "inner": ({"state": "Inner", "input": '{"n": 3}'}, {}),
    "parallel": (
        {"state": "Both", "mock": "result", "result": "[1, 2]", "mode": "NONE", "input": "{}"},
        {"mock": {"result": "[1, 2]", "fieldValidationMode": "NONE"}},
    ),
    "context": (
        {
            "state": "Work",
            "input": '{"n": 1}',
            "mock": "result",
            "result": '{"n": 2}',
            "mode": "NONE",
            "context": json.dumps(CONTEXT),
        },
        {
            "context": json.dumps(CONTEXT),
            "mock": {"result": '{"n": 2}', "fieldValidationMode": "NONE"},
        },
    ),
    "fail": ({"state": "Refuse", "input": json.dumps({"why": MARKUP})}, {}),
    "broken": ({"state": "Sum", "input": '{"items": ["x"]}'}, {}),
}


def double(event: Any, context: Any) -> Any:
    """A function to call."""
    del context
    return {"n": event["n"] * 2}


@pytest.fixture
def machine(project: Project, settings: Any) -> StateMachine:
    """A machine with a state of each kind."""
    settings.STATEYARD_FUNCTIONS = {"double": f"{__name__}:double"}
    return create(project, DEFINITION)


def asked(project: Project, **params: Any) -> dict[str, Any]:
    """Return what the API's handler answers to TestState."""
    shapes.check_params(MODEL, params)
    user = Membership.objects.select_related("user").get(user__username="editor").user
    who = access.Principal(user, project, Role.OWNER, "AKIATEST")
    call = Call("TestState", params, who, REGION, Actor("editor", "AKIATEST", "id"))
    answer = services.STATES.handler("TestState")(call)
    assert isinstance(answer, dict)
    return answer


def sent(client: Client, status: int = 200, address: str = ADDRESS, **form: Any) -> Any:
    """Send the form and return the page."""
    answer = client.post(address, {"input": "{}", "level": "DEBUG", **form})
    assert answer.status_code == status, answer.content[:500]
    return answer


@pytest.mark.usefixtures("machine")
@pytest.mark.parametrize("level", ["INFO", "DEBUG", "TRACE"])
@pytest.mark.parametrize("case", TRIED)
def test_e20_the_page_tells_what_the_api_answers(
    project: Project, client: Client, case: str, level: str
) -> None:
    """Each kind of state, mocked or not, at each level: the same answer, and it is on the page."""
    form, params = TRIED[case]
    expected = asked(
        project,
        definition=json.dumps(DEFINITION),
        stateName=form["state"],
        roleArn=ROLE,
        input=form["input"],
        inspectionLevel=level,
        **params,
    )
    answer = sent(client, **form, level=level)
    tested = answer.context["tested"]
    assert tested.answer == expected
    shown = text(answer)
    assert f'data-result-status="{expected["status"]}"' in shown
    assert ("flow-stages" in shown) == (level != "INFO")
    if level != "INFO":
        told = {stage.payload.text for stage in tested.flow.stages}
        data = expected["inspectionData"]
        assert {value for value in data.values() if isinstance(value, str)} <= told
    assert expected.get("nextState", "") in shown


@pytest.mark.usefixtures("machine")
def test_e20_a_state_without_a_mock_takes_a_context_object(client: Client) -> None:
    """Here only: the API wants a mock beside it."""
    answer = sent(client, state="Ask", input="{}", context=json.dumps(CONTEXT))
    assert answer.context["tested"].answer["output"] == '{"name":"made up"}'


@pytest.mark.usefixtures("machine")
def test_e20_markup_in_a_cause_does_nothing(client: Client) -> None:
    """It is shown as it was typed."""
    answer = sent(client, state="Refuse", input=json.dumps({"why": MARKUP}))
    assert MARKUP not in answer.content.decode()
    assert MARKUP in text(answer)


@pytest.mark.usefixtures("machine")
def test_e20_every_state_can_be_chosen(client: Client) -> None:
    """Those in a Map or Parallel, too; the one asked for is chosen."""
    shown = text(client.get(ADDRESS, {"state": "Right"}))
    for name in (*STATES, "Inner", "Left", "Right"):
        assert f'<option value="{name}"' in shown
    assert '<option value="Right" selected>' in shown
    assert '<optgroup label="In Both, branch 2">' in shown
    assert client.get(ADDRESS, {"state": "Nowhere"}).status_code == 404
    assert "no such state" in text(sent(client, 422, state="Nowhere"), 422)


MISTAKES: list[tuple[dict[str, Any], str, str]] = [
    ({"input": '{\n "n": }'}, "input", "at line 2, column 7."),
    ({"variables": "{not"}, "variables", "at line 1, column 2."),
    ({"variables": "[1]"}, "variables", "not an object"),
    ({"state": "Work", "mock": "result", "result": "{"}, "result", "at line 1, column 2."),
    ({"context": '{"Map": {}}'}, "context", "'Map' field is not supported"),
    ({"retries": "-1"}, "retries", "“-1” is not a whole number"),
    ({"state": "Work", "mock": "error", "error": "x" * 257}, "error", "At most 256"),
    ({"state": "Each"}, "state", "does not support Map or Parallel states"),
    ({"state": "Shape", "mock": "result"}, "mock", "not supported when a mock is specified"),
]


@pytest.mark.usefixtures("machine")
@pytest.mark.parametrize(("form", "field", "words"), MISTAKES)
def test_e20_a_mistake_stands_beside_its_field(
    client: Client, form: dict[str, Any], field: str, words: str
) -> None:
    """With its place, where it has one; the form comes back as it was typed."""
    answer = sent(client, 422, **{"state": "Shape", **form})
    assert words in answer.context[f"{field}_error"]
    assert words in text(answer, 422)
    for name, typed in form.items():
        assert getattr(answer.context["asked"], name) == typed


@pytest.mark.usefixtures("machine")
def test_e20_an_operator_tests_a_task_with_a_mock(signed_in: SignIn, settings: Any) -> None:
    """The form begins with one and says why; without one nothing is called."""
    settings.STATEYARD_FUNCTIONS = {"double": "tests.no_such_module:double"}
    operator, editor = signed_in("operator"), signed_in("editor")
    form: Any = operator.get(f"{ADDRESS}?state=Work")
    assert form.context["asked"].mock == "result"
    assert "Only editors can test a Task" in text(form)
    refused = sent(operator, 422, state="Work", input='{"n": 1}')
    assert "states:TestUnmockedTask" in refused.context["mock_error"]
    assert refused.context["asked"].input == '{"n": 1}'
    mocked = sent(operator, state="Work", input='{"n": 1}', mock="result", result='{"n": 2}')
    assert mocked.context["tested"].answer["status"] == "SUCCEEDED"
    form = editor.get(f"{ADDRESS}?state=Work")
    assert form.context["asked"].mock == ""
    assert "Only editors can test a Task" not in text(form)
    called = sent(editor, state="Work", input='{"n": 1}').context["tested"].answer
    assert called["error"] == "Runtime.ImportModuleError"


@pytest.mark.usefixtures("machine")
def test_e20_who_may_not_test_is_refused(signed_in: SignIn) -> None:
    """A viewer gets 403 and sees no link; secrets are for owners."""
    viewer, operator, owner = signed_in("viewer"), signed_in("operator"), signed_in("owner")
    assert viewer.get(ADDRESS).status_code == 403
    sent(viewer, 403, state="Done")
    assert ADDRESS not in text(viewer.get("/machines/machine/definition/"))
    assert ADDRESS in text(operator.get("/machines/machine/definition/"))
    assert 'name="reveal"' not in text(operator.get(ADDRESS))
    sent(operator, 403, state="Done", reveal="1")
    assert 'name="reveal"' in text(owner.get(ADDRESS))
    assert sent(owner, state="Done", reveal="1").context["tested"].answer["status"] == "SUCCEEDED"


def test_e20_the_recorded_input_comes_with_the_link(machine: StateMachine, client: Client) -> None:
    """From a step's panel: input and variables of the visit, and the definition it ran with."""
    value = {"order": {"id": 7}}
    first = {"Type": "Pass", "Assign": {"kept": 5}, "Next": "Shape"}
    states = {"First": first, "Shape": {**STATES["Shape"], "Next": "Done"}, "Done": STATES["Done"]}
    own = {"StartAt": "First", "States": states}
    machines.update_machine(machine, definition=json.dumps(own))
    drain(start(StateMachine.objects.get(), value, "x"))
    machines.update_machine(machine, definition=json.dumps(DEFINITION))
    link = f"{ADDRESS}?state=Shape&origin=x&visit=1"
    assert link in text(client.get(page(Execution.objects.get(name="x"), "?step=Shape")))
    with CaptureQueriesContext(connection) as queries:
        shown: Any = client.get(link)
    assert len(queries) <= MOST_QUERIES
    filled = shown.context["asked"]
    assert (json.loads(filled.input), filled.variables) == (value, '{"kept":5}')
    form = {"state": "Shape", "origin": "x", "step": "Shape", "visit": "1", "input": filled.input}
    with CaptureQueriesContext(connection) as queries:
        old = sent(client, variables=filled.variables, **form)
    assert len(queries) <= MOST_QUERIES
    assert old.context["tested"].answer["nextState"] == "Done"
    new = sent(client, variables=filled.variables, definition="changed", **form)
    assert new.context["tested"].answer["nextState"] == "Choose"
    assert client.get(f"{ADDRESS}?state=Choose&origin=x").status_code == 404


def test_e20_what_is_in_the_editor_is_tested(machine: StateMachine, client: Client) -> None:
    """Without being saved; an operator, who may not edit, tests what is saved."""
    state = {"Type": "Pass", "Result": 5, "End": True}
    typed = json.dumps({"StartAt": "New", "States": {"New": state}})
    form: Any = client.post(ADDRESS, {"text": typed, "role": ROLE, "edited": "1"})
    assert "not saved" in text(form)
    assert [node.name for node in form.context["choices"][0].nodes] == ["New"]
    assert sent(client, text=typed, state="New").context["tested"].answer["output"] == "5"
    machine.refresh_from_db()
    assert "New" not in machine.definition.text
    bad: Any = client.post(ADDRESS, {"text": "{", "edited": "1"})
    assert "cannot be read" in text(bad)


def test_e20_what_is_hidden_stays_hidden(
    project: Project, machine: StateMachine, signed_in: SignIn
) -> None:
    """The form shows the mask, the state gets the value, and no stage of the result tells it."""
    mask(project)
    copies = {
        "Type": "Pass",
        "Parameters": {
            "other.$": "$.card.number",
            "said.$": "States.Format('x {}', $.card.number)",
        },
        "Next": "Way",
    }
    way = {"Variable": "$.other", "StringEquals": CANARY, "Next": "Known"}
    states = {
        "Copy": copies,
        "Way": {"Type": "Choice", "Choices": [way], "Default": "Other"},
        "Known": {"Type": "Succeed"},
        "Other": {"Type": "Fail", "ErrorPath": "$.said", "CausePath": "$.other"},
    }
    machines.update_machine(machine, definition=json.dumps({"StartAt": "Copy", "States": states}))
    drain(start(StateMachine.objects.get(), INPUT, "x"))
    client = signed_in("operator")
    for state, step, status in (
        ("Copy", "Copy", "SUCCEEDED"),
        ("Way", "Way", "SUCCEEDED"),
        ("Other", "Way", "FAILED"),
    ):
        form: Any = client.get(f"{ADDRESS}?state={step}&origin=x")
        assert CANARY not in text(form)
        shown_input = form.context["asked"].input
        assert "(masked)" in shown_input
        asked = {"state": state, "step": step, "origin": "x", "input": shown_input}
        answer = sent(client, **asked, level="TRACE")
        assert CANARY not in text(answer)
        told = answer.context["tested"].answer
        assert told["status"] == status
        assert "(masked)" in json.dumps(told)
        if state == "Way":
            assert told["nextState"] == "Known"
    typed = sent(client, state="Copy", input=json.dumps({"card": {"number": "9999-mine"}}))
    assert "9999-mine" not in json.dumps(typed.context["tested"].answer)


def test_e20_the_last_input_of_the_state_is_filled_in(
    project: Project, machine: StateMachine, client: Client
) -> None:
    """Of the newest execution that entered it; what else was typed stays, nothing is tested.

    A definition that is not saved gets no original value of what is masked.
    """
    value = {**INPUT, "order": {"id": 3}}
    drain(start(machine, value, name="entered"))
    mask(project)
    typed = {"state": "Shape", "input": "{broken", "level": "INFO", "last_input": "1"}
    shown: Any = client.post(ADDRESS, typed)
    filled = shown.context["asked"]
    assert json.loads(filled.input)["order"] == {"id": 3}
    assert filled.level == "INFO"
    assert "tested" not in shown.context
    assert 'name="origin" value="entered"' in text(shown)
    edited: Any = client.post(ADDRESS, typed | {"text": json.dumps(DEFINITION), "role": ROLE})
    assert "(masked)" in edited.context["asked"].input
    assert CANARY not in text(edited)
    assert 'executions/entered/?step=Shape"' in text(edited)
    assert 'name="origin"' not in text(edited)
    answer = text(client.post(ADDRESS, typed | {"state": "Refuse"}))
    assert "None of the last executions entered Refuse." in answer
    assert "{broken" in answer
