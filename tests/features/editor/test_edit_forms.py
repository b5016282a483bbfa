"""Alarms of CloudWatch's API and schedules of EventBridge Scheduler are changed on their pages."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

import pytest

from console.features.alarms.models import Alarm
from console.features.notifications.store import scheduler
from console.models import EventRule
from console.web.core.formatting import DAY
from tests.console.store.helpers import PASS, REGION, ROLE, create
from tests.console.web.helpers import markup, text
from tests.features.alarms.test_alarm_page import on_metric

_NEXT_TIME = re.compile(r"\w{3} \d\d \w{3} \d{4} [\d:]{8} UTC")

if TYPE_CHECKING:
    from collections.abc import Callable

    from django.test import Client

    from console.models import Project

    SignIn = Callable[[str], Client]


def over_of(shown: str) -> dict[str, str]:
    """Return what *Save mine over theirs* sends beside the form."""
    match = re.search(r'name="over" value="([^"]+)"', shown)
    assert match is not None
    return {"over": match[1]}


def test_an_alarm_on_a_metric_is_changed_on_its_page(project: Project, client: Client) -> None:
    """When it is one and what it looks at; what was typed wrong is shown again."""
    alarm = on_metric(create(project, PASS), periods=3, datapoints=2)
    page = f"/alarms/{alarm.pk}/"
    for listed in (page, "/machines/machine/alarms/"):
        assert f'href="{page}?edit=1#edit"' in text(client.get(listed)), listed
    assert 'name="datapoints" value="2"' in markup(client.get(page, {"edit": "1"}))
    sent = {
        "comparison": "GreaterThanThreshold",
        "threshold": "4.5",
        "datapoints": "3",
        "periods": "5",
        "missing": "breaching",
        "description": "Call Ana",
        "revision": str(alarm.updated_ms),
    }
    for field, wrong, why in (
        ("threshold", "many", "must be a number, not “many”"),
        ("datapoints", "6", "DatapointsToAlarm must be 1 to 5, not 6"),
        ("periods", "1441", "EvaluationPeriods must be 1 to 1440 for 60 s, not 1441"),
        ("periods", "-1", "EvaluationPeriods must be a whole number, not “-1”"),
        ("period", "90", "The parameter Period must be a multiple of 60, not 90"),
        ("statistic", "p101", "The value p101 for parameter ExtendedStatistic is not supported"),
        ("metric", "ActivityTime", "MetricName: ActivityTime is not a metric"),
        ("comparison", "x", "ComparisonOperator: x needs metric math"),
        ("missing", "x", "TreatMissingData must be breaching"),
    ):
        shown = markup(client.post(page, sent | {field: wrong}), 422)
        assert why in shown
        assert 'name="description" value="Call Ana"' in shown
    shown = text(client.post(page, sent, follow=True))
    assert "was changed. Its state is In alarm." in shown
    alarm.refresh_from_db()
    assert (alarm.comparison, alarm.threshold, alarm.missing) == (
        *("GreaterThanThreshold", 4.5, "breaching"),
    )
    assert (alarm.datapoints, alarm.periods, alarm.description) == (3, 5, "Call Ana")
    assert (alarm.metric, alarm.statistic, alarm.period_s) == ("ExecutionsFailed", "Sum", 60)
    mine = sent | {"threshold": "9", "description": "Mine"}
    shown = markup(client.post(page, mine), 409)
    assert "Not saved: you saved this alarm after you opened it" in shown
    assert "Sum of ExecutionsFailed is above 4.5" in shown
    assert 'value="Mine"' in shown
    alarm.refresh_from_db()
    assert alarm.threshold == 4.5
    assert "was changed" in text(client.post(page, mine | over_of(shown), follow=True))
    alarm.refresh_from_db()
    assert (alarm.threshold, alarm.description) == (9, "Mine")


def test_metric_statistic_and_period_of_an_alarm_are_edited(
    project: Project, client: Client
) -> None:
    """The metrics of its dimensions are offered, and the preview is drawn before it is stored."""
    alarm = on_metric(create(project, PASS), unit="Count", enabled=False)
    page = f"/alarms/{alarm.pk}/"
    shown = markup(client.get(page, {"edit": "1"}))
    assert '<option value="ExecutionTime"' in shown
    assert 'value="ActivityTime"' not in shown
    sent = {
        "metric": "ExecutionTime",
        "statistic": "p95",
        "period": "900",
        "comparison": "LessThanThreshold",
        "threshold": "5000",
        "datapoints": "1",
        "periods": "1",
        "missing": "missing",
    }
    preview = text(client.get(page, {"preview": "1", **sent}))
    assert "p95 of ExecutionTime" in preview
    assert "<html" not in preview
    wrong = text(client.get(page, {"preview": "1", **sent, "periods": "0"}))
    assert "No preview: EvaluationPeriods must be 1 to 96 for 900 s, not 0" in wrong
    alarm.refresh_from_db()
    assert alarm.metric == "ExecutionsFailed"
    client.post(page, {**sent, "revision": str(alarm.updated_ms)})
    alarm.refresh_from_db()
    assert (alarm.metric, alarm.statistic, alarm.period_s, alarm.unit) == (
        *("ExecutionTime", "p95", 900, ""),
    )
    assert not alarm.enabled


def test_an_alarm_on_a_metric_is_created_by_a_form(project: Project, client: Client) -> None:
    """It is what PutMetricAlarm stores, and evaluated at once; refused, the form keeps its text."""
    machine = create(project, PASS)
    page = "/machines/machine/alarms/"
    sent = {
        "act": "metric",
        "name": "too many",
        "metric": "ExecutionsFailed",
        "statistic": "Sum",
        "period": "60",
        "comparison": "GreaterThanOrEqualToThreshold",
        "threshold": "3",
        "datapoints": "1",
        "periods": "5",
        "missing": "notBreaching",
        "description": "Call",
    }
    refused = markup(client.post(page, sent | {"datapoints": "9"}), 422)
    assert "DatapointsToAlarm must be 1 to 5, not 9" in refused
    assert 'value="too many"' in refused
    assert not Alarm.objects.exists()
    assert "Sum of ExecutionsFailed" in text(client.get(page, {"preview": "1", **sent}))
    done = text(client.post(page, sent, follow=True))
    assert "The alarm too many was created. Its state is OK." in done
    alarm = Alarm.objects.get()
    assert (alarm.kind, alarm.machine, alarm.resource) == ("metric", machine, machine.arn)
    assert json.loads(alarm.dimensions) == [{"Name": "StateMachineArn", "Value": machine.arn}]
    assert (alarm.periods, alarm.datapoints, alarm.threshold) == (5, 1, 3.0)
    assert "exists already" in text(client.post(page, sent), 422)


@pytest.mark.postgres_too
def test_a_schedule_is_changed_on_its_page(project: Project, signed_in: SignIn) -> None:
    """What the form has; the target, its retries and the dates stay. A lost race is told."""
    machine = create(project, PASS)
    key = scheduler.ScheduleKey(project, REGION, "default", "nightly")
    retries = {"MaximumRetryAttempts": 2}
    target = {"Arn": machine.arn, "RoleArn": ROLE, "RetryPolicy": retries, "Input": '{"a": 1}'}
    end_ms = 4_000_000_000_000
    settings = scheduler.ScheduleSettings("rate(1 day)", target, end_ms=end_ms)
    schedule = scheduler.create_schedule(key, settings)
    page = "/schedules/default/nightly/"
    editor = signed_in("editor")
    assert f'href="{page}?edit=1#edit"' in text(editor.get(page))
    assert "Edit schedule" in text(editor.get(page, {"edit": "1"}))
    assert "Edit schedule" not in text(signed_in("viewer").get(page, {"edit": "1"}))
    sent = {
        "schedule": "cron(0 6 * * ? *)",
        "timezone": "Europe/Rome",
        "window": "15",
        "after_completion": "DELETE",
        "input": '{"a": 2}',
        "description": "At six",
        "revision": str(schedule.updated_ms),
    }
    for field, wrong, why in (
        ("schedule", "rate(1 moon)", "Invalid Schedule Expression"),
        ("window", "2000", "must be 1 to 1,440 minutes"),
        ("input", "{", "JSON"),
    ):
        shown = markup(editor.post(page, sent | {field: wrong}), 422)
        assert why in shown, field
        assert 'name="description" value="At six"' in shown
    assert "The schedule nightly was changed." in text(editor.post(page, sent, follow=True))
    row = EventRule.objects.get()
    assert (row.schedule, row.timezone, row.window_minutes) == (
        *("cron(0 6 * * ? *)", "Europe/Rome", 15),
    )
    assert (row.after_completion, row.description, row.end_ms) == ("DELETE", "At six", end_ms)
    event_target = row.targets.get()
    assert event_target.address == machine.arn
    assert json.loads(event_target.settings) == {
        "RetryPolicy": retries,
        "RoleArn": ROLE,
        "Input": '{"a": 2}',
    }
    mine = sent | {"schedule": "cron(0 7 * * ? *)"}
    shown = markup(editor.post(page, mine), 409)
    assert "Not saved: you saved this schedule after you opened it" in shown
    assert "cron(0 6 * * ? *), Europe/Rome" in shown
    assert 'value="cron(0 7 * * ? *)"' in shown
    assert EventRule.objects.get().schedule == "cron(0 6 * * ? *)"
    assert "was changed" in text(editor.post(page, mine | over_of(shown), follow=True))
    assert EventRule.objects.get().schedule == "cron(0 7 * * ? *)"


@pytest.mark.postgres_too
def test_the_form_of_a_schedule_counts_a_rate_from_where_it_counts(
    project: Project, client: Client
) -> None:
    """The next times of the form are those of the page, not those of a new schedule."""
    machine = create(project, PASS)
    key = scheduler.ScheduleKey(project, REGION, "default", "nightly")
    target = {"Arn": machine.arn, "RoleArn": ROLE}
    schedule = scheduler.create_schedule(key, scheduler.ScheduleSettings("rate(7 days)", target))
    EventRule.objects.filter(pk=schedule.pk).update(created_ms=schedule.created_ms - 3 * DAY)
    shown = markup(client.get("/schedules/default/nightly/", {"edit": "1"}))
    fields = dict(re.findall(r'name="(began|end)" value="(\d*)"', shown))
    asked = {"schedule": "rate(7 days)", "timezone": "UTC", **fields}
    local = _NEXT_TIME.search(markup(client.get("/schedules/times/", asked)))
    assert local is not None
    assert local[0] in shown
