"""The command palette: what a text may mean, as far as its reader may see and do it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import pytest

from console.db.audit import Actor
from console.features.alarms import store as alarms
from console.features.alarms.models import Alarm
from console.models import EventRule, Execution, Project, StateMachine
from console.statuses import AlarmKind
from console.store.tasks.activities import create_activity
from console.web.core.formatting import clock_text
from tests.console.store.helpers import PASS, REGION, create, drain, start
from tests.console.web.helpers import CHAIN, text
from tests.console.web.overview.test_lists import copies

if TYPE_CHECKING:
    from collections.abc import Callable

    from django.test import Client


def matches(client: Client, sought: str) -> dict[str, list[str]]:
    """Return kind -> the names of its matches."""
    response = client.get(f"/palette/?q={quote(sought)}")
    assert response.status_code == 200
    return {
        group.title: [match.title for match in group.matches]
        for group in response.context["groups"]
    }


def test_a_text_finds_machines_executions_states_pages_actions_and_people(
    project: Project, signed_in: Callable[[str], Client]
) -> None:
    """Each kind has its matches; the kind with the best one stands first."""
    client = signed_in("editor")
    machine = create(project, CHAIN, "Napping")
    start(machine, name="nap-4711")
    groups = matches(client, "nap")
    assert groups["State machines"] == ["Napping"]
    assert groups["Executions"] == ["nap-4711"]
    assert groups["States"] == ["Nap"]
    assert next(iter(groups)) == "States", "its name is the text"
    assert {"Start Napping", "Edit Napping"} <= set(groups["Actions"])
    assert matches(client, "metrics")["Pages"] == ["Metrics"]
    assert matches(client, "edit")["People"] == ["editor"]
    assert matches(client, "start nap")["Actions"] == ["Start Napping"]


@pytest.mark.postgres_too
def test_without_a_text_machines_and_actions_stand_above_executions(
    project: Project, signed_in: Callable[[str], Client]
) -> None:
    """The newest executions, whose names a schedule made up, do not hide what is looked for."""
    client = signed_in("editor")
    copies(drain(start(create(project, PASS, "Orders"), name="order")), 8)
    later = create(project, PASS, "Bills")
    StateMachine.objects.filter(pk=later.pk).update(updated_ms=later.updated_ms + 1)
    shown = matches(client, "")
    assert list(shown) == ["State machines", "Actions", "Executions", "Pages"]
    assert shown["State machines"] == ["Bills", "Orders"]
    assert "Create state machine" in shown["Actions"]
    assert len(shown["Executions"]) == 6


def test_more_executions_than_are_offered_are_a_press_away(
    project: Project, client: Client
) -> None:
    """Six of eight, each with its start, and the list of all eight; of six there is no more."""
    first = start(create(project, PASS, "Orders"), name="order")
    drain(first)
    copies(first, 5)
    every = "Executions with a name containing “order”"
    assert every not in matches(client, "order")["Executions"]
    copies(first, 2)
    assert len(matches(client, "order")["Executions"]) == 7
    assert matches(client, "order")["Executions"][-1] == every
    response = client.get("/palette/?q=order")
    assert clock_text(first.start_ms) in text(response)
    group = next(group for group in response.context["groups"] if group.title == "Executions")
    assert len(client.get(group.matches[-1].address).context["executions"].rows) == 8


def test_states_inside_maps_and_branches_are_found(project: Project, client: Client) -> None:
    """The match leads to the state in the definition."""
    inner = {"StartAt": "Deep “one”", "States": {"Deep “one”": {"Type": "Pass", "End": True}}}
    outer = {"Type": "Parallel", "Branches": [inner], "End": True}
    create(project, {"StartAt": "Both", "States": {"Both": outer}}, "Nested")
    shown = text(client.get("/palette/?q=deep"))
    assert "Deep “one”" in shown
    assert "/machines/Nested/definition/?state=Deep" in shown


@pytest.mark.postgres_too
@pytest.mark.slow
def test_rules_schedules_alarms_and_activities_are_found(
    project: Project, signed_in: Callable[[str], Client], django_assert_max_num_queries: Any
) -> None:
    """By name and by ARN, in the project and region of the reader, in one query a kind."""
    machine = create(project, PASS, "Plain")
    editor, viewer = signed_in("editor"), signed_in("viewer")
    notify = {"name": "night-failed", "target": "a@example.com", "status": ["FAILED"]}
    editor.post("/notifications/", notify)
    asked = {"machine": machine.arn, "name": "nightly", "schedule": "rate(1 day)"}
    editor.post("/schedules/", asked)
    asked |= {"name": "one-night", "schedule": "at(2090-12-24T18:00:00)"}
    editor.post("/schedules/", asked)
    by = Actor("ada")
    fields = {"kind": AlarmKind.STUCK, "machine": machine, "period_s": 3600}
    alarm = alarms.put_alarm(project, REGION, "Night watch", fields, actor=by)
    activity = create_activity(project, REGION, "night-work")
    with django_assert_max_num_queries(19):
        shown = text(viewer.get("/palette/?q=night"))
    expected = {
        "Rules": ["night-failed"],
        "Schedules": ["nightly", "one-night"],
        "Alarms": ["Night watch"],
        "Activities": ["night-work"],
    }
    assert matches(viewer, "night") == expected
    for address in (
        *("/rules/night-failed/", "/rules/nightly/", "/schedules/default/one-night/"),
        *(f"/alarms/{alarm.pk}/", "/activities/night-work/"),
    ):
        assert f'href="{address}"' in shown
        assert viewer.get(address).status_code == 200
    assert matches(viewer, alarm.arn) == {"Alarms": ["Night watch"]}
    assert matches(viewer, activity.arn) == {"Activities": ["night-work"]}
    for row in EventRule.objects.all():
        assert [row.schedule_name or row.name] in matches(viewer, row.arn).values()
        assert viewer.get(f"/arn/{row.arn}", follow=True).status_code == 200
    EventRule.objects.update(region="us-west-2")
    assert matches(viewer, "night").keys() == {"Alarms", "Activities"}
    Alarm.objects.update(project=Project.objects.create(name="other", account_id="210987654321"))
    assert matches(viewer, "night").keys() == {"Activities"}
    assert matches(viewer, alarm.arn) == {}


def test_a_pasted_arn_or_id_finds_an_execution_however_old(
    project: Project, client: Client
) -> None:
    """The whole name is looked for in an index, not among the newest ones only."""
    machine = create(project, PASS, "Busy")
    old = start(machine, name="5d2c7a10-old")
    drain(old)
    copies(old, 60, name="newer")
    assert matches(client, "5d2c7a10-old")["Executions"] == ["5d2c7a10-old"]
    assert matches(client, old.arn) == {"Executions": ["5d2c7a10-old"]}
    assert client.get(f"/arn/{old.arn}", follow=True).status_code == 200
    assert matches(client, machine.arn) == {"State machines": ["Busy"]}


@pytest.mark.postgres_too
def test_nobody_finds_what_is_not_theirs(
    project: Project, signed_in: Callable[[str], Client]
) -> None:
    """A viewer is offered no action without the right; another project stays unseen."""
    other = Project.objects.create(name="other", account_id="210987654321")
    hidden = start(create(other, PASS, "Hidden"), name="hidden-run")
    create(project, PASS, "Mine")
    viewer = signed_in("viewer")
    assert matches(viewer, "hidden") == {}
    assert matches(viewer, hidden.arn) == {}
    assert matches(viewer, "Mine").keys() == {"State machines"}
    offered = matches(viewer, "")["Actions"]
    assert "Create state machine" not in offered
    assert "Import an execution" not in offered
    assert "Start Mine" in matches(signed_in("operator"), "Mine")["Actions"]


@pytest.mark.postgres_too
def test_the_palette_reads_without_a_script(project: Project, client: Client) -> None:
    """The link of the top bar leads to a page with the same field; htmx gets the list alone."""
    create(project, PASS, "Plain")
    assert 'href="/palette/"' in text(client.get("/"))
    shown = text(client.get("/palette/?q=plain"))
    assert "<form" in shown
    assert 'href="/machines/Plain/"' in shown
    part = text(client.get("/palette/?q=plain", headers={"HX-Request": "true"}))
    assert "<html" not in part
    assert 'href="/machines/Plain/"' in part
    assert "No matches." in text(client.get("/palette/?q=zzz"))
    assert b"<b>" not in client.get("/palette/?q=zzz+<b>").content
    assert Execution.objects.count() == 0
    assert client.get("/palette/?q=" + "x" * 3000).status_code == 200
