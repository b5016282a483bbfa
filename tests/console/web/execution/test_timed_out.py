"""The page of an execution that timed out says by which limit, and what became of its children."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from django.urls import reverse

from console.db import clock
from console.db.audit import Actor
from console.models import Execution, HistoryEvent, MapRun
from console.store.executions.stop import stop_execution
from console.store.machines import tags
from console.store.tasks import activities
from console.web.history import timed_out
from tests.console.store.helpers import REGION, WAIT, create, drain, start
from tests.console.transition_rates import Clock
from tests.console.web.helpers import page, text

if TYPE_CHECKING:
    from django.test import Client

    from console.models import Project

PICTURE = Path(__file__).parents[4] / "docs/images/activity-timeouts.svg"


@pytest.fixture
def now(monkeypatch: pytest.MonkeyPatch) -> Clock:
    """A clock for everything that asks for the time."""
    fake_clock = Clock()
    monkeypatch.setattr(clock, "now_ms", lambda: fake_clock.now_ms)
    return fake_clock


def ended(project: Project, **more: Any) -> Execution:
    """Return an execution that timed out, with a definition and columns as given."""
    columns = {key: more.pop(key) for key in ("redrive_ms", "arn") if key in more}
    execution = drain(start(create(project, {**WAIT, **more})))
    changes = {"status": "TIMED_OUT", "stop_ms": execution.start_ms + 1, **columns}
    Execution.objects.filter(pk=execution.pk).update(**changes)
    return Execution.objects.select_related("definition", "project").get(pk=execution.pk)


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ({"TimeoutSeconds": 90}, "TimeoutSeconds of the state machine: 1 min 30 s since its start"),
        ({"TimeoutSeconds": 90, "redrive_ms": 5}, "since its last redrive"),
        ({}, "Standard executions run for up to one year"),
        ({"TimeoutSeconds": 99_999_999}, "run for up to one year"),
    ],
)
def test_the_limit_is_named(
    project: Project, client: Client, more: dict[str, Any], said: str
) -> None:
    """That of the definition, or AWS's own."""
    execution = ended(project, **more)
    explained = timed_out.explain_timeout(execution)
    assert explained is not None
    assert said in explained.limit
    assert explained.children == ""
    assert said in text(client.get(page(execution)))


@pytest.mark.postgres_too
def test_an_express_execution_has_a_limit_of_its_own(project: Project) -> None:
    """Five minutes."""
    execution = ended(project)
    execution.arn = execution.arn.replace(":execution:", ":express:")
    explained = timed_out.explain_timeout(execution)
    assert explained is not None
    assert "5 minutes" in explained.limit


@pytest.mark.parametrize(
    ("policy", "said"),
    [
        ("", "requestCancel: children of waiting Tasks are stopped"),
        ("abandon", "abandon: no child is stopped"),
    ],
)
def test_children_are_counted(project: Project, client: Client, policy: str, said: str) -> None:
    """By what they are now, with the policy that decided it."""
    execution = ended(project, TimeoutSeconds=2)
    for status in ("ABORTED", "ABORTED", "RUNNING", "SUCCEEDED"):
        child = start(create(project, WAIT, "child"))
        Execution.objects.filter(pk=child.pk).update(status=status, parent=execution.pk)
    MapRun.objects.create(
        parent=execution,
        definition=execution.definition,
        task=5,
        arn="a",
        state_machine_arn="m",
        total=9,
        started=4,
        succeeded=1,
        aborted=2,
        start_ms=1,
    )
    if policy:
        tags.put_tags(execution.state_machine_arn, {"stateyard:childPolicy": policy})
    shown = " ".join(text(client.get(page(execution))).split())
    nested = "1 running, 1 succeeded, 2 aborted (started by Tasks)"
    assert f"Child executions: {nested}; 1 running, 1 succeeded, 2 aborted (of Map Runs)." in shown
    assert said in shown


@pytest.mark.parametrize(
    ("more", "redriven", "limit"),
    [
        (
            {"TimeoutSeconds": 90},
            False,
            "TimeoutSeconds of the state machine: 1 min 30 s since its",
        ),
        ({}, False, "Standard executions run for up to one year since its start"),
        ({}, True, "for up to one year since its last redrive"),
    ],
)
@pytest.mark.postgres_too
def test_the_event_names_the_limit_and_the_policy(
    project: Project, client: Client, more: dict[str, Any], limit: str, *, redriven: bool
) -> None:
    """On its page and in the table; an earlier end counts from the start, not from a redrive."""
    execution = ended(project, **more)
    tags.put_tags(execution.state_machine_arn, {"stateyard:childPolicy": "terminate"})
    events = HistoryEvent.objects.filter(execution=execution)
    first = events.order_by("-event_id").values_list("event_id", flat=True)[0] + 1
    kinds = ["ExecutionRedriven"] * redriven + ["ExecutionTimedOut"]
    HistoryEvent.objects.bulk_create(
        HistoryEvent(execution=execution, event_id=number, previous=0, at_ms=1, type=kind)
        for number, kind in enumerate(kinds, first)
    )
    number = first + len(kinds) - 1
    for address in (f"events/{number}/", f"events/?open={number}"):
        shown = " ".join(text(client.get(page(execution, address))).split())
        assert limit in shown
        assert "stateyard:childPolicy" in shown
        assert "terminate: all children are stopped" in shown


def test_others_have_no_such_line(project: Project, client: Client) -> None:
    """An execution that runs."""
    execution = drain(start(create(project, WAIT)))
    assert 'id="timed-out"' not in text(client.get(page(execution)))


def test_the_timeouts_of_an_activity_stand_before_their_form(
    project: Project, client: Client
) -> None:
    """In words, as defaults; the form opens by a press, and by itself where a time is wrong."""
    activity = activities.create_activity(project, REGION, "review")
    address = "/activities/review/"
    shown = " ".join(text(client.get(address)).split())
    assert "Default timeouts" in shown
    assert "The activity sets none." in shown
    assert "no limit</dd>" not in shown
    tags.put_tags(activity.arn, {"stateyard:heartbeatTimeout": "30"})
    shown = " ".join(text(client.get(address)).split())
    assert "<dt>Heartbeat (between heartbeats)</dt><dd>30 s</dd>" in shown
    assert "<dt>Schedule to close (total)</dt><dd>no limit</dd>" in shown
    assert '<details class="field" id="timeouts">' in shown
    wrong = client.post(address, {"act": "timeouts", "stateyard:heartbeatTimeout": "soon"})
    shown = " ".join(text(wrong, 422).split())
    assert '<details class="field" id="timeouts" open>' in shown
    assert "<dd>30 s</dd>" in shown
    assert 'value="soon"' in shown


def test_the_page_of_an_activity_draws_its_timeouts(project: Project, client: Client) -> None:
    """The picture of the documentation has the same names."""
    activities.create_activity(project, REGION, "approve")
    shown = text(client.get("/activities/approve/"))
    picture = PICTURE.read_text(encoding="utf-8")
    for name in ("schedule to start", "start to close", "schedule to close", "heartbeat<"):
        assert f">{name}" in shown
        assert f">{name}" in picture


def test_the_state_in_which_the_time_ran_out_says_so(
    project: Project, client: Client, now: Clock
) -> None:
    """In the graph, in the panel with the limit, and in the banner, which leads to it."""
    nap = {"Type": "Wait", "Seconds": 600, "End": True}
    branches = [
        {"StartAt": "Ready", "States": {"Ready": {"Type": "Pass", "End": True}}},
        {"StartAt": "Nap", "States": {"Nap": nap}},
    ]
    both = {"Type": "Parallel", "Branches": branches, "End": True}
    definition = {"StartAt": "Both", "TimeoutSeconds": 4, "States": {"Both": both}}
    execution = drain(start(create(project, definition)))
    now.later(5)
    execution = drain(execution)
    assert execution.status == "TIMED_OUT"
    answer: Any = client.get(page(execution))
    summaries = {
        each.node.name: each for each in answer.context["graph"].painting.summaries.values()
    }
    words = {name: each.status.word for name, each in summaries.items()}
    assert words == {"Both": "Timed out", "Nap": "Timed out", "Ready": "Succeeded"}
    assert answer.context["panel"].shown.node.name == "Nap"
    assert answer.context["panel"].shown.status.word == "Timed out"
    shown = " ".join(text(answer).split())
    assert "at <bdi>Nap</bdi></span>" in shown
    assert 'View step<span class="wide-only"> details</span>' in shown
    assert "In progress when the execution timed out. TimeoutSeconds" in shown
    assert f"{reverse('executions')}?machine=machine&status=TIMED_OUT" in shown


def test_what_was_stopped_says_by_what(project: Project, client: Client) -> None:
    """By a stop of the execution, with the way to the state; a failure beside it is another."""
    execution = drain(start(create(project, WAIT)))
    stop_execution(execution, error="Operator", cause="The warehouse burns")
    execution = drain(execution)
    shown = " ".join(text(client.get(page(execution))).split())
    assert "In progress when the execution was stopped." in shown
    assert 'View step<span class="wide-only"> details</span>' in shown
    fail = {"Bad": {"Type": "Fail", "Error": "E"}}
    branches = [{"StartAt": "W", "States": WAIT["States"]}, {"StartAt": "Bad", "States": fail}]
    both = {"Type": "Parallel", "Branches": branches, "End": True}
    machine = create(project, {"StartAt": "Both", "States": {"Both": both}}, "both")
    failed = drain(start(machine))
    assert "Stopped because a parallel state failed" in text(client.get(page(failed, "?step=W")))


def test_states_that_were_open_besides_are_counted(
    project: Project, client: Client, now: Clock
) -> None:
    """Of three branches that were in progress, one is named."""
    nap = {"Type": "Wait", "Seconds": 600, "End": True}
    branches = [{"StartAt": name, "States": {name: nap}} for name in ("A", "B", "C")]
    both = {"Type": "Parallel", "Branches": branches, "End": True}
    definition = {"StartAt": "Both", "TimeoutSeconds": 4, "States": {"Both": both}}
    execution = drain(start(create(project, definition)))
    now.later(5)
    shown = " ".join(text(client.get(page(drain(execution)))).split())
    assert "at <bdi>C</bdi> and 2 more states" in shown


def test_the_banner_says_who_stopped_it(project: Project, client: Client) -> None:
    """Also where no reason was given, on the page and in the tick that tells of the end."""
    execution = drain(start(create(project, WAIT)))
    stop_execution(execution, actor=Actor("ada"))
    execution = drain(execution)
    for address in (page(execution), page(execution, "_delta?after=1")):
        banner = text(client.get(address)).partition('id="outcome"')[2].partition("</section>")[0]
        words = " ".join(re.sub("<[^>]*>", "", banner).split())
        assert "Aborted at W Stopped by ada" in words
