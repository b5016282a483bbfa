"""Tell who saved another alarm meanwhile."""

from __future__ import annotations

from console.db import audit
from console.features.alarms import store as alarms
from console.features.alarms.alarm_display import alarm_words
from console.models import Alarm
from console.web.core.conflicts import SaveConflict, make_conflict


def alarm_conflict(alarm: Alarm) -> SaveConflict:
    """Return what somebody else saved of an alarm."""
    now = Alarm.objects.get(pk=alarm.pk)
    entry = audit.find_latest(now.project, now.arn, "monitoring:PutMetricAlarm")
    fields = (("Their alarm", alarm_words(now)), ("Their description", now.description))
    theirs = tuple(field for field in fields if field[1])
    return make_conflict(alarms.revision_of(now), entry, theirs)
