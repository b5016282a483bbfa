"""The pages say where calls go, without showing a secret or making a call."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import pytest
from django.http import QueryDict

from console.config.environment import StartupFile
from console.config.functions_file import FunctionsFile
from console.config.setting_shapes import FUNCTIONS
from console.config.setting_shapes import TARGETS as TARGETS_SHAPE
from console.features.targets.forms import OptionsForm
from console.integrations import targets
from console.models import AuditEntry, Project, StateMachine
from console.samples import ROLE_END
from console.store.machines import machine_options, tags
from tests.console.store.helpers import create, function
from tests.console.web.helpers import MARKUP, markup, text

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from django.test import Client
    from pytest_django.fixtures import Settings

TARGETS: dict[str, Any] = {
    "*": {
        "endpoint_url": "http://ana:hush@127.0.0.1:5000",
        "access_key_id": "AKIASECRET",
        "secret_access_key": "very-secret",
    },
    "s3": {"region": "eu-central-1", "profile": "minio"},
    "kubernetes": {"endpoints": ["https://bob:x@kube.example.com:6443"], "token": "hush"},
    "http": {
        "endpoints": ["https://api.example.com"],
        "connections": {"shop": {"type": "BASIC", "username": "u", "password": "pass-secret"}},
    },
    "machines": {
        "machine": {
            "sqs": {"endpoint_url": "http://127.0.0.1:7000"},
            "functions": {"add": "http://bob:hush@127.0.0.1:8000/add"},
        }
    },
}
SECRETS = ("AKIASECRET", "very-secret", "pass-secret", "hush", "ana:", "bob:")
CALLS = {
    "StartAt": "Add",
    "States": {
        "Add": {**function("add"), "Next": "Branch"},
        "Branch": {
            "Type": "Parallel",
            "Branches": [
                {
                    "StartAt": MARKUP,
                    "States": {
                        MARKUP: {
                            "Type": "Task",
                            "Resource": "arn:aws:states:::sqs:sendMessage.waitForTaskToken",
                            "Parameters": {"QueueUrl": "q", "MessageBody.$": "$$.Task.Token"},
                            "End": True,
                        }
                    },
                }
            ],
            "End": True,
        },
    },
}


@pytest.fixture(autouse=True)
def said(settings: Settings) -> None:
    """Say where calls go."""
    settings.STATEYARD_TARGETS = TARGETS
    settings.STATEYARD_FUNCTIONS = {"add": "shop:add", "activity:work": "shop:work", "b-*": "s:b"}


def test_the_page_of_targets_names_every_entry(project: Project, client: Client) -> None:
    """Services, functions, activities, addresses and connections, and for whom; no secret."""
    shown = text(client.get("/targets/"))
    for words in (
        "every other service",
        "http://127.0.0.1:5000",
        "a key in targets.json",
        "AWS itself",
        "profile minio",
        "eu-central-1",
        "http://127.0.0.1:7000",
        "shop:add",
        "b-*",
        "Python, in this server",
        "http://127.0.0.1:8000/add",
        "https://api.example.com",
        "Connection (BASIC)",
        "https://kube.example.com:6443",
        "Cluster",
        'href="/machines/machine/calls/"',
    ):
        assert words in shown
    assert not [secret for secret in SECRETS if secret in shown]


def test_a_page_without_targets_says_that_nothing_is_called(
    project: Project, client: Client, settings: Settings
) -> None:
    """And why that is so."""
    settings.STATEYARD_TARGETS = {}
    assert "no test reaches a real account by accident" in markup(client.get("/targets/"))


def test_a_machine_says_what_its_tasks_would_call(project: Project, client: Client) -> None:
    """Also those in branches; its own section wins; the template is there, nothing is called."""
    create(project, CALLS)
    shown = text(client.get("/machines/machine/calls/"))
    assert "http://127.0.0.1:8000/add" in shown
    assert "machines: machine: functions: add" in shown
    assert "sqs SendMessage" in shown
    assert "http://127.0.0.1:7000" in shown
    assert "waits until somebody sends the task token back" in shown
    assert "$$.Task.Token" in shown
    assert "<script>alert" not in client.get("/machines/machine/calls/").content.decode()
    assert not [secret for secret in SECRETS if secret in shown]


def test_another_machine_goes_where_everybody_goes(
    project: Project, client: Client, settings: Settings
) -> None:
    """And hears why nothing would be called."""
    create(project, CALLS, "other")
    assert "http://127.0.0.1:5000" in text(client.get("/machines/other/calls/"))
    settings.STATEYARD_TARGETS = {}
    assert "No target for 'sqs' in targets.json" in text(client.get("/machines/other/calls/"))


def test_the_switches_of_a_machine_are_set_by_an_editor(
    project: Project, client: Client, signed_in: Callable[[str], Client]
) -> None:
    """As the tags have them, else as AWS does; a change is in the audit, a viewer's refused."""
    machine = create(project, CALLS)
    tags.put_tags(machine.arn, {machine_options.CHILD_POLICY: "terminate"})
    shown = text(client.get("/machines/machine/calls/"))
    assert 'value="terminate" selected>stop all' in shown
    assert 'value="redispatch" selected>call again' in shown
    sent = {
        machine_options.CHILD_POLICY: "abandon",
        machine_options.ON_WORKER_LOSS: "fail",
        "team": "a",
    }
    assert client.post("/machines/machine/calls/", sent).status_code == 302
    assert tags.get_tags(machine.arn) == {
        machine_options.CHILD_POLICY: "abandon",
        machine_options.ON_WORKER_LOSS: "fail",
    }
    row = AuditEntry.objects.get(action="TagResource")
    assert (row.actor, row.target) == ("editor", machine.arn)
    assert "stateyard:onWorkerLoss=fail" in row.reason
    wrong = client.post("/machines/machine/calls/", {machine_options.CHILD_POLICY: "explode"})
    assert "must be one of abandon" in text(wrong, 422)
    operator = signed_in("operator")
    assert operator.post("/machines/machine/calls/", sent).status_code == 403
    assert "<select" not in text(operator.get("/machines/machine/calls/"))


def test_another_projects_machine_has_no_calls(project: Project, client: Client) -> None:
    """It does not exist here."""
    create(Project.objects.create(name="other", account_id="999999999999"), CALLS, "theirs")
    assert client.get("/machines/theirs/calls/").status_code == 404


@pytest.fixture
def sample(project: Project) -> None:
    """A state machine that came with the server."""
    create(project, CALLS, "sample")
    StateMachine.objects.update(role_arn=f"arn:aws:iam::123456789012:role{ROLE_END}")


@pytest.mark.parametrize(
    ("functions", "to", "listed"),
    [
        ({}, {}, True),
        ({}, {"*": {"region": "us-east-1"}}, True),
        ({}, {"lambda": {"region": "us-east-1"}}, False),
        ({"Notify*": "shop:notify"}, {}, False),
        ({"NotifyCustomer": "shop:notify"}, {}, False),
        ({"projects": {"default": {"*": "shop:every"}}}, {}, False),
    ],
)
def test_a_function_of_the_samples_is_listed_where_it_is_called(
    client: Client,
    settings: Settings,
    sample: None,
    functions: dict[str, Any],
    to: dict[str, Any],
    listed: bool,
) -> None:
    """Not where a target or a pattern of the operator's comes first."""
    settings.STATEYARD_FUNCTIONS, settings.STATEYARD_TARGETS = functions, to
    shown = text(client.get("/targets/"))
    assert (settings.STATEYARD_SAMPLE_FUNCTIONS["NotifyCustomer"] in shown) == listed


def test_the_page_says_which_functions_of_a_machine_are_called(
    client: Client, settings: Settings
) -> None:
    """The nearer section first, and then the other one: entry by entry, not one for the other."""
    general = {"add": "far:add", "sub": "far:sub", "b-one": "far:one"}
    near = {"add": "near:add", "b-*": "near:b"}
    settings.STATEYARD_FUNCTIONS = {}
    settings.STATEYARD_TARGETS = {
        "machines": {"machine": {"functions": general}},
        "projects": {"default": {"machines": {"machine": {"functions": near}}}},
    }
    shown = text(client.get("/targets/"))
    key = targets.MachineKey("default", "machine")
    for name, target in {"add": "near:add", "sub": "far:sub", "b-one": "near:b"}.items():
        assert (targets.find_function(name, "", key) or ("",))[0] == target
        assert target in shown
    assert "far:add" not in shown
    assert "far:one" not in shown


def test_what_cannot_be_called_is_shown_as_broken(
    project: Project, client: Client, settings: Settings
) -> None:
    """On both pages, with Lambda's name of the error; what can be called is not."""
    settings.STATEYARD_FUNCTIONS = {"add": "nowhere_at_all:add", "activity:work": "json:loads"}
    create(project, CALLS)
    shown = text(client.get("/targets/"))
    assert shown.count("Broken") == 1
    problem = "Unable to import module 'nowhere_at_all': No module named 'nowhere_at_all'"
    assert f"Runtime.ImportModuleError: {problem}" in shown
    settings.STATEYARD_TARGETS = {}
    called = text(client.get("/machines/machine/calls/"))
    assert called.count("Broken") == 1
    assert "this server: nowhere_at_all:add" in called
    assert problem in called


def test_a_function_that_nobody_registered_is_named(
    project: Project, client: Client, settings: Settings
) -> None:
    """With the machines that call it, unless a target may have it; names that are computed not."""
    settings.STATEYARD_TARGETS = {}
    arn = "arn:aws:lambda:*:*:function:whole"
    settings.STATEYARD_FUNCTIONS = {"b-*": "json:loads", arn: "json:loads"}
    functions = {"one": "b-known", "other": "whole", "two": "{% $name %}", "three": "forgotten"}
    for machine, called in functions.items():
        state = {
            "Type": "Task",
            "Resource": "arn:aws:states:::lambda:invoke",
            "Arguments": {"FunctionName": called},
            "End": True,
        }
        create(
            project,
            {"QueryLanguage": "JSONata", "StartAt": "A", "States": {"A": state}},
            machine,
        )
    shown = markup(client.get("/targets/"))
    assert "1 function not registered" in shown
    assert '<code>forgotten</code>, called by<a href="/machines/three/calls/">' in shown
    settings.STATEYARD_TARGETS = {"lambda": {"endpoint_url": "http://127.0.0.1:9001"}}
    assert "not registered" not in markup(client.get("/targets/"))


def test_a_file_of_functions_that_cannot_be_used_is_told(
    project: Project, client: Client, settings: Settings, tmp_path: Path
) -> None:
    """With the place in the file, without the folder; what it said before counts."""
    path = tmp_path / "functions.json"
    path.write_text('{"add": "json:loads"}', encoding="utf-8")
    settings.STATEYARD_FUNCTIONS = FunctionsFile(path, FUNCTIONS, {})
    assert "its last valid version is in use" not in text(client.get("/targets/"))
    path.write_text('{"add": \n', encoding="utf-8")
    shown = text(client.get("/targets/"))
    assert "its last valid version is in use" in shown
    assert "functions.json: line 2, column 1: got no JSON" in shown
    assert "json:loads" in shown
    assert str(tmp_path) not in shown


def test_a_change_of_the_targets_file_waits_for_a_start(
    project: Project, client: Client, settings: Settings, tmp_path: Path
) -> None:
    """The page says so; another layout of the same is no change, and a broken file is named."""
    path = tmp_path / "targets.json"
    settings.STATEYARD_TARGETS_FILE = StartupFile(path, TARGETS_SHAPE)
    changed = "has changed since the server started"
    assert changed not in text(client.get("/targets/"))
    path.write_text('{"sqs": {"region": "eu-west-1"}}', encoding="utf-8")
    shown = text(client.get("/targets/"))
    assert changed in shown
    assert "would not start" not in shown
    settings.STATEYARD_TARGETS_FILE = StartupFile(path, TARGETS_SHAPE)
    path.write_text('{ "sqs":\n {"region": "eu-west-1"} }', encoding="utf-8")
    assert changed not in text(client.get("/targets/"))
    path.write_text('{"sqs": \n', encoding="utf-8")
    shown = text(client.get("/targets/"))
    assert changed in shown
    assert "It would not start with the current file: targets.json: line 2" in shown
    assert str(tmp_path) not in shown


def test_broken_functions_stand_first_with_what_to_do(
    project: Project, client: Client, settings: Settings
) -> None:
    """And where each is registered, and which state machines name it."""
    settings.STATEYARD_FUNCTIONS = {
        "add": "json:loads",
        "b-*": "json:dumps",
        "idle": "json:loads",
        "zero": "json:no_such_name",
        "projects": {"default": {"mine": "json:loads"}},
    }
    settings.STATEYARD_TARGETS = {}
    for name, called in (("one", "add"), ("two", "b-two"), ("three", "zero")):
        create(project, {"StartAt": "F", "States": {"F": {**function(called), "End": True}}}, name)
    shown = text(client.get("/targets/"))
    rows = re.findall(r"<tr>(.*?)</tr>", shown.split('id="functions-title"')[1], re.DOTALL)[1:6]
    words = [" ".join(re.sub(r"<[^>]+>", " ", row).split()) for row in rows]
    assert words[0].startswith("zero Function Broken Runtime.HandlerNotFound")
    assert "To do: Correct the name after the colon" in words[0]
    assert "1 of 5 broken" in " ".join(shown.split())
    ends = {row.split()[0]: row.partition("functions.json")[2].strip() for row in words}
    assert ends == {
        "zero": "three",
        "add": "one",
        "b-*": "two",
        "idle": "no state machine",
        "mine": ": projects: default no state machine",
    }
    assert 'href="/machines/one/calls/"' in rows[words.index(next(w for w in words if "one" in w))]


def test_who_uses_a_function_is_read_in_one_query(
    project: Project, client: Client, django_assert_max_num_queries: Any
) -> None:
    """However many machines there are."""
    for number in range(12):
        create(project, CALLS, f"m{number}")
    with django_assert_max_num_queries(12):
        shown = " ".join(text(client.get("/targets/")).split())
    assert "and 7 more" in shown


def test_options_are_those_that_were_sent() -> None:
    """A tag that is not sent keeps its value."""
    assert OptionsForm(QueryDict("stateyard:childPolicy=ABANDON&other=1")).values == {
        "stateyard:childPolicy": "ABANDON"
    }
