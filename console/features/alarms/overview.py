"""Say on the overview which alarms are in alarm, and lead from an alarm's ARN to its page."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from django.urls import reverse

from console.features.alarms import alarm_display
from console.models import Alarm

if TYPE_CHECKING:
    from console.web.core.scope import Scope

_ARN = re.compile(r"arn:aws[a-z-]*:cloudwatch:([a-z0-9-]+):\d{12}:alarm:.+")


def live_alarms(scope: Scope, most: int) -> dict[str, Any]:
    """Return the newest alarms in alarm and how many there are, for the overview's poll."""
    alarmed, count = alarm_display.alarms_in_alarm(scope, most)
    return {
        "alarmed": alarmed,
        "alarm_count": count,
        "seen": [count, *((row.alarm.pk, row.alarm.state_ms) for row in alarmed)],
    }


def alarm_address(scope: Scope, arn: str) -> str:
    """Return where an alarm is: its page; the list of all if it is gone; "" of other ARNs."""
    match = _ARN.fullmatch(arn)
    if match is None:
        return ""
    rows = Alarm.objects.filter(project=scope.project, arn=arn)
    for number in rows.values_list("pk", flat=True):
        return f"{reverse('alarm', args=[number])}?region={match[1]}"
    return f"{reverse('alarms')}?region={match[1]}"
