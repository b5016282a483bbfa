"""Views of the list of activities with their open tasks, and of one activity."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.contrib import messages
from django.http import Http404
from django.shortcuts import redirect
from django.views.decorators.http import require_http_methods

from console.errors import ServiceError
from console.store.machines import activity_limits, tags
from console.store.tasks import activities as store
from console.web.core.scope import actor_of, render, require, scope_of
from console.web.execution import waiting
from console.web.tasks import open_work
from console.web.tasks.forms import ActivityForm, TimeoutsForm

if TYPE_CHECKING:
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
    activities = open_work.list_activities(scope, search=search, after=after)
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
    work = open_work.find_activity(scope, activity_name)
    if work is None:
        raise Http404(f"There is no activity “{activity_name}” in {scope.region}.")
    problem = ""
    if request.method == "POST" and ActivityForm(request.POST).values["act"] == "delete":
        require(scope, "DeleteActivity")
        store.delete_activity(scope.project, work.activity.arn, actor_of(scope))
        messages.success(request, f"The activity {activity_name} was deleted.")
        return redirect("activities")
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
