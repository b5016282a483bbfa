"""Count each activity's open tasks, and find whether a worker polls it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from django.db.models import Count, Max, Min, Q

from console.db import clock, signals
from console.db.writer import is_embedded
from console.integrations import targets
from console.models import Activity, TaskRow
from console.statuses import OPEN_TASKS, TaskKind, TaskStatus, Topic
from console.web.core import formatting

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from console.web.core.scope import Scope

PAGE = 50
_TAKEN_AFTER_MS = 5_000
"""A worker that polls any process has taken a task by then."""


@dataclass(frozen=True, slots=True)
class ActivityWork:
    """An activity: ``queued`` tasks wait since ``oldest_ms``, ``taken`` ones have a worker.

    ``worked_ms``: when a worker last took one, in the last 24 hours.
    """

    activity: Activity
    queued: int
    taken: int
    oldest_ms: int | None
    worked_ms: int | None
    worker: str

    @property
    def builtin(self) -> bool:
        """Whether a registered callable works it."""
        project = self.activity.project.name
        return targets.find_activity(self.activity.name, project, sample=False) is not None

    @property
    def of_samples(self) -> bool:
        """Whether a callable works its tasks of sample state machines."""
        project = self.activity.project.name
        return targets.find_activity(self.activity.name, project, sample=True) is not None

    @property
    def sees_all(self) -> bool:
        """Whether this process sees all polls, as with ``up``."""
        return is_embedded()

    @property
    def pollers(self) -> int:
        """Return the number of open GetActivityTask calls at this process."""
        return signals.subscribers((Topic.ACTIVITY, self.activity.arn))

    @property
    def unpolled(self) -> bool:
        """Whether tasks wait without any worker or callable.

        Workers may poll other processes of the server; they would have taken a task at once.
        """
        if self.oldest_ms is None or self.pollers or self.builtin:
            return False
        return self.sees_all or clock.now_ms() - self.oldest_ms > _TAKEN_AFTER_MS

    @property
    def polled(self) -> formatting.StatusLabel:
        """Return the number of polling workers, if any."""
        count = self.pollers
        where = "" if self.sees_all else " this process"
        return formatting.StatusLabel("succeeded", f"{count} polling{where}")

    alarm = formatting.StatusLabel("caught", "Nobody polls")
    own_status = formatting.StatusLabel("running", "This server")
    samples_status = formatting.StatusLabel("running", "This server, for samples")


@dataclass(frozen=True, slots=True)
class ActivityPage:
    """A page of activities by name; ``after``: key of the next page, "" at the end."""

    rows: tuple[ActivityWork, ...]
    total: int
    after: str


def list_activities(scope: Scope, *, search: str = "", after: str = "") -> ActivityPage:
    """Return activities by name. ``search``: a part of the name."""
    activities = Activity.objects.select_related("project")
    activities = activities.filter(project=scope.project, region=scope.region)
    if search:
        activities = activities.filter(name__icontains=search)
    rows = list(activities.filter(name__gt=after).order_by("name")[: PAGE + 1])
    shown = _with_work(rows[:PAGE])
    return ActivityPage(shown, activities.count(), rows[PAGE - 1].name if len(rows) > PAGE else "")


def find_activity(scope: Scope, name: str) -> ActivityWork | None:
    """Return one activity, None without one of this name."""
    activities = Activity.objects.select_related("project").filter(
        project=scope.project, arn=scope.arn("activity", name)
    )
    return next(iter(_with_work(list(activities))), None)


def _with_work(rows: Sequence[Activity]) -> tuple[ActivityWork, ...]:
    arns = [row.arn for row in rows]
    counted: dict[str, Any] = {row["resource"]: row for row in _counts(arns)}
    lately = _last_worked(arns)
    return tuple(
        ActivityWork(
            row,
            counted.get(row.arn, {}).get("queued", 0),
            counted.get(row.arn, {}).get("taken", 0),
            counted.get(row.arn, {}).get("oldest"),
            *lately.get(row.arn, (None, "")),
        )
        for row in rows
    )


def _counts(arns: Sequence[str]) -> Sequence[Mapping[str, Any]]:
    queued = Q(status=TaskStatus.SCHEDULED)
    rows = TaskRow.objects.filter(resource__in=arns, kind=TaskKind.ACTIVITY, status__in=OPEN_TASKS)
    tasks = rows.order_by().values("resource")
    return list(
        tasks.annotate(
            queued=Count("task", filter=queued),
            taken=Count("task", filter=~queued),
            oldest=Min("scheduled_ms", filter=queued),
        )
    )


def _last_worked(arns: Sequence[str]) -> dict[str, tuple[int | None, str]]:
    """Return when each activity was last worked, with the worker."""
    activities = TaskRow.objects.filter(kind=TaskKind.ACTIVITY)
    rows = activities.filter(resource__in=arns, started_ms__gte=clock.now_ms() - formatting.DAY)
    last = dict(rows.order_by().values_list("resource").annotate(Max("started_ms")))
    if not last:
        return {}
    ends = activities.filter(resource__in=last, started_ms__in=last.values())
    names = {
        (resource, at): worker
        for resource, at, worker in ends.values_list("resource", "started_ms", "worker")
    }
    return {arn: (at, names.get((arn, at), "").lstrip("\x01")) for arn, at in last.items()}
