"""A call goes to the target configured for its service or function, for all machines or one."""

from __future__ import annotations

import threading
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any

import pytest

import engine
from console.features.targets import explain
from console.integrations import (
    connections,
    function,
    invoke,
    redaction,
    targets,
    web,
    web_parameters,
)
from console.integrations.outcome import Failed, Succeeded, TaskAttempt

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pytest_django.fixtures import Settings

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
def said(settings: Settings) -> None:
    """Say where calls go."""
    settings.STATEYARD_TARGETS = TARGETS
    here = f"{__name__}:everybody"
    arns = "arn:aws:lambda:*:function:old-*"
    settings.STATEYARD_FUNCTIONS = {"add": here, "bill-*": here, arns: here, "activity:work": here}


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
    entry = targets.find_entry(service, key(machine))
    assert entry is not None
    assert str(port) in entry.target["endpoint_url"]
    assert entry.where == where
    client = targets.service_client(service, None, "us-east-1", key(machine))
    assert client.meta.endpoint_url.endswith(f":{port}")


def key(machine: str, project: str = "default") -> targets.MachineKey:
    """Return a state machine of a project as the settings name it."""
    return targets.MachineKey(project, machine)


def task_of(machine: str, arn: str = "", project: str = "default") -> TaskAttempt:
    """Return a task of an execution of a machine."""
    execution = EXECUTION.format(machine)
    return TaskAttempt("lambda", arn, "", "", "1", "k", execution, "", project=project)


def call(name: str, machine: str) -> Any:
    """Call a function as a task of an execution of a machine; return what it said."""
    outcome = function.call(task_of(machine, LAMBDA.format(name)))
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
    task = replace(task_of("Orders"), kind="service", service="lambda", action="invoke")
    task = replace(task, input=arguments)
    outcome = invoke.call(task)
    assert isinstance(outcome, Succeeded)
    assert engine.loads(outcome.output)["Payload"] == ["orders", 2]


def test_a_name_that_no_pattern_fits_is_not_found() -> None:
    """A pattern fits a whole name, and another machine's own functions are not for all."""
    for name in ("my-bill-eu", "bill", "ship-1"):
        assert targets.find_function(name, LAMBDA.format(name), key("Others")) is None
    task = task_of("Orders", LAMBDA.format("b"))
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


@pytest.mark.parametrize(("resource", "parameters", "machine", "callee", "where", "entry"), PLANS)
def test_a_plan_says_what_a_call_does(
    resource: str, parameters: Any, machine: str, callee: str, where: str, entry: str
) -> None:
    """Operation, address and the entry that says so; a plan calls nothing and tells no secret."""
    parsed = engine.parse_resource(f"arn:aws:states:::{resource}")
    assert parsed is not None
    plan = explain.plan_call(parsed, parameters, key(machine))
    assert callee in plan.callee
    assert where in plan.where
    assert entry in plan.entry
    assert plan.problem == ""
    assert not [secret for secret in ("hush", "secret", "ana", "AKIAXYZ") if secret in str(plan)]


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
    assert explain.plan_call(parsed, {}, key("")).then == then


def test_a_plan_says_why_nothing_is_called(settings: Settings) -> None:
    """The words a failed task would have, before it fails."""
    settings.STATEYARD_TARGETS, settings.STATEYARD_FUNCTIONS = {}, {}
    for resource, words in {
        "arn:aws:states:::sqs:sendMessage": "No target for 'sqs'",
        "arn:aws:states:::http:invoke": '"http" is not in targets.json',
        LAMBDA.format("add"): "No function of this name",
    }.items():
        parsed = engine.parse_resource(resource)
        assert parsed is not None
        assert words in explain.plan_call(parsed, {}, key("Orders")).problem


# -- projects --------------------------------------------------------------------------------------

AT = "http://127.0.0.1:{}"
OF_PROJECTS: dict[str, Any] = {
    "sqs": {"endpoint_url": AT.format(1), **SECRET},
    "s3": {"endpoint_url": AT.format(2), **SECRET},
    "http": {"endpoints": [AT.format(3)], "connections": {"shop": {"value": "general"}}},
    "machines": {
        "billing": {
            "sqs": {"endpoint_url": AT.format(4), **SECRET},
            "http": {"endpoints": [AT.format(5)], "connections": {"shop": {"value": "default"}}},
            "functions": {"add": "m:default"},
        }
    },
    "projects": {
        "a": {
            "sqs": {"endpoint_url": AT.format(6), **SECRET},
            "http": {"endpoints": [AT.format(7)], "connections": {"shop": {"value": "of a"}}},
            "machines": {
                "billing": {
                    "sqs": {"endpoint_url": AT.format(8), **SECRET},
                    "functions": {"add": "m:billing_of_a"},
                }
            },
        },
        "all": {"*": {"endpoint_url": AT.format(9), **SECRET}},
    },
}
FUNCTIONS: dict[str, Any] = {
    "add": "m:general",
    "activity:work": "m:work",
    "projects": {"a": {"add": "m:of_a", "new-*": "m:new", "activity:work": "m:work_of_a"}},
}


@pytest.fixture
def of_projects(settings: Settings) -> None:
    """Say where calls of several projects go."""
    settings.STATEYARD_TARGETS, settings.STATEYARD_FUNCTIONS = OF_PROJECTS, FUNCTIONS


@pytest.mark.usefixtures("of_projects")
@pytest.mark.parametrize(
    ("project", "machine", "service", "port", "function"),
    [
        ("a", "billing", "sqs", 8, "m:billing_of_a"),
        ("a", "other", "sqs", 6, "m:of_a"),
        ("a", "billing", "s3", 2, "m:billing_of_a"),
        ("b", "billing", "sqs", 1, "m:general"),
        ("b", "billing", "http", 3, "m:general"),
        ("a", "billing", "http", 7, "m:billing_of_a"),
        ("default", "billing", "sqs", 4, "m:default"),
        ("default", "billing", "http", 5, "m:default"),
        ("default", "other", "http", 3, "m:general"),
        ("all", "billing", "sqs", 9, "m:general"),
        ("all", "billing", "s3", 9, "m:general"),
        ("", "billing", "sqs", 1, "m:general"),
    ],
)
def test_each_project_has_its_own(
    project: str, machine: str, service: str, port: int, function: str
) -> None:
    """A machine of the same name in another project gets nothing of it; general is for all."""
    entry = targets.find_entry(service, key(machine, project))
    assert entry is not None
    urls = [entry.target.get("endpoint_url"), *entry.target.get("endpoints", ())]
    assert AT.format(port) in urls
    assert targets.find_function("add", LAMBDA.format("add"), key(machine, project))[0] == function


@pytest.mark.usefixtures("of_projects")
@pytest.mark.parametrize(
    ("project", "machine", "value"),
    [
        ("a", "billing", "of a"),
        ("b", "billing", "general"),
        ("default", "billing", "default"),
        ("default", "other", "general"),
    ],
)
def test_a_connection_is_its_project_s_own(project: str, machine: str, value: str) -> None:
    """Project B's machine `billing` does not get the connection of A's, nor that of the default."""
    entry = targets.find_exact_entry("http", key(machine, project))
    assert entry is not None
    assert connections.find_connection("shop", entry.target).authorize().secrets == (value,)


@pytest.mark.usefixtures("of_projects")
def test_addresses_of_one_project_are_not_called_for_another() -> None:
    """Neither by an HTTP Task nor by an event rule."""
    for project, ports in {"a": {7}, "b": {3}, "default": {3}, "all": {3}}.items():
        may = {n for n in range(1, 9) if web._is_allowed("http", AT.format(n), key("", project))}
        assert may == ports, project
    with pytest.raises(web_parameters.BadRequestError):
        web.post_request(AT.format(7), b"", {}, 1, key("", "b"))


@pytest.mark.usefixtures("of_projects")
def test_functions_and_activities_of_a_project() -> None:
    """Patterns, too; a function may well be called "projects"."""
    assert targets.find_function("new-x", LAMBDA.format("new-x"), key("", "a")) is not None
    assert targets.find_function("new-x", LAMBDA.format("new-x"), key("", "b")) is None
    assert targets.find_function("projects", LAMBDA.format("projects"), key("", "b")) is None
    assert targets.find_activity("work", "a")[:2] == (
        "m:work_of_a",
        "functions: projects: a: activity:work",
    )
    assert targets.find_activity("work", "b")[:2] == ("m:work", "functions: activity:work")
    assert targets.find_activity("none", "a") is None


# -- secrets of addresses --------------------------------------------------------------------------

RANDOM = "9fK2jd83kLmQ02xPz71c"
HOOK = "http://ana:p4ssw0rd@127.0.0.1:9/hook/in?token=s3cr3t%2Fvalue&v=1#frag"


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        (HOOK, "http://127.0.0.1:9/hook/in?(masked)"),
        ("https://token@host/x", "https://host/x"),
        ("https://host/x", "https://host/x"),
        ("https://hooks.host/services/T000/B000/XXXX", "https://hooks.host/services/(masked)"),
        ("https://host/webhooks/123/aB-cD_3", "https://host/webhooks/123/(masked)"),
        (f"https://host/v1/{RANDOM}/send", "https://host/v1/(masked)/send"),
        ("https://host/kQzRtLmWpXvBnJsY", "https://host/(masked)"),
        ("https://host/webhooks/stateyard-orders", "https://host/webhooks/stateyard-orders"),
        ("https://host/CreateOrder/v2/events-2024", "https://host/CreateOrder/v2/events-2024"),
        ("https://host/2015-03-31/functions/a", "https://host/2015-03-31/functions/a"),
        ("http://[::1", "(masked)"),
    ],
)
def test_an_address_is_shown_without_its_secrets(url: str, shown: str) -> None:
    """User, password, query, fragment and keys in a path; also within a sentence."""
    assert redaction.without_secrets(url) == shown
    told = redaction.without_url_secrets(f"before {url} after, {url}: x", url)
    assert told.startswith(f"before {shown} after")
    for secret in (
        "p4ssw0rd",
        "s3cr3t",
        "token=",
        "token@",
        "frag",
        "B000",
        "XXXX",
        "aB-cD",
        RANDOM,
    ):
        assert secret not in told


@pytest.mark.parametrize(
    "address",
    [
        f"arn:aws:states:us-east-1:123456789012:stateMachine:Orders{RANDOM}",
        "arn:aws:sqs:us-east-1:123456789012:OrdersStack-DeadLetters4F3A21C0-kQzRtLmWpXvB",
        "arn:aws:states:us-east-1:123456789012:stateMachine:hooks/T0B1C2D3E4F5",
        f"mailto:{RANDOM}@example.com",
    ],
)
def test_an_arn_and_a_mail_address_hold_no_secret(address: str) -> None:
    """Names that CDK makes look like keys; a reason that repeats them stays readable."""
    assert redaction.without_secrets(address) == address
    assert redaction.without_url_secrets(f"No {address}", address) == f"No {address}"


def test_a_key_in_a_path_that_a_server_sends_back_is_masked() -> None:
    """The path of a 404 page, and the key alone."""
    url = f"https://host/v1/{RANDOM}"
    told = redaction.without_url_secrets(f"No page /v1/{RANDOM}; {RANDOM} is unknown", url)
    assert told == "No page /v1/(masked); (masked) is unknown"


def test_what_a_server_sends_back_of_an_address_is_masked() -> None:
    """The path with its query as a 404 page has it, and the value alone."""
    told = redaction.without_url_secrets(
        "No page /hook/in?token=s3cr3t%2Fvalue&v=1 for s3cr3t/value of ana:p4ssw0rd", HOOK
    )
    assert not [secret for secret in ("s3cr3t", "p4ssw0rd") if secret in told]


@pytest.mark.parametrize("path", ["gone", "echo"])
def test_a_function_s_address_is_in_no_cause(
    settings: Settings, echo_server: str, path: str
) -> None:
    """Neither when nobody answers, nor when the endpoint's error page repeats it."""
    host = "127.0.0.1:9" if path == "gone" else echo_server
    url = f"http://ana:p4ssw0rd@{host}/{path}?token=s3cr3t%2Fvalue"
    settings.STATEYARD_FUNCTIONS = {"f": url}
    outcome = function.call(task_of("Orders", LAMBDA.format("f")))
    assert isinstance(outcome, Failed)
    assert outcome.cause is not None
    assert not [secret for secret in ("s3cr3t", "p4ssw0rd", "token=") if secret in outcome.cause]
    assert host in outcome.cause or path == "echo"


class _Echo(BaseHTTPRequestHandler):
    """Answers 404 with what was asked."""

    def do_POST(self) -> None:
        """Repeat the address and the header that user and password became."""
        self.rfile.read(int(self.headers.get("Content-Length", 0)))
        told = f"no {self.path} for {self.headers.get('Authorization')}".encode()
        self.send_response(404)
        self.send_header("Content-Length", str(len(told)))
        self.end_headers()
        self.wfile.write(told)

    def log_message(self, *_: Any) -> None:
        """Print nothing."""


@pytest.fixture
def echo_server() -> Iterator[str]:
    """Return host and port of a server that repeats what it is asked."""
    served = ThreadingHTTPServer(("127.0.0.1", 0), _Echo)
    threading.Thread(target=served.serve_forever, args=(0.02,), daemon=True).start()
    yield f"127.0.0.1:{served.server_port}"
    served.shutdown()
    served.server_close()
