"""Pause all schedules of a project, so that none starts anything until a resume.

Times that pass meanwhile are skipped, as for disabled schedules, so a resume causes no burst. Only
a flexible time window still open at the resume makes up for its start, once. Deliveries pending at
the begin of the pause wait and follow at the resume. Event rules and runs by hand continue.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from django.db.models import Q
from django.db.models.functions import Coalesce

from console.db import audit, clock, signals
from console.db.writer import write
from console.errors import ConflictException
from console.features.notifications.store import deliveries, rules
from console.models import EventRule, Project, SchedulePause
from console.statuses import RuleState, Topic

if TYPE_CHECKING:
    from collections.abc import Sequence

    from django.db.models import QuerySet

SHOWN = 200
_MINUTE_MS = 60_000


@dataclass(frozen=True, slots=True)
class SchedulePlan:
    """The dry run of a pause or resume. ``rules``: the first ``SHOWN`` schedules, by next time.

    ``missed``: moments that a resume would make up for, as their windows are open: rule -> moment.
    """

    total: int
    rules: Sequence[EventRule]
    missed: dict[int, int]


def find_pause(project: Project) -> SchedulePause | None:
    """Return the pause of a project's schedules, None without one."""
    return SchedulePause.objects.filter(project=project).first()


def plan_change(project: Project) -> SchedulePlan:
    """Return a project's enabled schedules in all regions, with the starts of a resume."""
    enabled = _enabled(project)
    listed = enabled.annotate(moment_ms=Coalesce("next_ms", "due_ms")).order_by("moment_ms", "pk")
    pause = find_pause(project)
    missed = {} if pause is None else dict(_missed_moments(project, pause.since_ms))
    first_rules = list(listed.prefetch_related("targets")[:SHOWN])
    return SchedulePlan(enabled.count(), first_rules, missed)


def pause_schedules(project: Project, actor: audit.Actor, note: str = "") -> SchedulePause:
    """Pause all schedules of a project; raise ConflictException if already paused."""

    def store() -> SchedulePause:
        _lock(project)
        pause = find_pause(project)
        if pause is not None:
            name = pause.paused_by or "the server"
            raise ConflictException(f"The schedules are already paused by {name}.")
        pause = SchedulePause.objects.create(
            project=project, since_ms=clock.now_ms(), paused_by=actor.name, note=note
        )
        audit.record(project, actor, "PauseSchedules", "schedules", note)
        return pause

    return write(store)


def resume_schedules(project: Project, actor: audit.Actor) -> int:
    """Resume the schedules; return the number of starts made up for open windows.

    Raise ConflictException if they are not paused.
    """

    def store() -> int:
        _lock(project)
        pause = find_pause(project)
        if pause is None:
            raise ConflictException("The schedules are not paused.")
        missed = _missed_moments(project, pause.since_ms)
        pause.delete()
        now_ms = clock.now_ms()
        rows = EventRule.objects.select_related("project").in_bulk([pk for pk, _ in missed])
        for number, moment_ms in missed:
            rule = rows[number]
            end_ms = moment_ms + rule.window_minutes * _MINUTE_MS
            deliveries.put_schedule_event(rule, moment_ms, max(end_ms - now_ms, 0))
        audit.record(project, actor, "ResumeSchedules", "schedules")
        signals.publish((Topic.EVENT,))
        return len(missed)

    return write(store)


def _enabled(project: Project) -> QuerySet[EventRule]:
    rows = EventRule.objects.filter(project=project, state=RuleState.ENABLED)
    return rows.filter(Q(next_ms__isnull=False) | Q(due_ms__isnull=False))


def _missed_moments(project: Project, since_ms: int) -> list[tuple[int, int]]:
    """Return (rule, time) of each schedule whose flexible window is still open.

    The first such moment counts, also if more of them lie in the window.
    """
    now_ms = clock.now_ms()
    rows = EventRule.objects.filter(project=project, state=RuleState.ENABLED, window_minutes__gt=0)
    missed = []
    for rule in rows.order_by("pk"):
        # a schedule that was changed meanwhile has missed what it says since
        since = max(since_ms, rule.updated_ms or rule.created_ms)
        after_ms = max(since, now_ms - rule.window_minutes * _MINUTE_MS)
        moment_ms = rules.moment_after(rule, after_ms)
        if moment_ms is not None and moment_ms <= now_ms:
            missed.append((rule.pk, moment_ms))
    return missed


def _lock(project: Project) -> None:
    """Lock the project's row, so that concurrent pauses run one by one."""
    Project.objects.select_for_update(no_key=True).get(pk=project.pk)
