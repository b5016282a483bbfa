"""Describe edit conflicts: another person's save of a rule or schedule."""

from __future__ import annotations

import json

from django.http import Http404
from django.shortcuts import get_object_or_404

from console.db import audit
from console.features.notifications.store import rules, scheduler
from console.models import EventRule
from console.web.core.forms import SaveConflict, save_conflict


def rule_conflict(rule: EventRule) -> SaveConflict:
    """Return another person's save of a rule."""
    now = EventRule.objects.get(pk=rule.pk)
    entry = audit.find_latest(now.project, now.arn, "events:PutRule")
    fields = (
        ("Their event pattern", now.pattern),
        ("Their schedule", now.schedule and f"{now.schedule}, {now.timezone}"),
        ("Their description", now.description),
    )
    return save_conflict(
        rules.revision_of(now), entry, tuple(field for field in fields if field[1])
    )


def schedule_conflict(row: EventRule) -> SaveConflict:
    """Return another person's save of a schedule; raise ``Http404`` if deleted."""
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
    return save_conflict(
        scheduler.revision_of(now), entry, tuple(field for field in fields if field[1])
    )
