"""Find the page of a rule or schedule by ARN."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from django.urls import reverse

from console.models import EventRule

if TYPE_CHECKING:
    from django.db.models import Manager

    from console.web.core.scope import Scope

_SCHEDULE_ARN = re.compile(
    r"arn:aws[a-z-]*:scheduler:([a-z0-9-]+):\d{12}:schedule/([^/:]+)/([^/:]+)"
)
_RULE_ARN = re.compile(r"arn:aws[a-z-]*:events:([a-z0-9-]+):\d{12}:rule/([^/:]+)")


def notification_address(_scope: Scope, arn: str) -> str:
    """Return the URL of the rule or schedule of an ARN, "" for other ARNs."""
    if rule := _RULE_ARN.fullmatch(arn):
        return f"{reverse('rule', args=[rule[2]])}?region={rule[1]}"
    if schedule := _SCHEDULE_ARN.fullmatch(arn):
        return f"{reverse('schedule', args=schedule.groups()[1:])}?region={schedule[1]}"
    return ""


def rules_with_arns() -> dict[str, Manager[Any]]:
    """Return rules and schedules by kind of ARN."""
    return {"rule": EventRule.objects, "schedule": EventRule.objects}
