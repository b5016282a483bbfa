"""Permitted users create schedules on the pages, and see those of EventBridge Scheduler there."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

import pytest

from console.features.notifications.store import deliveries, rules, scheduler
from console.features.notifications.web import rule_display
from console.models import AuditEntry, Delivery, EventRule, EventTarget, StateMachine
from tests.console.store.helpers import PASS, ROLE, create
from tests.console.web.helpers import MARKUP, text
from tests.features.notifications.test_rules import NOTIFICATIONS, REGION, SCHEDULES, rule

if TYPE_CHECKING:
    from collections.abc import Callable

    from django.test import Client

    from console.models import Project

    SignIn = Callable[[str], Client]


def test_a_schedule_is_made(project: Project, client: Client) -> None:
    """With its zone and input; the list says when it is due next."""
    machine = create(project, PASS)
    asked = {
        "name": "nightly",
        "schedule": "cron(0 3 * * ? *)",
        "timezone": "Europe/Rome",
        "machine": machine.arn,
        "input": '{"night": true}',
    }
    assert client.post(SCHEDULES, asked).status_code == 302
    event_rule = EventRule.objects.get()
    assert event_rule.next_ms is not None
    assert json.loads(EventTarget.objects.get().settings) == {"Input": '{"night": true}'}
    shown = text(client.get(SCHEDULES))
    assert "cron(0 3 * * ? *)" in shown
    assert "Europe/Rome" in shown
    assert 'datetime="20' in shown
    assert "nightly" not in text(client.get(NOTIFICATIONS))
    assert shown.count("<time") < text(client.get("/rules/nightly/")).count("<time")


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"schedule": "rate(1 minutes)"}, "the singular"),
        ({"timezone": "Mars/Base"}, "'Mars/Base' is not a time zone"),
        ({"machine": ""}, "Enter the ARN of"),
    ],
)
def test_a_wrong_schedule_comes_back_as_typed(
    project: Project, client: Client, change: dict[str, str], words: str
) -> None:
    """With what is wrong."""
    asked = {"name": "x", "schedule": "rate(1 minute)", "machine": create(project, PASS).arn}
    shown = text(client.post(SCHEDULES, asked | change), 422)
    assert words in shown
    assert f'value="{(asked | change)["schedule"]}"' in shown
    assert EventRule.objects.count() == 0


# -- EventBridge Scheduler -------------------------------------------------------------------------


def schedule(project: Project, name: str = "nightly", group: str = "default") -> EventRule:
    """Make a schedule by the API of EventBridge Scheduler that starts a machine."""
    arn = f"arn:aws:states:{REGION}:123456789012:stateMachine:machine"
    if not StateMachine.objects.filter(arn=arn).exists():
        create(project, PASS)
    if group != "default":
        scheduler.create_group(project, REGION, group, {})
    target = {"Arn": arn, "RoleArn": ROLE, "Input": f'{{"x": "{MARKUP}"}}'}
    settings = scheduler.ScheduleSettings("at(2099-01-01T12:00:00)", target, timezone="Europe/Rome")
    return scheduler.create_schedule(scheduler.ScheduleKey(project, REGION, group, name), settings)


@pytest.mark.postgres_too
def test_schedules_of_the_scheduler_are_listed_after_rules(
    project: Project, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With their group, their next moment, and a page each; pages of the list go on there."""
    rule(project, "tick", schedule="rate(1 day)")
    schedule(project)
    schedule(project, "hourly", "team")
    page = text(client.get(SCHEDULES))
    assert page.count('href="/machines/machine/"') == 2  # what the schedules start
    shown = re.sub(r"<[^>]+>|\s+", " ", page)
    assert "3 schedules" in shown
    assert shown.index("tick") < shown.index("nightly") < shown.index("hourly")
    assert "Group team" in " ".join(shown.split())
    assert "2099-01-01 11:00" in shown
    monkeypatch.setattr(rule_display, "PAGE", 1)
    names, address = [], SCHEDULES
    for _ in range(3):
        page = text(client.get(address))
        names += re.findall(r'href="/(?:rules|schedules)/(?!pause/)([^"/]+(?:/[^"/]+)?)/"', page)
        following = re.search(r'href="(/schedules/\?after=[^"]+)"', page)
        address = following[1] if following else ""
    assert names == ["tick", "default/nightly", "team/hourly"]
    assert address == ""


def test_the_triggers_of_a_machine_are_its_rules_and_its_schedules(
    project: Project, client: Client
) -> None:
    """Of both kinds, also by a universal target or an alias; those of another machine are not."""
    event_rule = schedule(project)
    arn = f"arn:aws:states:{REGION}:123456789012:stateMachine:machine"
    rule(project, "tick", schedule="rate(1 day)")
    rules.put_targets(project, REGION, "tick", [{"Id": "2", "Arn": arn, "RoleArn": ROLE}])
    target = {"Arn": "arn:aws:scheduler:::aws-sdk:sfn:startExecution", "RoleArn": ROLE}
    create(project, PASS, "machine-2")
    for name, machine in (("universal", arn), ("other", f"{arn}-2")):
        universal = target | {"Input": json.dumps({"StateMachineArn": machine, "Input": arn})}
        settings = scheduler.ScheduleSettings("rate(1 day)", universal)
        scheduler.create_schedule(scheduler.ScheduleKey(project, REGION, "default", name), settings)
    page = "/machines/machine/triggers/"
    shown = text(client.get(page))
    assert 'href="/schedules/default/nightly/"' in shown
    assert 'href="/schedules/default/universal/"' in shown
    assert 'href="/rules/tick/"' in shown
    assert "/schedules/default/other/" not in shown
    assert "No rules" not in shown
    EventTarget.objects.filter(rule=event_rule).update(address=f"{arn}:live")
    assert 'href="/schedules/default/nightly/"' in text(client.get(page))
    shown = text(client.get("/machines/machine-2/triggers/"))
    assert re.findall(r'href="/(?:rules|schedules)/([^"?]+)"', shown) == ["default/other/"]


@pytest.mark.postgres_too
def test_a_schedule_of_the_scheduler_has_a_page(project: Project, client: Client) -> None:
    """What it starts, when, and with which input; editors switch and delete it there."""
    event_rule = schedule(project)
    page = "/schedules/default/nightly/"
    answer = client.get(page)
    assert MARKUP not in answer.content.decode()
    shown = text(answer)
    assert MARKUP in shown
    words = " ".join(re.sub(r"<[^>]+>", " ", shown).split())
    assert "2099-01-01 11:00" in words
    assert "Name machine" in words
    assert client.get(f"/arn/{event_rule.arn}")["Location"].startswith(page)
    assert client.post(f"{page}switch/", {"act": "disable"})["Location"] == page
    assert EventRule.objects.get().due_ms is None
    assert "Enable" in text(client.get(page))
    assert client.post(f"{page}switch/", {"act": "enable"}).status_code == 302
    assert EventRule.objects.get().due_ms is not None
    assert "No deliveries are pending" in text(client.get(f"{page}delete/"))
    assert client.post(f"{page}delete/")["Location"] == SCHEDULES
    assert not EventRule.objects.exists()
    acts = AuditEntry.objects.filter(target=event_rule.arn).values_list("action", flat=True)
    assert set(acts) >= {"scheduler:UpdateSchedule", "scheduler:DeleteSchedule"}
    assert client.get(page).status_code == 404


@pytest.mark.postgres_too
def test_dead_letters_of_a_schedule_lead_to_it(project: Project, client: Client) -> None:
    """Their list names the schedule, which has no page among the rules."""
    schedule(project)
    EventRule.objects.update(due_ms=1)
    deliveries.fire_due()
    Delivery.objects.update(status="dead", ended_ms=1_700_000_000_000, last_error="refused")
    assert 'href="/schedules/default/nightly/"' in text(client.get(NOTIFICATIONS))


def test_a_viewer_reads_a_schedule_only(project: Project, signed_in: SignIn) -> None:
    """No button is there that would be refused."""
    schedule(project)
    shown = text(signed_in("viewer").get("/schedules/default/nightly/"))
    assert "Disable" not in shown
    assert "/delete/" not in shown


@pytest.mark.postgres_too
def test_the_target_of_a_schedule_is_a_name_with_a_link(project: Project, client: Client) -> None:
    """Its whole ARN is there to copy; what has no page has a name only."""
    event_rule = schedule(project)
    arn = f"arn:aws:states:{REGION}:123456789012:stateMachine:machine"
    shown = text(client.get("/schedules/default/nightly/"))
    name = shown.partition('id="target-name"')[2].partition("</dd>")[0]
    assert '<a href="/machines/machine/"><bdi>machine</bdi></a>' in name
    assert f'data-copy-text="{arn}"' in name
    assert arn not in re.sub(r"<[^>]+>", " ", name)
    function = f"arn:aws:lambda:{REGION}:123456789012:function:clean"
    EventTarget.objects.filter(rule=event_rule).update(address=function)
    shown = text(client.get("/schedules/default/nightly/"))
    name = shown.partition('id="target-name"')[2].partition("</dd>")[0]
    assert re.sub(r"<[^>]+>", " ", name).split()[-1] == "clean"
    assert "href" not in name
