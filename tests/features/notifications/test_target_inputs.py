"""X14: the constant input of a rule's or a schedule's target is masked as a payload is."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from console import access
from console.awsapi import services
from console.awsapi.operations.call import Call
from console.db.audit import Actor
from console.features.notifications.store import rules, scheduler
from console.features.notifications.target_inputs import mask_target_settings
from tests.console.store.helpers import PASS, REGION, ROLE, create
from tests.console.web.helpers import text
from tests.features.notifications.test_event_actions import ask

if TYPE_CHECKING:
    from collections.abc import Callable

    from django.test import Client

    from console.models import Project

    SignIn = Callable[[str], Client]

CANARY = "4929-canary-7831"
INPUT = json.dumps({"card": CANARY, "order": 7})


@pytest.fixture
def masked(project: Project) -> Project:
    """Return a project with a rule and a schedule whose targets get a value that is masked."""
    project.masked = "$.card"
    project.save()
    arn = create(project, PASS).arn
    rules.put_rule(project, REGION, "nightly", schedule="rate(1 day)")
    target = {"Id": "1", "Arn": arn, "Input": INPUT}
    assert rules.put_targets(project, REGION, "nightly", [target]) == []
    key = scheduler.ScheduleKey(project, REGION, "default", "hourly")
    settings = scheduler.ScheduleSettings(
        "rate(1 hour)", {"Arn": arn, "RoleArn": ROLE, "Input": INPUT}
    )
    scheduler.create_schedule(key, settings)
    return project


@pytest.mark.usefixtures("masked")
@pytest.mark.parametrize("address", ["/rules/nightly/", "/schedules/default/hourly/"])
def test_pages_mask_the_input_of_a_target(signed_in: SignIn, address: str) -> None:
    """For who may not change it; an editor has it before them."""
    for role in ("viewer", "operator"):
        shown = text(signed_in(role).get(address))
        assert CANARY not in shown
        assert "(masked)" in shown
    assert CANARY in text(signed_in("editor").get(address))


def test_the_api_masks_the_input_of_a_target(masked: Project, django_user_model: Any) -> None:
    """As the pages do."""
    user = django_user_model.objects.create_user("somebody")

    def inputs(role: str) -> list[str]:
        [target] = ask(masked, "ListTargetsByRule", role, Rule="nightly")["Targets"]
        principal = access.Principal(user, masked, role)
        call = Call("GetSchedule", {"Name": "hourly"}, principal, REGION, Actor(role, "AKIA"))
        schedule = services.SCHEDULER.handler("GetSchedule")(call)
        assert isinstance(schedule, dict)
        return [target["Input"], schedule["Target"]["Input"]]

    for role in ("viewer", "operator"):
        assert [json.loads(each) for each in inputs(role)] == [{"card": "(masked)", "order": 7}] * 2
    assert inputs("editor") == [INPUT, INPUT]


@pytest.mark.parametrize(
    ("template", "shown"),
    [
        (INPUT, '{"card":"(masked)","order":7}'),
        ('{"card": "4929", "of": <who>, "at": "<when>"}', None),
        ('{"card": <number>}', None),
        ('{"order": <number>}', '{"order": <number>}'),
        ('"card <number>"', '"card <number>"'),
    ],
)
def test_a_template_is_masked_around_its_placeholders(
    masked: Project, template: str, shown: str | None
) -> None:
    """A placeholder outside of quotation marks is no JSON."""
    target: dict[str, Any] = {"InputTransformer": {"InputPathsMap": {}, "InputTemplate": template}}
    told = mask_target_settings(masked, target)["InputTransformer"]["InputTemplate"]
    if shown is None:
        assert '"card":"(masked)"' in told
        assert "4929" not in told
    else:
        assert told == shown
