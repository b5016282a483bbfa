"""Rules that wait for changes of alarms are made and edited by choices, and named beside alarms."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from console.db.audit import Actor
from console.features.alarms import store as alarms
from console.features.alarms.models import Alarm
from console.features.notifications.patterns import parse_pattern
from console.models import EventRule, OutboxEvent
from console.statuses import AlarmKind, AlarmState
from tests.console.store.helpers import PASS, create
from tests.console.web.helpers import markup
from tests.features.notifications.test_rules import ASKED, NOTIFICATIONS, REGION

if TYPE_CHECKING:
    from django.test import Client

    from console.models import Project, StateMachine


def test_a_rule_for_alarms_is_created_and_edited_by_its_choices(
    project: Project, client: Client
) -> None:
    """Its pattern matches what the server tells of an alarm of that machine, and of no other."""
    machine, other = create(project, PASS), create(project, PASS, "other")
    shown = markup(client.get(NOTIFICATIONS, {"create": "1", "about": "alarms"}))
    assert 'value="alarms" checked>' in shown
    chosen = {"about": "alarms", "alarm_state": ["ALARM"], "machine": machine.arn}
    client.post(NOTIFICATIONS, ASKED | chosen)
    event_rule = EventRule.objects.get()
    assert told_alarm(event_rule, machine) == ["ALARM"]
    assert told_alarm(event_rule, other) == []
    assert "Alarm state change: In alarm" in markup(client.get(NOTIFICATIONS))
    shown = markup(client.get("/rules/ends/", {"edit": "1"}))
    assert 'name="pattern"' not in shown
    assert 'name="alarm_state" value="ALARM" checked>' in shown
    assert 'name="alarm_state" value="OK">' in shown
    changed = {"choices": "1", "about": "alarms", "alarm_state": ["ALARM", "OK"], "machine": ""}
    client.post("/rules/ends/", changed)
    event_rule.refresh_from_db()
    assert told_alarm(event_rule, other) == ["ALARM", "OK"]
    assert "/rules/ends/" in markup(client.get(f"/machines/{other.name}/alarms/"))


def told_alarm(rule: EventRule, machine: StateMachine) -> list[str]:
    """Return the states of which a rule is told when an alarm of a machine changes to each."""
    fields = {"kind": AlarmKind.STUCK, "machine": machine, "period_s": 3600}
    name = f"stuck-{OutboxEvent.objects.count()}-{machine.name}"
    alarm = alarms.put_alarm(rule.project, REGION, name, fields, actor=Actor("ada"))
    OutboxEvent.objects.all().delete()
    for state in (AlarmState.ALARM, AlarmState.OK):
        alarms.change_state(alarm, state, "because")
        alarm.refresh_from_db()
    pattern = parse_pattern(rule.pattern)
    bodies = [event.body for event in OutboxEvent.objects.order_by("pk")]
    return [
        json.loads(each)["detail"]["state"]["value"] for each in bodies if pattern.matches(each)
    ]


@pytest.mark.postgres_too
def test_the_banner_of_alarms_is_one_line(project: Project, client: Client) -> None:
    """The newest, in words; a metric's reason with its datapoints is on the alarm's own page."""
    machine = create(project, PASS)
    shown = {}
    for number, kind in enumerate((AlarmKind.STUCK, AlarmKind.METRIC), 1):
        fields = {"kind": kind, "machine": machine, "period_s": 3600}
        if kind == AlarmKind.METRIC:
            fields |= {"metric": "ExecutionsFailed", "statistic": "Sum", "threshold": 3}
        name = f"alarm-{number}"
        alarm = alarms.put_alarm(project, REGION, name, fields, actor=Actor("ada"))
        Alarm.objects.filter(pk=alarm.pk).update(
            state=AlarmState.ALARM, state_ms=number * 1000, reason=f"reason [{number}]"
        )
        page = markup(client.get(f"/machines/{machine.name}/calls/"))
        shown[name] = page.partition('class="banner failed alarm-line"')[2].partition("</div>")[0]
    assert "reason [1]" in shown["alarm-1"]
    assert "more" not in shown["alarm-1"]
    assert "Sum of ExecutionsFailed crossed its threshold of 3" in shown["alarm-2"]
    assert "alarm-1" not in shown["alarm-2"]
    assert "and 1 more" in shown["alarm-2"]
