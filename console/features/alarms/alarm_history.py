"""List what has become of an alarm: the changes of its state, and who changed the alarm itself."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from console.features.alarms import alarm_display
from console.features.alarms.models import AlarmChange
from console.features.alarms.store import MOST_CHANGES
from console.models import AuditEntry

if TYPE_CHECKING:
    from console.features.alarms.models import Alarm
    from console.web.core.formatting import StatusLabel


@dataclass(frozen=True, slots=True)
class AlarmHistoryRow:
    """A change of its state, from ``before`` to ``after``, or of the alarm: then both are None.

    ``actor``: the person who made it, "" for an evaluation.
    """

    at_ms: int
    before: StatusLabel | None
    after: StatusLabel | None
    reason: str
    actor: str


def alarm_history(alarm: Alarm) -> list[AlarmHistoryRow]:
    """Return the newest changes, the newest first."""
    states = alarm_display.STATES
    changes = list(AlarmChange.objects.filter(alarm=alarm).order_by("-pk")[:MOST_CHANGES])
    rows = [
        AlarmHistoryRow(
            *(change.at_ms, states.get(change.before), states.get(change.state)),
            *(change.reason, change.actor),
        )
        for change in changes
    ]
    if alarm.state_ms > alarm.created_ms and alarm.state_ms not in {row.at_ms for row in rows}:
        # the release that wrote this change kept the last one only
        rows.append(
            AlarmHistoryRow(alarm.state_ms, None, states[alarm.state], alarm.reason, actor="")
        )
    edits = AuditEntry.objects.filter(
        project=alarm.project_id,
        target=alarm.arn,
        action="monitoring:PutMetricAlarm",
        at_ms__gte=alarm.created_ms,
    )
    newest = edits.order_by("-pk").values_list("at_ms", "actor")[:MOST_CHANGES]
    rows += [AlarmHistoryRow(at_ms, None, None, "", actor) for at_ms, actor in newest]
    return sorted(rows, key=lambda row: row.at_ms, reverse=True)[:MOST_CHANGES]
