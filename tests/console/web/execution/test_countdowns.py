"""A state that waits says for how long: in its box of the graph and in its panel."""

from __future__ import annotations

import json
import re
from html import unescape
from typing import TYPE_CHECKING, Any

import pytest

from console.db import audit
from console.models import TaskRow, Timer
from console.store.executions.stop import stop_execution
from console.store.tasks import activities, claim, manual
from tests.console.store.helpers import ACTIVITY, REGION, WAIT, create, drain, one, start
from tests.console.web.helpers import markup, page

if TYPE_CHECKING:
    from django.test import Client

    from console.models import Execution, Project

RETRIED = {
    "StartAt": "Try",
    "States": {
        "Try": {
            "Type": "Parallel",
            "Branches": [{"StartAt": "No", "States": {"No": {"Type": "Fail", "Error": "Busy"}}}],
            "Retry": [{"ErrorEquals": ["Busy"], "IntervalSeconds": 600}],
            "End": True,
        }
    },
}


def due_ms(execution: Execution) -> int:
    """Return when the one timer of an execution goes off."""
    return Timer.objects.get(execution=execution).due_ms


def box_words(shown: str, name: str) -> str:
    """Return what the box of a state says below its name and type."""
    box = shown.partition(f'data-step="{name}"')[2].partition("</a>")[0]
    return re.sub("<[^>]*>", "", box.partition('class="node-detail"')[2].partition(">")[2])


def step_status(shown: str) -> str:
    """Return what the panel says of the status of its step."""
    return shown.partition('id="step-status"')[2].partition("<nav")[0]


def painted_by_tick(client: Client, execution: Execution) -> Any:
    """Return what a tick repaints."""
    tick = client.get(page(execution, "_delta?after=1")).content.decode()
    return json.loads(unescape(tick.partition('data-paint="')[2].partition('"')[0]))


@pytest.mark.parametrize(
    ("definition", "state", "box", "panel"),
    [
        (WAIT, "W", r"Waiting · ?(1 h 00|59) min( \d+ s)? ?left", r"</b>left, until<time"),
        (RETRIED, "Try", r"Next try in ?\d+ min \d+ s", r"<b>Next attempt</b>in<b.*retry 1"),
    ],
)
def test_a_pause_counts_down(
    project: Project, client: Client, definition: Any, state: str, box: str, panel: str
) -> None:
    """The page, and the tick that tells of it, name the moment; an ended execution does not."""
    execution = drain(start(create(project, definition)))
    due = f'data-until="{due_ms(execution)}"'
    shown = markup(client.get(page(execution)))
    assert re.search(box, box_words(shown, state))
    assert due in step_status(shown)
    assert re.search(panel, step_status(shown))
    painted = painted_by_tick(client, execution)
    [countdown] = [each["countdown"] for each in painted["nodes"].values() if "countdown" in each]
    assert countdown["until"] == due_ms(execution)
    stop_execution(execution)
    shown = markup(client.get(page(execution)))
    assert due not in shown
    assert "left" not in box_words(shown, state)
    painted = painted_by_tick(client, execution)
    assert not any("countdown" in each for each in painted["nodes"].values())


def test_the_past_does_not_count_down(project: Project, client: Client) -> None:
    """What is left now was not left then."""
    execution = drain(start(create(project, WAIT)))
    shown = markup(client.get(page(execution, "?at=2&step=W")))
    assert "data-until" not in box_words(shown, "W")
    assert "data-until" not in step_status(shown)


def test_the_panel_of_a_task_names_its_timeout(project: Project, client: Client) -> None:
    """And which clock it is."""
    activities.create_activity(project, REGION, "work")
    task = one("A", Type="Task", Resource=ACTIVITY, TimeoutSeconds=3600, HeartbeatSeconds=600)
    execution = drain(start(create(project, task)))
    claim.take_activity_task(ACTIVITY, "w")
    drain(execution)
    shown = step_status(markup(client.get(page(execution))))
    assert "data-until" in shown
    assert "Times out in" in shown
    assert "Limit: heartbeat (HeartbeatSeconds)<" in shown


def test_iterations_in_one_wait_say_when_the_first_goes_on(
    project: Project, client: Client
) -> None:
    """The box names the next one of all; the panel the time of the visit it is about."""
    nap = {"Type": "Wait", "SecondsPath": "$", "End": True}
    inner = {"StartAt": "Nap", "States": {"Nap": nap}}
    each = {"Type": "Map", "ItemProcessor": inner, "End": True}
    machine = create(project, {"StartAt": "Each", "States": {"Each": each}})
    execution = drain(start(machine, [7200, 3600, 5400]))
    first, last = (Timer.objects.order_by(key)[0].due_ms for key in ("due_ms", "-due_ms"))
    shown = markup(client.get(page(execution, "?step=Nap&iteration=0")))
    assert f'data-until="{last}"' in step_status(shown)
    assert "next" not in box_words(shown, "Nap")
    shown = markup(client.get(page(execution, "?step=Nap")))
    assert re.search(r"3 wait · next ?(1 h 00|59) min", box_words(shown, "Nap"))
    [countdown] = [
        node["countdown"]
        for node in painted_by_tick(client, execution)["nodes"].values()
        if "countdown" in node
    ]
    assert countdown == {"before": "3 wait · next ", "until": first, "after": ""}


def test_the_page_of_one_that_waits_has_one_heading(project: Project, client: Client) -> None:
    """The dialog that asks whether to stop it stands below it."""
    execution = drain(start(create(project, WAIT)))
    assert markup(client.get(page(execution))).count("<h1") == 1


def test_a_heartbeat_starts_the_countdown_anew(project: Project, client: Client) -> None:
    """No event tells of it: the next tick does, in the panel and in the table below."""
    activities.create_activity(project, REGION, "work")
    task = one("A", Type="Task", Resource=ACTIVITY, HeartbeatSeconds=600)
    execution = drain(start(create(project, task)))
    claim.take_activity_task(ACTIVITY, "w")
    drain(execution)
    row = TaskRow.objects.get(execution=execution)
    TaskRow.objects.update(heartbeat_due_ms=row.heartbeat_due_ms - 300_000)
    shown = unescape(client.get(page(execution)).content.decode())
    poll = re.search(r'hx-get="([^"]*)"', shown.partition('id="poll"')[2])
    assert poll is not None
    assert client.get(poll[1]).status_code == 204
    manual.heartbeat(execution, row.task, audit.Actor("ada"))
    due = TaskRow.objects.get(execution=execution).heartbeat_due_ms
    tick = client.get(poll[1])
    assert tick.status_code == 200
    told = markup(tick)
    assert f'data-until="{due}"' in step_status(told)
    assert f'data-until="{due}"' in told.partition('id="waiting"')[2]
    again = re.search(r'hx-get="([^"]*)"', told.partition('id="poll"')[2])
    assert again is not None
    assert client.get(again[1]).status_code == 204
