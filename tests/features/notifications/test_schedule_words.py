"""Schedules in words, with their last run, and as the triggers of a machine."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest

from console.features.notifications.store import rules
from console.features.notifications.web import matches
from console.features.notifications.web.schedule_words import schedule_words
from console.models import Delivery, Execution, OutboxEvent
from console.statuses import DeliveryStatus
from tests.console.store.helpers import PASS, REGION, ROLE, create, start
from tests.console.web.helpers import text
from tests.features.notifications.test_rules import rule

if TYPE_CHECKING:
    from django.test import Client

    from console.models import EventRule, Project

WORDS = {
    "rate(1 day)": "Every day",
    "rate(5 minutes)": "Every 5 minutes",
    "at(2030-12-24T18:00:00)": "Once, on 2030-12-24 at 18:00:00 UTC",
    "cron(0 6 * * ? *)": "Every day at 06:00 UTC",
    "cron(30 8 ? * MON-FRI *)": "On weekdays at 08:30 UTC",
    "cron(0/15 * * * ? *)": "Every 15 minutes",
    "cron(0/15 9-17 ? * MON-FRI *)": "Every 15 minutes from 09:00 to 17:45 UTC on weekdays",
    "cron(5 * * * ? *)": "Every hour at :05",
    "cron(0 0/4 * * ? *)": "Every 4 hours from 00:00 UTC",
    "cron(0 0 1 * ? *)": "On day 1 of the month at 00:00 UTC",
    "cron(0 0 L * ? *)": "On the last day of the month at 00:00 UTC",
    "cron(0 9 ? * 2#1 *)": "On the first Monday of the month at 09:00 UTC",
    "cron(0 9 ? * 6L *)": "On the last Friday of the month at 09:00 UTC",
    "cron(0 9 ? * SUN,WED *)": "Every Wednesday and Sunday at 09:00 UTC",
    "cron(0 6 * 12 ? 2027)": "Every day in December in 2027 at 06:00 UTC",
    "cron(0/7 * * * ? *)": "",  # not even: 56 is followed by 0
    "cron(1,7,9 3,8,13 * * ? *)": "",
    "cron(0 6 * * * *)": "",
    "hourly": "",
}


@pytest.mark.parametrize(("expression", "words"), WORDS.items())
def test_an_expression_in_words(expression: str, words: str) -> None:
    """What a short sentence cannot say has none."""
    assert schedule_words(expression, "UTC") == words


def sent(schedule: EventRule, status: str, error: str = "") -> Delivery:
    """Store an event of a schedule on its way to its target."""
    event = OutboxEvent.objects.create(
        project=schedule.project,
        event_id=f"event-{OutboxEvent.objects.count()}",
        body="{}",
        at_ms=1,
    )
    return Delivery.objects.create(
        event=event,
        target=schedule.targets.get(),
        project=schedule.project,
        status=status,
        next_ms=1,
        created_ms=1_700_000_000_000,
        ended_ms=2,
        last_error=error,
    )


def starting(project: Project, name: str, arn: str) -> EventRule:
    """Make a schedule that starts a machine."""
    schedule = rule(project, name, schedule="cron(0 6 * * ? *)")
    rules.remove_targets(project, REGION, name, [each.target_id for each in schedule.targets.all()])
    rules.put_targets(project, REGION, name, [{"Id": "1", "Arn": arn, "RoleArn": ROLE}])
    return schedule


def test_a_schedule_shows_its_last_run_and_its_outcome(project: Project, client: Client) -> None:
    """With a link to the execution that it started; else why it was not delivered; or none."""
    machine = create(project, PASS)
    ran = starting(project, "ran", machine.arn)
    sent(ran, DeliveryStatus.DEAD, "an older one")
    delivery = sent(ran, DeliveryStatus.DELIVERED)
    name = matches.started_arn(delivery).rpartition(":")[2]
    execution = start(machine, name=name)
    Execution.objects.filter(pk=execution.pk).update(status="FAILED")
    sent(starting(project, "refused", machine.arn), DeliveryStatus.DEAD, "no such machine")
    starting(project, "new", machine.arn)
    for address in ("/schedules/", "/machines/machine/triggers/"):
        shown = text(client.get(address))
        rows = {
            row[0]: row[1]
            for row in re.findall(r'href="/rules/(\w+)/">(.*?)</tr>', shown, re.DOTALL)
        }
        assert execution.arn in rows["ran"], address
        assert "Failed" in rows["ran"]
        assert "an older one" not in rows["ran"]
        assert "no such machine" in rows["refused"]
        assert "none in 7 days" in rows["new"]
        assert "Every day at 06:00 UTC" in rows["new"]
    assert "Every day at 06:00 UTC" in text(client.get("/rules/new/"))


def test_a_trigger_begins_with_its_machine(project: Project, client: Client) -> None:
    """The forms for a schedule and for a rule, as target or by its events, have it filled in."""
    machine = create(project, PASS)
    shown = text(client.get("/machines/machine/triggers/")).replace("&amp;", "&")
    links = re.findall(r'href="(/(?:schedules|notifications)/\?[^"#]+)', shown)
    to_schedule, to_rule, by_events = links
    assert f'value="{machine.arn}" selected' in text(client.get(to_schedule))
    assert f'name="target" value="{machine.arn}"' in text(client.get(to_rule))
    of_events = text(client.get(by_events))
    assert f'value="{machine.arn}" selected' in of_events
    assert f'name="target" value="{machine.arn}"' not in of_events
