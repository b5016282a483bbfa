"""Where does a call go: by service, by function, for every state machine or for one?"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

import engine
from console.integrations import explain, function, invoke, targets
from console.integrations.outcome import Failed, Succeeded, Task

if TYPE_CHECKING:
    from pytest_django.fixtures import SettingsWrapper

EXECUTION = "arn:aws:states:us-east-1:123456789012:execution:{}:x"
LAMBDA = "arn:aws:lambda:us-east-1:123456789012:function:{}"
SECRET = {"access_key_id": "AKIAXYZ", "secret_access_key": "hush"}
TARGETS: dict[str, Any] = {
    "*": {"endpoint_url": "http://ana:secret@127.0.0.1:5000", **SECRET},
    "s3": {"endpoint_url": "http://127.0.0.1:9001", "region": "eu-central-1", **SECRET},
    "http": {"endpoints": ["https://api.example.com"]},
    "machines": {
        "Orders": {
            "sqs": {"endpoint_url": "http://127.0.0.1:7000", **SECRET},
            "functions": {"add": f"{__name__}:orders", "ship-*": "http://127.0.0.1:8000/ship"},
            "http": {"endpoints": ["https://orders.example.com"]},
        },
        "Closed": {"*": {"endpoint_url": "http://127.0.0.1:1", **SECRET}},
    },
}


def everybody(event: Any, _: Any) -> Any:
    """Answer for every state machine."""
    return ["everybody", event]


def orders(event: Any, _: Any) -> Any:
    """Answer for Orders."""
    return ["orders", event]


@pytest.fixture(autouse=True)
def said(settings: SettingsWrapper) -> None:
    """Say where calls go."""
    settings.STEPYARD_TARGETS = TARGETS
    here = f"{__name__}:everybody"
    arns = "arn:aws:lambda:*:function:old-*"
    settings.STEPYARD_FUNCTIONS = {"add": here, "bill-*": here, arns: here, "activity:work": here}


@pytest.mark.parametrize(
    ("service", "machine", "port", "where"),
    [
        ("s3", "", 9001, "s3"),
        ("s3", "Orders", 9001, "s3"),
        ("sqs", "", 5000, "*"),
        ("sqs", "Orders", 7000, "machines: Orders: sqs"),
        ("sqs", "Others", 5000, "*"),
        ("s3", "Closed", 1, "machines: Closed: *"),
    ],
)
def test_a_machines_own_section_comes_first(
    service: str, machine: str, port: int, where: str
) -> None:
    """What it does not name goes where everybody's goes; its own ``*`` leaves nothing over."""
    found = targets.find(service, machine)
    assert found is not None
    assert str(port) in found.target["endpoint_url"]
    assert found.where == where
    client = targets.client(service, None, "us-east-1", machine)
    assert client.meta.endpoint_url.endswith(f":{port}")


def call(name: str, machine: str) -> Any:
    """Call a function as a task of an execution of a machine; return what it said."""
    execution = EXECUTION.format(machine)
    outcome = function.call(Task("lambda", LAMBDA.format(name), "", "", "1", "k", execution, ""))
    assert isinstance(outcome, Succeeded), outcome
    return engine.loads(outcome.output)


def test_functions_are_found_by_name_pattern_and_machine() -> None:
    """A name comes before a pattern, the machine's own before everybody's."""
    assert call("add", "Others") == ["everybody", 1]
    assert call("add", "Orders") == ["orders", 1]
    assert call("add", "Orders/Label") == ["orders", 1]  # a child of its distributed Map
    assert call("bill-eu", "Orders") == ["everybody", 1]
    assert call("old-x", "Orders") == ["everybody", 1]
    arguments = engine.dumps({"FunctionName": "add", "Payload": 2})
    task = Task("service", "", "lambda", "invoke", arguments, "k", EXECUTION.format("Orders"), "")
    outcome = invoke.call(task)
    assert isinstance(outcome, Succeeded)
    assert engine.loads(outcome.output)["Payload"] == ["orders", 2]


def test_a_name_that_no_pattern_fits_is_not_found() -> None:
    """A pattern fits a whole name, and another machine's own functions are not for all."""
    for name in ("my-bill-eu", "bill", "ship-1"):
        assert targets.function(name, LAMBDA.format(name), "Others") is None
    task = Task("lambda", LAMBDA.format("b"), "", "", "1", "k", EXECUTION.format("Orders"), "")
    outcome = function.call(task)
    assert isinstance(outcome, Failed)
    assert outcome.error == "Lambda.ResourceNotFoundException"


PLANS = [
    ("sqs:sendMessage", {}, "Others", "sqs SendMessage", "http://127.0.0.1:5000", "*"),
    ("sqs:sendMessage", {}, "Orders", "sqs SendMessage", "http://127.0.0.1:7000", "Orders: sqs"),
    ("aws-sdk:s3:getObject", {}, "Orders", "s3 GetObject", "http://127.0.0.1:9001", "s3"),
    ("states:startExecution", {}, "Orders", "stepfunctions StartExecution", "this server", ""),
    ("lambda:invoke", {"FunctionName": "add"}, "Orders", "function add", ":orders", "functions"),
    ("lambda:invoke", {"FunctionName.$": "$.f"}, "Orders", "at run time", "functions.json", ""),
    (
        "http:invoke",
        {"ApiEndpoint": "https://u:p@x.y/z"},
        "Orders",
        "http",
        "https://x.y/z",
        "http",
    ),
    ("http:invoke", {"ApiEndpoint": "{% $u %}"}, "Orders", "http", "at run time", "http"),
]


@pytest.mark.parametrize(("resource", "given", "machine", "what", "where", "entry"), PLANS)
def test_a_plan_says_what_a_call_does(
    resource: str, given: Any, machine: str, what: str, where: str, entry: str
) -> None:
    """Operation, address and the entry that says so; a plan calls nothing and tells no secret."""
    parsed = engine.parse_resource(f"arn:aws:states:::{resource}")
    assert parsed is not None
    plan = explain.plan(parsed, given, machine)
    assert what in plan.what
    assert where in plan.where
    assert entry in plan.entry
    assert plan.problem == ""
    assert not [one for one in ("hush", "secret", "ana", "AKIAXYZ") if one in str(plan)]


@pytest.mark.parametrize(
    ("resource", "then"),
    [
        ("batch:submitJob.sync", "waits for the job's end, by describeJobs"),
        ("sqs:sendMessage.waitForTaskToken", "waits until somebody sends the task token back"),
        ("sqs:sendMessage", ""),
    ],
)
def test_a_plan_says_what_is_waited_for(resource: str, then: str) -> None:
    """As the pattern of the resource has it."""
    parsed = engine.parse_resource(f"arn:aws:states:::{resource}")
    assert parsed is not None
    assert explain.plan(parsed, {}, "").then == then


def test_a_plan_says_why_nothing_is_called(settings: SettingsWrapper) -> None:
    """The words a failed task would have, before it fails."""
    settings.STEPYARD_TARGETS, settings.STEPYARD_FUNCTIONS = {}, {}
    for resource, words in {
        "arn:aws:states:::sqs:sendMessage": "No target for 'sqs'",
        "arn:aws:states:::http:invoke": '"http" is not in targets.json',
        LAMBDA.format("add"): "No function of this name",
    }.items():
        parsed = engine.parse_resource(resource)
        assert parsed is not None
        assert words in explain.plan(parsed, {}, "Orders").problem
