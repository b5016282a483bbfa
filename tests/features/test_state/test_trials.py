"""TestState shows an HTTP Task's request and response, and fills all of inspectionData."""

from __future__ import annotations

import json
import time
from typing import TYPE_CHECKING, Any

import pytest

from console import access
from console.awsapi import services, shapes
from console.awsapi.operations.call import Call
from console.db.audit import Actor
from console.errors import ErrorCode, InvalidDefinition, ValidationException
from console.features.test_state import state
from console.integrations import targets
from console.models import Execution, Role
from tests.console.store.helpers import PASS, ROLE, create, function
from tests.refusals import raises_code

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from console.models import Project

    Try = Callable[..., dict[str, Any]]

MODEL = shapes.service_model().operation_model("TestState")
CONNECTION = "arn:aws:events:us-east-1:123456789012:connection/shop/1"


@pytest.fixture
def tried(project: Project, django_user_model: Any) -> Try:
    """Return a function that calls TestState with a role in the project."""
    user = django_user_model.objects.create_user("somebody")

    def call(state: dict[str, Any], role: str = Role.OWNER, **params: Any) -> dict[str, Any]:
        params = {"definition": json.dumps(state), "roleArn": ROLE, **params}
        shapes.check_params(MODEL, params)
        who = access.Principal(user, project, role, "AKIATEST")
        request = Call("TestState", params, who, "us-east-1", Actor("somebody", "AKIATEST", "id"))
        answer = services.STATES.handler("TestState")(request)
        assert isinstance(answer, dict)
        return answer

    return call


def http(url: str, **more: Any) -> dict[str, Any]:
    """Return an HTTP Task."""
    parameters = {
        "Method": "POST",
        "ApiEndpoint": url,
        "InvocationConfig": {"ConnectionArn": CONNECTION},
        "Headers": {"definitionHeader": "h1"},
        "QueryParameters": {"q": "1"},
        "RequestBody": {"message": "Hello"},
    }
    resource = "arn:aws:states:::http:invoke"
    return {"Type": "Task", "Resource": resource, "Parameters": parameters, "End": True, **more}


OURS = "User-Agent: Amazon|StepFunctions|HttpInvoke|us-east-1, Range: bytes=0-262144]"


@pytest.mark.parametrize(
    ("reveal", "headers"),
    [
        (False, f"[definitionHeader: h1, {OURS}"),
        (True, f"[definitionHeader: h1, X-Key: hush, {OURS}"),
    ],
)
def test_an_http_task_shows_what_went_over_the_wire(
    tried: Try, web: str, reveal: bool, headers: str
) -> None:
    """At TRACE, in the documentation's form; the connection's value only if asked for."""
    answer = tried(http(f"{web}/ok"), inspectionLevel="TRACE", revealSecrets=reveal)
    assert answer["status"] == "SUCCEEDED"
    data = answer["inspectionData"]
    assert data["request"] == {
        "protocol": "http",
        "method": "POST",
        "url": f"{web}/ok?q=1",
        "headers": headers,
        "body": '{"message":"Hello"}',
    }
    response = data["response"]
    told = response.pop("headers")
    assert told.startswith("[")
    assert ", x-two: 2, " in told.lower()
    assert response == {
        "protocol": "http",
        "statusCode": "200",
        "statusMessage": "OK",
        "body": '{"key": "hush"}' if reveal else '{"key": "(masked)"}',
    }
    assert set(data) <= set(MODEL.output_shape.members["inspectionData"].members)


def test_an_error_of_the_server_is_shown_too(tried: Try, web: str) -> None:
    """The response that made a state fail stands beside its error."""
    answer = tried(http(f"{web}/tea"), inspectionLevel="TRACE")
    assert (answer["status"], answer["error"]) == ("FAILED", "States.Http.StatusCode.418")
    assert answer["inspectionData"]["response"]["statusCode"] == "418"


def test_without_an_answer_the_request_is_shown(tried: Try, web: str, settings: Any) -> None:
    """Nothing came back, and nothing is said of it; an origin that nobody named gets nothing."""
    settings.STATEYARD_TARGETS["http"]["endpoints"].append("http://127.0.0.1:9")
    answer = tried(http("http://127.0.0.1:9/x"), inspectionLevel="TRACE")
    assert answer["error"] == "States.Http.Socket"
    assert answer["inspectionData"]["request"]["url"] == "http://127.0.0.1:9/x?q=1"
    assert "response" not in answer["inspectionData"]
    other = tried(http("http://10.0.0.1/x"), inspectionLevel="TRACE")
    assert not {"request", "response"} & set(other["inspectionData"])


def test_a_connection_that_is_not_there_can_be_caught(tried: Try, web: str) -> None:
    """Its error has the name that EventBridge gives it."""
    error = "Events.ConnectionResource.ResourceNotFound"
    state = http(f"{web}/ok", Catch=[{"ErrorEquals": [error], "Next": "Mend"}])
    none = "arn:aws:events:us-east-1:123456789012:connection/none/00000000"
    state["Parameters"]["InvocationConfig"]["ConnectionArn"] = none
    answer = tried(state)
    assert (answer["status"], answer["error"], answer["nextState"]) == (
        "CAUGHT_ERROR",
        error,
        "Mend",
    )
    assert none in answer["cause"]


@pytest.mark.parametrize(
    ("resource", "parameters"),
    [
        ("states:startExecution", {"StateMachineArn": "", "Input": {"a": 1}}),
        ("aws-sdk:sfn:startExecution", {"StateMachineArn": "", "Input": "{}"}),
        ("events:putEvents", {"Entries": [{"Source": "s", "DetailType": "d", "Detail": {}}]}),
        ("aws-sdk:scheduler:listSchedules", {}),
    ],
)
@pytest.mark.django_db(transaction=True)
def test_a_service_of_this_server_is_not_sent_to_the_target_for_all(
    tried: Try, project: Project, settings: Any, resource: str, parameters: dict[str, Any]
) -> None:
    """It acts here, for the person who tries the state."""
    everything = {"endpoint_url": "http://127.0.0.1:9", "access_key_id": "x"}
    settings.STATEYARD_TARGETS = {"*": everything | {"secret_access_key": "x"}}
    machine = create(project, PASS, "child")
    if "StateMachineArn" in parameters:
        parameters = parameters | {"StateMachineArn": machine.arn}
    arn = f"arn:aws:states:::{resource}"
    state = {"Type": "Task", "Resource": arn, "Parameters": parameters, "End": True}
    answer = tried(state)
    assert answer["status"] == "SUCCEEDED", answer
    started = Execution.objects.filter(state_machine=machine).count()
    assert started == ("StateMachineArn" in parameters)
    for service in targets.OWN_SERVICES:
        settings.STATEYARD_TARGETS[service] = settings.STATEYARD_TARGETS["*"]
    assert tried(state)["error"].endswith(".SdkClientException")


def test_parameters_that_are_no_request(tried: Try) -> None:
    """They fail the state as in an execution; a mocked result needs no request."""
    resource = "arn:aws:states:::sqs:sendMessage"
    state = {"Type": "Task", "Resource": resource, "Parameters": {"QueueUrl": "q"}, "End": True}
    failed = tried(state)
    assert (failed["status"], failed["error"]) == ("FAILED", "States.Runtime")
    assert "[The field 'MessageBody' is required but was missing]" in failed["cause"]
    mock = {"result": '{"MessageId":"1","MD5OfMessageBody":"x"}'}
    assert tried(state, mock=mock)["status"] == "SUCCEEDED"


@pytest.mark.parametrize("mode", ["STRICT", "PRESENT", "NONE"])
@pytest.mark.parametrize("payload", [{"body": "ok"}, [1], "ok", 7, None])
def test_the_mocked_payload_of_a_function_is_any_json(tried: Try, payload: Any, mode: str) -> None:
    """The integration hands it on parsed, where Lambda's own API has bytes."""
    result = {"StatusCode": 200, "Payload": payload}
    task = {"Type": "Task", "Parameters": {"FunctionName": "f"}, "End": True}
    mock = {"result": json.dumps(result), "fieldValidationMode": mode}
    answer = tried(task | {"Resource": "arn:aws:states:::lambda:invoke"}, mock=mock)
    assert json.loads(answer["output"]) == result


ITEM = {"i.$": "$$.Map.Item.Index", "v.$": "$$.Map.Item.Value"}
INSIDE = {"Type": "Pass", "Parameters": ITEM, "End": True}
BRANCH = {"Type": "Parallel", "Branches": [{"StartAt": "P", "States": {"P": INSIDE}}], "End": True}


@pytest.mark.parametrize("processor", ["ItemProcessor", "Iterator"])
@pytest.mark.parametrize("states", [{"P": INSIDE}, {"Q": BRANCH}])
def test_a_state_inside_a_map_has_an_item(
    tried: Try, states: dict[str, Any], processor: str
) -> None:
    """The first one, with the input as its value, as the developer guide has it."""
    block = {"StartAt": next(iter(states)), "States": states}
    whole = {"StartAt": "M", "States": {"M": {"Type": "Map", processor: block, "End": True}}}
    answer = tried(whole, stateName="P", input='{"sku": 7}')
    assert json.loads(answer["output"]) == {"i": 0, "v": {"sku": 7}}


def test_a_state_inside_a_distributed_map_knows_whence_its_item_is(tried: Try) -> None:
    """From the input, unless the context says otherwise; the innermost Map counts."""
    item = ITEM | {"s.$": "$$.Map.Item.Source"}
    block = {"StartAt": "P", "States": {"P": {"Type": "Pass", "Parameters": item, "End": True}}}
    whole = {"StartAt": "M", "States": {"M": distributed()}}
    whole["States"]["M"]["ItemProcessor"] |= block
    answer = tried(whole, stateName="P", input="7")
    assert json.loads(answer["output"]) == {"i": 0, "v": 7, "s": "STATE_DATA"}
    inline = {"Type": "Map", "ItemProcessor": block, "End": True}
    whole["States"]["M"]["ItemProcessor"] |= {"StartAt": "Q", "States": {"Q": inline}}
    assert tried(whole, stateName="P", input="7")["error"] == "States.Runtime"


def test_a_mocked_error_has_a_name(tried: Try) -> None:
    """Without one no Catcher could match it. Source: API reference, MockErrorOutput."""
    task = {"Type": "Task", "Resource": "arn:aws:states:::lambda:invoke", "End": True}
    state = task | {"Parameters": {"FunctionName": "f"}}
    with pytest.raises(ValidationException, match="must have the field 'error'"):
        tried(state, mock={"errorOutput": {"cause": "c"}})


def test_a_state_outside_of_maps_has_no_item(tried: Try) -> None:
    """Beside a Map, and in a Parallel."""
    processor = {"StartAt": "A", "States": {"A": {"Type": "Succeed"}}}
    beside = {"Type": "Map", "ItemProcessor": processor, "Next": "Q"}
    whole = {"StartAt": "M", "States": {"M": beside, "Q": BRANCH}}
    answer = tried(whole, stateName="P", input="{}")
    assert (answer["status"], answer["error"]) == ("FAILED", "States.Runtime")


def test_other_fields_of_a_mocked_call_of_a_function_are_checked(tried: Try) -> None:
    """And all of them where the SDK is called, which has text."""
    task = {"Type": "Task", "Parameters": {"FunctionName": "f"}, "End": True}
    for resource, result, field in (
        ("lambda:invoke", {"StatusCode": "200", "Payload": {}}, "StatusCode"),
        ("aws-sdk:lambda:invoke", {"StatusCode": 200, "Payload": {}}, "Payload"),
    ):
        state = task | {"Resource": f"arn:aws:states:::{resource}"}
        with pytest.raises(ValidationException, match=f"Field '{field}' must be a"):
            tried(state, mock={"result": json.dumps(result)})


@pytest.mark.parametrize("level", ["INFO", "DEBUG"])
def test_lower_levels_do_not_show_it(tried: Try, web: str, level: str) -> None:
    """The wire is for TRACE."""
    answer = tried(http(f"{web}/ok"), inspectionLevel=level)
    assert not {"request", "response"} & set(answer.get("inspectionData", {}))


def test_revealing_takes_a_right_of_its_own(tried: Try, web: str) -> None:
    """As ``states:RevealSecrets``: who may test a state may not yet see secrets."""
    state = http(f"{web}/ok")
    assert tried(state, Role.EDITOR, inspectionLevel="TRACE")["status"] == "SUCCEEDED"
    with raises_code(ErrorCode.AccessDeniedException, match="states:RevealSecrets"):
        tried(state, Role.EDITOR, inspectionLevel="TRACE", revealSecrets=True)


def test_variables_are_those_given_and_those_assigned(tried: Try) -> None:
    """The set after the state: what came in and what it assigned."""
    state = {"Type": "Pass", "Assign": {"b": 2, "c": 3}, "End": True}
    answer = tried(state, variables='{"a": 1, "b": 1}', inspectionLevel="DEBUG")
    assert json.loads(answer["inspectionData"]["variables"]) == {"a": 1, "b": 2, "c": 3}


def distributed(**more: Any) -> dict[str, Any]:
    """Return a distributed Map of one Pass state."""
    inner = {"StartAt": "P", "States": {"P": {"Type": "Pass", "End": True}}}
    processor = {"ProcessorConfig": {"Mode": "DISTRIBUTED", "ExecutionType": "STANDARD"}, **inner}
    return {"Type": "Map", "ItemProcessor": processor, "End": True, **more}


def trials(tried: Try, web: str) -> Iterator[dict[str, Any]]:
    """Try states that together fill every field."""
    level = {"inspectionLevel": "TRACE"}
    yield tried(http(f"{web}/ok"), **level)
    yield tried(http(f"{web}/ok", ResultSelector={"a": 1}, ResultPath="$.r"), **level)
    jsonata = {"Type": "Task", "QueryLanguage": "JSONata", "Resource": ROLE, "Arguments": {"x": 1}}
    jsonata["Resource"] = "arn:aws:lambda:us-east-1:123456789012:function:f"
    caught = {**jsonata, "Catch": [{"ErrorEquals": ["States.ALL"], "Next": "N"}], "Next": "N"}
    error = {"mock": {"errorOutput": {"error": "E", "cause": "c"}}}
    yield tried(caught, **error, **level)
    again = {**jsonata, "Retry": [{"ErrorEquals": ["States.ALL"]}], "End": True}
    yield tried(again, **error, **level)
    yield tried({"Type": "Pass", "Assign": {"v": 1}, "End": True}, **level)
    reader = {
        "Resource": "arn:aws:states:::s3:getObject",
        "ReaderConfig": {"InputType": "JSON", "ItemsPointer": "/inner/items"},
        "Parameters": {"Bucket": "b", "Key": "k"},
    }
    full = distributed(
        ItemReader=reader,
        ItemSelector={"one.$": "$$.Map.Item.Value"},
        ItemBatcher={"MaxItemsPerBatch": 2},
        ToleratedFailureCount=1,
        ToleratedFailurePercentage=5,
        MaxConcurrency=3,
    )
    read = {"mapItemReaderData": '{"inner": {"items": [1, 2, 3]}}'}
    yield tried(full, mock={"result": "[1, 2]"}, stateConfiguration=read, **level)
    items = {"mock": {"result": "[1]"}, "input": '{"all": [1]}'}
    yield tried(distributed(ItemsPath="$.all"), **items, **level)


def test_every_field_of_inspection_data_is_filled(tried: Try, web: str) -> None:
    """Over these states, each member of the model, nested ones too, has been there."""
    seen: set[str] = set()
    for answer in trials(tried, web):
        seen |= set(paths(answer["inspectionData"]))
    assert set(described(MODEL.output_shape.members["inspectionData"])) - seen == set()


def test_an_items_pointer_shows_what_it_found(tried: Try, web: str) -> None:
    """Before items are selected and batched."""
    data = list(trials(tried, web))[-2]["inspectionData"]
    assert json.loads(data["afterItemsPointer"]) == [1, 2, 3]
    assert json.loads(data["afterItemSelector"]) == [{"one": 1}, {"one": 2}, {"one": 3}]


def paths(value: Any, before: str = "") -> Iterator[str]:
    """Return the dotted names of what an answer has."""
    for name, member in value.items():
        yield before + name
        if isinstance(member, dict):
            yield from paths(member, f"{before}{name}.")


def described(shape: Any, before: str = "") -> Iterator[str]:
    """Return the dotted names of what the model has."""
    for name, member in shape.members.items():
        yield before + name
        if member.type_name == "structure":
            yield from described(member, f"{before}{name}.")


# -- what cannot be tried --------------------------------------------------------------------------


@pytest.mark.parametrize(
    "resource",
    [
        "arn:aws:states:us-east-1:123456789012:activity:work",
        "arn:aws:states:::sqs:sendMessage.waitForTaskToken",
        "arn:aws:states:::states:startExecution.sync:2",
    ],
)
def test_what_would_wait_needs_a_mock(tried: Try, resource: str) -> None:
    """Nothing is called; with a mock it is tried like any other."""
    state = {"Type": "Task", "Resource": resource, "End": True}
    with pytest.raises(InvalidDefinition, match="unless a mock is specified"):
        tried(state)
    mocked = tried(state, mock={"result": "{}", "fieldValidationMode": "NONE"})
    assert mocked["status"] == "SUCCEEDED"


MAP_MOCK = {"mock": {"result": "[1]"}, "input": "[1, 2]"}


@pytest.mark.parametrize(
    ("params", "words"),
    [
        (
            {"stateConfiguration": {"mapIterationFailureCount": 1}},
            "TestState does not support MapIterationFailureCount when a mock is not specified.",
        ),
        (
            {"stateConfiguration": {"mapIterationFailureCount": 3}, **MAP_MOCK},
            "Map iteration failure count must be less than or equal to the number of Map iterati",
        ),
        (
            {"context": '{"Task": {"Token": "t"}}', **MAP_MOCK},
            "Invalid Context object provided: Context object contains 'Task' when state is not a ",
        ),
    ],
)
def test_what_does_not_go_together_is_refused(
    tried: Try, params: dict[str, Any], words: str
) -> None:
    """In the service's words."""
    with pytest.raises(ValidationException) as caught:
        tried(distributed(), **params)
    assert caught.value.message.startswith(words)


MOCKED_ERROR = {"mock": {"errorOutput": {"error": "E"}}, "input": "[1]"}


def test_a_configuration_that_the_state_cannot_have_is_refused(tried: Try) -> None:
    """It would have no effect, and a mistake in a name would go unnoticed."""
    task = function("nap", End=True)
    both = {
        "Type": "Parallel",
        "Branches": [{"StartAt": "In", "States": {"In": task}}],
        "End": True,
    }
    right = {"stateConfiguration": {"errorCausedByState": "In"}}
    assert tried(both, **MOCKED_ERROR, **right)["error"] == "E"
    for refused, member, value, params in (
        (both, "errorCausedByState", "Nope", MOCKED_ERROR),
        (both, "errorCausedByState", "In", {"mock": {"result": "[1]"}}),
        (task, "errorCausedByState", "In", MOCKED_ERROR),
        (task, "mapIterationFailureCount", 1, {"mock": {"result": "1"}}),
        (distributed(), "mapItemReaderData", "[1]", MAP_MOCK),
    ):
        with pytest.raises(ValidationException, match=f"(?i)^{member}"):
            tried(refused, stateConfiguration={member: value}, **params)


def nap(event: Any, context: Any) -> None:
    """A function that takes too long."""
    del event, context
    time.sleep(1.2)


@pytest.mark.parametrize(("most", "more"), [(0.2, {}), (300, {"TimeoutSeconds": 1})])
def test_a_trial_ends_in_time(
    tried: Try, settings: Any, monkeypatch: pytest.MonkeyPatch, most: float, more: dict[str, int]
) -> None:
    """After five minutes, or the state's own TimeoutSeconds, whatever it calls is timed out."""
    settings.STATEYARD_FUNCTIONS = {"nap": f"{__name__}:nap"}
    monkeypatch.setattr(state, "MOST_S", most)
    answer = tried(function("nap", End=True, **more))
    assert (answer["status"], answer["error"]) == ("FAILED", "States.Timeout")
