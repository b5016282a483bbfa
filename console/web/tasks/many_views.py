"""View that approves or rejects several tasks at once, after confirmation."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from django.contrib import messages
from django.shortcuts import redirect

from console.errors import ServiceError
from console.store.tasks.answers import answer_task
from console.web.core.numbers import whole_number
from console.web.core.scope import actor_of, render, require
from console.web.execution import waiting

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from django.http import HttpRequest, HttpResponse

    from console.web.core.scope import Scope
    from console.web.execution.waiting import OpenTask

ACTS = ("ask-many", "approve-many", "reject-many")
MOST = 200
"""Maximum of tasks in one request."""
_MOST_TOLD = 5


def answer_many(request: HttpRequest, scope: Scope, act: str, comment: str) -> HttpResponse:
    """Answer POSTs of *Open tasks* for several approvals.

    The form has the selected tasks, or one task in ``alike`` for all approvals of the same state
    and state machine. ``ask-many`` shows the page of confirmation. ``approve-many`` and
    ``reject-many`` answer each task in a transaction of its own: refused ones do not stop the rest.
    """
    rejects = act == "reject-many"
    require(scope, "SendTaskFailure" if rejects else "SendTaskSuccess")
    alike = request.POST.get("alike", "")
    tasks = _alike(scope, alike) if alike else _chosen(scope, request.POST.getlist("tasks"))
    if not tasks:
        messages.error(request, "No open approval is selected.")
        return redirect(request.get_full_path())
    if act == "ask-many":
        context = {"section": "tasks", "tasks": tasks, "comment": comment, "kinds": _kinds(tasks)}
        return render(request, "tasks/answer_many.html", context | {"most": MOST})
    done, refused = 0, []
    for task in tasks:
        execution = task.row.execution
        execution.project = scope.project
        try:
            answer_task(
                *(execution, task.row.task, actor_of(scope)),
                approve=act == "approve-many",
                comment=comment,
            )
        except ServiceError as problem:
            refused.append(f"{execution.name}: {problem.message}")
        else:
            done += 1
    word = "approved" if act == "approve-many" else "rejected"
    if done:
        messages.success(request, f"{done} task{'s' if done > 1 else ''} {word}.")
    for words in refused[:_MOST_TOLD]:
        messages.error(request, words)
    if len(refused) > _MOST_TOLD:
        messages.error(request, f"{len(refused) - _MOST_TOLD} more were not {word}.")
    return redirect(request.get_full_path())


def kinds_with_many(tasks: Sequence[OpenTask]) -> list[tuple[str, str, int, str]]:
    """Group open approvals by state and state machine; omit groups of one.

    Return (state, state machine, count, key of the first task) for each group. The key becomes the
    form's ``alike``.
    """
    offered = [task for task in tasks if task.offered and task.is_approval]
    first = {(task.row.state, machine): task.key for task, machine in _named(reversed(offered))}
    return [
        (state, machine, count, first[state, machine])
        for state, machine, count in _kinds(offered)
        if count > 1
    ]


def _named(tasks: Iterable[OpenTask]) -> list[tuple[OpenTask, str]]:
    """Return each task with the name of its state machine."""
    return [(task, task.row.execution.state_machine_arn.rpartition(":")[2]) for task in tasks]


def _kinds(tasks: Sequence[OpenTask]) -> list[tuple[str, str, int]]:
    counts = Counter((task.row.state, machine) for task, machine in _named(tasks))
    return [(state, machine, count) for (state, machine), count in counts.items()]


def _chosen(scope: Scope, keys: Sequence[str]) -> list[OpenTask]:
    """Return the open approvals with these keys."""
    chosen_keys = set(keys[:MOST])
    numbers = {whole_number(key.partition("-")[0]) or 0 for key in chosen_keys}
    rows = waiting.open_tasks(scope, waiting.TaskFilters()).filter(execution__in=numbers)
    tasks = map(waiting.open_task, rows.select_related("execution__definition"))
    return [task for task in tasks if task.key in chosen_keys and task.offered and task.is_approval]


def _alike(scope: Scope, key: str) -> list[OpenTask]:
    """Return the open approvals of a task's state and state machine, oldest first."""
    task = next(iter(_chosen(scope, [key])), None)
    if task is None:
        return []
    machine = task.row.execution.state_machine_arn
    rows = waiting.open_tasks(scope, waiting.TaskFilters()).filter(
        state=task.row.state, execution__state_machine_arn=machine
    )
    rows = rows.select_related("execution__definition").order_by("scheduled_ms", "execution_id")
    tasks = map(waiting.open_task, rows[:MOST])
    return [task for task in tasks if task.offered and task.is_approval]
