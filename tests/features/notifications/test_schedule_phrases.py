"""Phrases become expressions on the pages; the API refuses them with the expression."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from console.features.notifications.phrases import expression_of
from console.features.notifications.schedules import ScheduleError, parse_schedule
from console.models import EventRule
from tests.console.store.helpers import PASS, create
from tests.console.web.helpers import text

if TYPE_CHECKING:
    from django.test import Client

    from console.models import Project


@pytest.mark.parametrize(
    ("phrase", "expression"),
    [
        ("every 5 minutes", "rate(5 minutes)"),
        ("Every minute", "rate(1 minute)"),
        ("hourly", "rate(1 hour)"),
        ("every 2 hours", "rate(2 hours)"),
        ("every 90 min", "rate(90 minutes)"),
        ("daily at 9", "cron(0 9 * * ? *)"),
        ("at 18:30", "cron(30 18 * * ? *)"),
        ("weekdays at 9", "cron(0 9 ? * MON-FRI *)"),
        ("on weekdays at 9 o'clock", "cron(0 9 ? * MON-FRI *)"),
        ("mondays at 9am", "cron(0 9 ? * MON *)"),
        ("every mon and thu at 6:15 pm", "cron(15 18 ? * MON,THU *)"),
        ("every day at 12 am", "cron(0 0 * * ? *)"),
        ("weekends at noon", "cron(0 12 ? * SAT,SUN *)"),
    ],
)
def test_a_phrase_has_an_expression(phrase: str, expression: str) -> None:
    """It is one that EventBridge takes."""
    assert expression_of(phrase) == expression
    parse_schedule(expression)


@pytest.mark.parametrize(
    "phrase",
    ["", "sometimes", "every 0 minutes", "weekdays at 25", "mondays at 13 pm", "every blue day",
     "monday tuesdayish at 9", "rate(5 minutes)", "cron(0 9 * * ? *)"],
)  # fmt: skip
def test_other_texts_have_none(phrase: str) -> None:
    """Nothing is guessed."""
    assert expression_of(phrase) == ""


def test_the_form_takes_a_phrase_and_returns_to_the_triggers(
    project: Project, client: Client
) -> None:
    """While it is typed, the page shows as what it will be saved."""
    machine = create(project, PASS)
    shown = text(client.get("/schedules/times/?schedule=weekdays+at+9&timezone=UTC"))
    assert 'id="saved-as">cron(0 9 ? * MON-FRI *)' in shown
    assert "saved-as" not in text(client.get("/schedules/times/?schedule=rate(5+minutes)"))
    triggers = text(client.get("/machines/machine/triggers/"))
    arn = machine.arn.replace(":", "%3A")
    assert f"/schedules/?create=1&machine={arn}&back=triggers" in triggers
    form = text(client.get(f"/schedules/?create=1&machine={machine.arn}&back=triggers"))
    assert 'name="back" value="triggers"' in form
    sent = {
        "name": "often",
        "schedule": "every 5 minutes",
        "timezone": "UTC",
        "machine": machine.arn,
    }
    done = client.post("/schedules/", {**sent, "back": "triggers"})
    assert (done.status_code, done["Location"]) == (302, "/machines/machine/triggers/")
    assert EventRule.objects.get(name="often").schedule == "rate(5 minutes)"
    done = client.post("/schedules/", {**sent, "name": "other"})
    assert done["Location"] == "/schedules/"
    odd = client.post("/schedules/", {**sent, "name": "odd", "back": "//evil.example"})
    assert odd["Location"] == "/schedules/"


def test_the_api_names_the_expression() -> None:
    """AWS has no phrases: they are refused with what to write."""
    with pytest.raises(
        ScheduleError, match=r"'every 5 minutes' is no schedule expression. Write rate\(5 minutes\)"
    ):
        parse_schedule("every 5 minutes")
