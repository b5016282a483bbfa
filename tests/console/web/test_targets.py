"""Do the pages say where calls go, without a secret and without a call?"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from console.models import Project
from console.store import switches, tags
from tests.console.store.helpers import create, function
from tests.console.web.helpers import MARKUP, text

if TYPE_CHECKING:
    from django.test import Client
    from pytest_django.fixtures import SettingsWrapper

TARGETS: dict[str, Any] = {
    "*": {
        "endpoint_url": "http://ana:hush@127.0.0.1:5000",
        "access_key_id": "AKIASECRET",
        "secret_access_key": "very-secret",
    },
    "s3": {"region": "eu-central-1", "profile": "minio"},
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
def said(settings: SettingsWrapper) -> None:
    """Say where calls go."""
    settings.STEPYARD_TARGETS = TARGETS
    settings.STEPYARD_FUNCTIONS = {"add": "shop:add", "activity:work": "shop:work", "b-*": "s:b"}


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
        'href="/machines/machine/calls/"',
    ):
        assert words in shown
    assert not [one for one in SECRETS if one in shown]


def test_a_page_without_targets_says_that_nothing_is_called(
    project: Project, client: Client, settings: SettingsWrapper
) -> None:
    """And why that is so."""
    settings.STEPYARD_TARGETS = {}
    assert "no test reaches a real account by accident" in text(client.get("/targets/"))


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
    assert not [one for one in SECRETS if one in shown]


def test_another_machine_goes_where_everybody_goes(
    project: Project, client: Client, settings: SettingsWrapper
) -> None:
    """And hears why nothing would be called."""
    create(project, CALLS, "other")
    assert "http://127.0.0.1:5000" in text(client.get("/machines/other/calls/"))
    settings.STEPYARD_TARGETS = {}
    assert "No target for 'sqs' in targets.json" in text(client.get("/machines/other/calls/"))


def test_the_switches_of_a_machine_are_shown(project: Project, client: Client) -> None:
    """As the tags have them, else as AWS does."""
    machine = create(project, CALLS)
    tags.put(machine.arn, {switches.CHILD_POLICY: "terminate"})
    shown = text(client.get("/machines/machine/calls/"))
    assert "stepyard:childPolicy</dt><dd>terminate" in shown
    assert "stepyard:onWorkerLoss</dt><dd>redispatch" in shown


def test_another_projects_machine_has_no_calls(project: Project, client: Client) -> None:
    """It does not exist here."""
    create(Project.objects.create(name="other", account_id="999999999999"), CALLS, "theirs")
    assert client.get("/machines/theirs/calls/").status_code == 404
