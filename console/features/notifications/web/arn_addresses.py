"""Lead from the ARN of a rule or of a schedule to its page."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from django.urls import reverse

if TYPE_CHECKING:
    from console.web.core.scope import Scope

_RULE = re.compile(r"arn:aws[a-z-]*:events:([a-z0-9-]+):\d{12}:rule/([^/:]+)")
_SCHEDULE = re.compile(r"arn:aws[a-z-]*:scheduler:([a-z0-9-]+):\d{12}:schedule/([^/:]+)/([^/:]+)")


def arn_address(_scope: Scope, arn: str) -> str:
    """Return the address of a rule or of a schedule, "" of other ARNs."""
    if rule := _RULE.fullmatch(arn):
        return f"{reverse('rule', args=[rule[2]])}?region={rule[1]}"
    if schedule := _SCHEDULE.fullmatch(arn):
        return f"{reverse('schedule', args=schedule.groups()[1:])}?region={schedule[1]}"
    return ""
