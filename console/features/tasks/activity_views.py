"""Views of the list of activities with their open tasks, and of one activity."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from django.contrib import messages
from django.db.models import Count, Max, Min, Q
from django.http import Http404
from django.shortcuts import redirect
from django.views.decorators.http import require_http_methods

from console.db import clock, signals
from console.db.writer import is_embedded
from console.errors import ServiceError
from console.features.tasks.forms import ActivityForm, TimeoutsForm
from console.integrations import targets
from console.models import Activity, TaskRow
from console.statuses import OPEN_TASKS, TaskKind, TaskStatus, Topic
from console.store.machines import activity_limits, tags
from console.store.tasks import activities as store
from console.web.core import formatting
from console.web.core.addresses import page_address
from console.web.core.scope import actor_of, render, require, scope_of
from console.web.execution import waiting

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from django.http import HttpRequest, HttpResponse

    from console.web.core.scope import Scope


_LABELS = {
    "stateyard:scheduleToStartTimeout": "Schedule to start (until a worker picks up the task)",
    "stateyard:startToCloseTimeout": "Start to close (from pickup to end)",
    "stateyard:scheduleToCloseTimeout": "Schedule to close (total)",
    "stateyard:heartbeatTimeout": "Heartbeat (between heartbeats)",
}
_PROGRAM = """\
import json

import boto3
from botocore.config import Config

sfn = boto3.Session(profile_name="stateyard").client(
    "stepfunctions",
    endpoint_url="{address}",
    region_name="{region}",
    config=Config(read_timeout=70),  # a poll waits up to a minute
)


def work(task_input):
    return task_input  # your work


while True:
    task = sfn.get_activity_task(
        activityArn="{arn}",
        workerName="worker-1",
    )
    if not task.get("taskToken"):
        continue  # a minute without a task
    try:
        result = work(json.loads(task["input"]))
    except Exception as error:
        sfn.send_task_failure(
            taskToken=task["taskToken"],
            error=type(error).__name__,
            cause=str(error),
        )
    else:
        sfn.send_task_success(taskToken=task["taskToken"], output=json.dumps(result))
"""


@require_http_methods(["GET", "POST"])
def activity_list(request: HttpRequest) -> HttpResponse:
    """Show ``/activities/``: all with their open tasks; an editor can add one."""
    scope = scope_of(request)
    name = problem = ""
    if request.method == "POST":
        require(scope, "CreateActivity")
        name = ActivityForm(request.POST).values["name"]
        try:
            store.create_activity(scope.project, scope.region, name, actor_of(scope))
        except ServiceError as refused:
            problem = refused.message
        else:
            messages.success(request, f"The activity {name} was created.")
            return redirect(request.get_full_path())
    search, after = request.GET.get("q", "")[:80], request.GET.get("after", "")[:80]
    activities = list_activities(scope, search=search, after=after)
    unpolled = [work for work in activities.rows if work.unpolled]
    worked = unpolled or activities.rows
    first = worked[0].activity.name if worked else "ACTIVITY"
    context = {
        "section": "tasks",
        "tab": "activities",
        "activities": activities,
        "unpolled": unpolled,
        "program": worker_program(request, scope, first),
        "first_name": first,
        "search": search,
        "after": after,
        "name": name,
        "problem": problem,
    }
    return render(request, "tasks/activity_list.html", context, status=422 if problem else 200)


@require_http_methods(["GET", "POST"])
def activity_page(request: HttpRequest, activity_name: str) -> HttpResponse:
    """Show ``/activities/<name>/``: open tasks; an editor sets timeouts or deletes it."""
    scope = scope_of(request)
    work = find_activity(scope, activity_name)
    if work is None:
        raise Http404(f"There is no activity “{activity_name}” in {scope.region}.")
    problem = ""
    if request.method == "POST" and ActivityForm(request.POST).values["act"] == "delete":
        require(scope, "DeleteActivity")
        store.delete_activity(scope.project, work.activity.arn, actor_of(scope))
        messages.success(request, f"The activity {activity_name} was deleted.")
        return redirect(page_address(scope, "activities"))
    limits = stored = activity_limits.limit_tags(work.activity.arn)
    if request.method == "POST":
        require(scope, "TagResource")
        limits = TimeoutsForm(request.POST, limits).limits
        try:
            tags.put_own_tags(scope.project, work.activity.arn, limits, actor_of(scope))
        except ServiceError as refused:
            problem = refused.message
        else:
            messages.success(request, "New tasks have these timeouts.")
            return redirect(request.get_full_path())
    filters = waiting.TaskFilters.of(request.GET, work.activity.name)
    context = {
        "section": "tasks",
        "work": work,
        "tasks": waiting.list_open_tasks(scope, filters),
        "program": worker_program(request, scope, work.activity.name),
        "limits": [(key, _LABELS[key], value) for key, value in limits.items()],
        "stored_limits": _default_timeouts(stored),
        "problem": problem,
    }
    return render(request, "tasks/activity.html", context, status=422 if problem else 200)


def _default_timeouts(stored: dict[str, str]) -> list[tuple[str, str]]:
    """Return label and text of each default timeout; empty without any."""
    if all(value == "NONE" for value in stored.values()):
        return []
    return [(_LABELS[key], _limit_text(value)) for key, value in stored.items()]


def _limit_text(value: str) -> str:
    return "no limit" if value == "NONE" else f"{value} s"


def worker_program(request: HttpRequest, scope: Scope, name: str) -> str:
    """Return an example worker in Python for an activity of this scope."""
    return _PROGRAM.format(
        address=f"{request.scheme}://{request.get_host()}",
        region=scope.region,
        arn=scope.arn("activity", name),
    )


PAGE = 50
_TAKEN_AFTER_MS = 5_000
"""A worker that polls any process has taken a task by then."""


@dataclass(frozen=True, slots=True)
class ActivityWork:
    """An activity: ``queued`` tasks wait since ``oldest_ms``, ``taken`` tasks have a worker.

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
