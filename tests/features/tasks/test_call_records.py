"""The page of calls says what became of them of late, and leads to what it names."""

from __future__ import annotations

import html
import re
from typing import TYPE_CHECKING

from console.store.tasks import claim, complete
from tests.console.store.helpers import ACTIVITY, WORK, create, drain, start
from tests.console.web.helpers import markup, page
from tests.features.tasks.test_tasks import waiting

if TYPE_CHECKING:
    from django.conf import LazySettings
    from django.test import Client

    from console.models import Execution, Project

ADDRESS = "/machines/machine/calls/"


def finished(project: Project, name: str, *, fails: bool = False) -> Execution:
    """Return an execution whose one task a worker has done, or failed."""
    execution = waiting(project, name=name)
    work = claim.take_activity_task(ACTIVITY, "w1")
    assert work is not None
    if fails:
        complete.fail(work.token, "Broken", None)
    else:
        complete.succeed(work.token, "1")
    return drain(execution)


def test_a_call_says_how_often_it_was_made_and_how_it_went(
    project: Project, client: Client
) -> None:
    """In as many executions as its heading says; the newest one shows input and output."""
    create(project, WORK)
    assert "Last 0" not in markup(client.get(ADDRESS))
    finished(project, "first")
    finished(project, "second", fails=True)
    newest = waiting(project, name="third")
    shown = re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", markup(client.get(ADDRESS))))
    assert "Last 3 executions" in shown
    assert "3 visits" in shown
    assert "1 failed" in shown
    assert "1 running" in shown
    assert re.search(r"p50 .* p95 ", shown)
    links = re.findall(r'href="([^"]+)"', html.unescape(client.get(ADDRESS).content.decode()))
    steps = [link for link in links if link.startswith(page(newest)) and "step=" in link]
    assert len(steps) == 1
    assert client.get(steps[0]).status_code == 200


def test_states_and_what_they_call_are_links(
    project: Project, client: Client, settings: LazySettings
) -> None:
    """To the place in the definition, and to the activity if there is one."""
    settings.STATEYARD_FUNCTIONS = {}
    machine = create(project, WORK)
    name = ACTIVITY.rpartition(":")[2]
    assert f'href="/activities/{name}/"' not in markup(client.get(ADDRESS))
    drain(start(machine, name="x"))
    waiting(project, name="y")
    shown = markup(client.get(ADDRESS))
    assert f'href="/activities/{name}/"' in shown
    place = re.search(r'href="(/machines/machine/definition/\?state=[^"]+)"', shown)
    assert place is not None
    assert client.get(html.unescape(place[1])).status_code == 200


def test_a_function_leads_to_its_target(
    project: Project, client: Client, settings: LazySettings
) -> None:
    """The list of targets has it under the name of the link."""
    settings.STATEYARD_FUNCTIONS = {"add": "shop:add"}
    arn = "arn:aws:lambda:us-east-1:123456789012:function:add"
    create(
        project, {"StartAt": "A", "States": {"A": {"Type": "Task", "Resource": arn, "End": True}}}
    )
    assert 'href="/targets/#function-add"' in markup(client.get(ADDRESS))
    assert 'id="function-add"' in markup(client.get("/targets/"))


def test_a_sample_function_says_whom_it_serves(
    project: Project, client: Client, settings: LazySettings
) -> None:
    """A copy of a sample with another role hears why its function is not found."""
    settings.STATEYARD_FUNCTIONS = {}
    name = next(name for name in settings.STATEYARD_SAMPLE_FUNCTIONS if ":" not in name)
    task = {"Type": "Task", "Resource": "arn:aws:states:::lambda:invoke", "End": True}
    for called in (name, "nobody"):
        state = {**task, "Parameters": {"FunctionName": called}}
        create(project, {"StartAt": "A", "States": {"A": state}}, f"of-{called}")
    assert "with the role of the samples can call" in markup(
        client.get(f"/machines/of-{name}/calls/")
    )
    assert "No function of this name" in markup(client.get("/machines/of-nobody/calls/"))
