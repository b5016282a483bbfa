"""Tell who saved something else meanwhile, for forms whose whole text two people may change."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING

from django.http import Http404
from django.shortcuts import get_object_or_404

from console.db import audit
from console.features.alarms import store as alarms
from console.features.alarms.models import Alarm
from console.features.notifications.store import rules, scheduler
from console.models import EventRule, Project
from console.store.people import masks

if TYPE_CHECKING:
    from collections.abc import Callable

    from console.models import AuditEntry


@dataclass(frozen=True, slots=True)
class SaveConflict:
    """What somebody else saved. ``revision``: what *Save mine over theirs* may replace.

    ``saved_by``: "" and ``saved_ms``: None if nobody knows; ``theirs``: label and text of fields.
    """

    revision: str
    saved_by: str
    saved_ms: int | None
    theirs: tuple[tuple[str, str], ...]


def paths_conflict(project: Project) -> SaveConflict:
    """Return the masked paths that somebody else saved."""
    now = Project.objects.get(pk=project.pk).masked
    entry = audit.find_latest(project, project.name, "PutMaskedPaths")
    return _conflict(masks.revision_of(now), entry, (("Their paths", now),))


def rule_conflict(rule: EventRule) -> SaveConflict:
    """Return what somebody else saved of a rule."""
    now = EventRule.objects.get(pk=rule.pk)
    entry = audit.find_latest(now.project, now.arn, "events:PutRule")
    fields = (
        ("Their event pattern", now.pattern),
        ("Their schedule", now.schedule and f"{now.schedule}, {now.timezone}"),
        ("Their description", now.description),
    )
    return _conflict(rules.revision_of(now), entry, tuple(field for field in fields if field[1]))


def schedule_conflict(row: EventRule) -> SaveConflict:
    """Return what somebody else saved of a schedule; raise ``Http404`` if it was deleted."""
    now = get_object_or_404(EventRule, pk=row.pk)
    entry = audit.find_latest(now.project, now.arn, "scheduler:UpdateSchedule")
    try:
        target = scheduler.target_of(now)
    except IndexError:  # deleted since the schedule was read
        raise Http404("The schedule was deleted.") from None
    input_text = json.loads(target.settings).get("Input", "")
    fields = (
        ("Their schedule", f"{now.schedule}, {now.timezone}"),
        ("Their input", str(input_text)),
        ("Their description", now.description),
    )
    return _conflict(
        scheduler.revision_of(now), entry, tuple(field for field in fields if field[1])
    )


def alarm_conflict(alarm: Alarm, words: Callable[[Alarm], str]) -> SaveConflict:
    """Return what somebody else saved of an alarm. ``words``: say when an alarm is one."""
    now = Alarm.objects.get(pk=alarm.pk)
    entry = audit.find_latest(now.project, now.arn, "monitoring:PutMetricAlarm")
    fields = (("Their alarm", words(now)), ("Their description", now.description))
    return _conflict(alarms.revision_of(now), entry, tuple(field for field in fields if field[1]))


def _conflict(
    revision: str, entry: AuditEntry | None, theirs: tuple[tuple[str, str], ...]
) -> SaveConflict:
    by, at_ms = (entry.actor, entry.at_ms) if entry else ("", None)
    return SaveConflict(revision, by, at_ms, theirs)
