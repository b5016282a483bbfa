"""Views of the list of open tasks, and of one task, which a person can complete."""

from __future__ import annotations

import json
import re
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from django.contrib import messages
from django.http import Http404, HttpResponse
from django.shortcuts import redirect
from django.urls import reverse
from django.utils.html import format_html
from django.views.decorators.http import require_http_methods, require_safe

from console.db import clock
from console.errors import ErrorCode, ServiceError
from console.feature import Hook, hooked
from console.features.tasks.forms import AnswerForm, TaskForm, question_of
from console.masking import masked_execution
from console.masking.masked_execution import HIDDEN_TOKEN
from console.models import AuditEntry, Execution, TaskRow
from console.statuses import TaskKind, TaskStatus
from console.store.tasks import manual
from console.store.tasks.answers import APPROVED_WORD, REJECTED_WORD, answer_task
from console.web.core import cli_commands, formatting
from console.web.core.formatting import StatusLabel, visible_text
from console.web.core.numbers import whole_number
from console.web.core.scope import actor_of, render, require, scope_of
from console.web.execution import waiting
from console.web.search.payload_columns import MOST_COLUMNS, read_columns, short_text, value_text

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from django.http import HttpRequest

    from console.models import Project
    from console.web.core.scope import Scope
    from console.web.execution.waiting import OpenTask
    from console.web.search.payload_columns import PayloadColumn


_ACTIONS = {
    "approve": ("SendTaskSuccess", "The task was approved."),
    "reject": ("SendTaskFailure", "The task was rejected."),
    "complete": ("SendTaskSuccess", "The task was completed."),
    "fail": ("SendTaskFailure", "The task was failed."),
    "heartbeat": ("SendTaskHeartbeat", "The heartbeat was sent."),
    "reveal": ("SendTaskSuccess", ""),
}
_ANSWERS = {"SendTaskSuccess": "completed", "SendTaskFailure": "failed"}
_CLOSED_CODES = (ErrorCode.TaskTimedOut, ErrorCode.TaskDoesNotExist)
_TASK_KEY = re.compile(r"\b(\d{1,15})-(\d{1,15})\b")
_TASK_COLUMNS = ("execution_id", "task", "state", "execution__arn", "execution__project_id")


@require_http_methods(["GET", "POST"])
def task_list(request: HttpRequest) -> HttpResponse:
    """Show ``/tasks/``: all open tasks, oldest first; a POST answers one."""
    scope = scope_of(request)
    if request.method == "POST":
        return _answer_in_list(request, scope)
    filters = waiting.TaskFilters.of(request.GET)
    tasks = waiting.list_open_tasks(scope, filters)
    typed = request.GET.get("columns", "")
    paths, problem = read_columns(typed)
    context = {
        "section": "tasks",
        "tab": "tasks",
        "tasks": tasks,
        "seen": f"{tasks.total}-0",
        "now": clock.now_ms(),
        "alike": kinds_with_many(tasks.rows),
        "typed_columns": typed,
        "paths": paths,
        "columns_problem": problem,
        "values": input_values(scope.project, tasks.rows, paths),
        "summaries": {} if paths else input_summaries(scope.project, tasks.rows),
    }
    return render(request, "tasks/task_list.html", context, status=422 if problem else 200)


@require_safe
def task_list_changes(request: HttpRequest) -> HttpResponse:
    """Answer a poll of the list: its ended tasks, and the number of new ones."""
    scope = scope_of(request)
    since = whole_number(request.GET.get("listed_ms", "")) or 0
    changes = list_changes(
        scope, waiting.TaskFilters.of(request.GET), request.GET.get("shown", ""), since
    )
    if not changes.ended and request.GET.get("seen", "") == changes.seen:
        return HttpResponse(status=204)
    context = {
        "changes": changes,
        "ended_status": StatusLabel("idle", "Ended"),
        "since": since,
        "ended": [
            (f"{row.execution_id}-{row.task}", answer_words(row.execution, row))
            for row in changes.ended
        ],
    }
    return render(request, "tasks/_list_changes.html", context)


def _answer_in_list(request: HttpRequest, scope: Scope) -> HttpResponse:
    """Approve or reject a task after confirmation, and redirect to the list."""
    sent = AnswerForm(request.POST).values
    if sent["act"] in ACTS:
        return answer_many(request, scope, sent["act"], sent["comment"])
    if sent["act"] not in ("approve", "ask-reject", "reject"):
        raise Http404("This list can only approve and reject tasks.")
    approve = sent["act"] == "approve"
    require(scope, "SendTaskSuccess" if approve else "SendTaskFailure")
    number, _, task = sent["task"].partition("-")
    rows = Execution.objects.filter(project=scope.project, pk=whole_number(number) or 0)
    execution = rows.select_related("definition", "runrow").first()
    if execution is None:
        raise Http404("This task does not exist.")
    execution.project = scope.project
    if sent["act"] == "ask-reject":
        return _ask_before_reject(request, execution, sent)
    try:
        answer_task(
            *(execution, whole_number(task) or 0, actor_of(scope)),
            approve=approve,
            comment=sent["comment"],
        )
    except ServiceError as refused:
        messages.error(request, f"{execution.name}: {_refusal(execution, sent, refused)}")
    else:
        done = "approved" if approve else "rejected"
        address = reverse("arn", args=[execution.arn])
        words = 'The task of <a href="{}">{}</a> was {}.'
        messages.success(request, format_html(words, address, visible_text(execution.name), done))
    return redirect(request.get_full_path())


def _refusal(execution: Execution, sent: dict[str, Any], refused: ServiceError) -> str:
    row = manual.find_task(execution, whole_number(sent["task"].partition("-")[2]) or 0)
    return refusal_words(execution, row, refused) if row else refused.message


def _ask_before_reject(
    request: HttpRequest, execution: Execution, sent: dict[str, Any]
) -> HttpResponse:
    """Ask for confirmation: a rejected task fails, which cannot be undone."""
    row = manual.find_task(execution, whole_number(sent["task"].partition("-")[2]) or 0)
    if row is None or not manual.is_answerable(row):
        words = answer_words(execution, row) if row else "This task has ended"
        messages.error(request, f"{execution.name}: {words}.")
        return redirect(request.get_full_path())
    context = {"section": "tasks", "execution": execution, "row": row, "sent": sent}
    return render(request, "tasks/reject.html", context)


@require_http_methods(["GET", "POST"])
def task_page(
    request: HttpRequest, machine_name: str, execution_name: str, number: int
) -> HttpResponse:
    """Show a task with its form; complete it, fail it, or send its heartbeat."""
    scope = scope_of(request)
    execution = scope.execution(machine_name, execution_name)
    row = manual.find_task(execution, number)
    if row is None:
        raise Http404(f"This execution has no task {number}.")
    if request.method == "GET":
        return render_page(request, machine_name, execution, row)
    act = TaskForm(request.POST).values["act"]
    if act not in _ACTIONS:
        return render_page(
            request, machine_name, execution, row, status=422, problem="Choose an action."
        )
    right, done = _ACTIONS[act]
    require(scope, right)
    try:
        token = _run_action(scope, execution, number, act, request)
    except ServiceError as refused:
        row = manual.find_task(execution, number) or row
        problem = refusal_words(execution, row, refused)
        return render_page(
            request, machine_name, execution, row, status=422, problem=problem, act=act
        )
    if token:
        return render_page(request, machine_name, execution, row, token=token)
    messages.success(request, done)
    if act == "heartbeat":
        return redirect(request.get_full_path())
    return redirect(
        f"{reverse('execution', args=[machine_name, execution.name])}{_region_query(scope)}"
    )


def _run_action(
    scope: Scope, execution: Execution, number: int, act: str, request: HttpRequest
) -> str:
    """Run the requested action; return the task token if it is to be shown."""
    sent, by = TaskForm(request.POST).values, actor_of(scope)
    match act:
        case "approve" | "reject":
            answer_task(execution, number, by, approve=act == "approve", comment=sent["comment"])
        case "complete":
            manual.succeed(execution, number, sent["output"], by)
        case "fail":
            manual.fail(execution, number, sent["error"], sent["cause"], by)
        case "heartbeat":
            manual.heartbeat(execution, number, by)
        case _:
            return manual.reveal_token(execution, number, by)
    return ""


def _region_query(scope: Scope) -> str:
    return f"?region={scope.region}" if scope.elsewhere else ""


def _input_view(execution: Execution, row: TaskRow) -> formatting.PayloadView:
    field = "parameters" if row.kind == TaskKind.SERVICE else "input"
    text = masked_execution.masked_execution(execution).of_task(row.task, row.input)
    return formatting.payload_view(text, f"events/{row.task}/{field}/")


def render_page(
    request: HttpRequest,
    machine_name: str,
    execution: Execution,
    row: TaskRow,
    *,
    status: int = 200,
    **more: Any,
) -> HttpResponse:
    """Return the page of a task. ``more``: context that overrides the page's own."""
    sent, scope = TaskForm(request.POST).values, scope_of(request)
    question = question_of(execution, row)
    context = {
        "section": "tasks",
        "execution": execution,
        "machine_name": machine_name,
        "base": reverse("execution", args=[machine_name, execution.name]),
        "task": waiting.open_task(row),
        "input": _input_view(execution, row),
        "output": sent["output"],
        "error": sent["error"],
        "cause_text": sent["cause"],
        "comment": sent["comment"],
        "ended": answer_words(execution, row) if row.status == TaskStatus.CLOSED else "",
        "question": question,
        "commands": cli_commands.task_commands(request, scope),
    }
    for add in hooked(Hook.TASK_PAGE):
        context |= add(scope, question)
    return render(request, "tasks/task.html", context | more, status=status)


def answer_words(execution: Execution, row: TaskRow) -> str:
    """Return who answered a task, and how: "ana approved this task".

    The audit has no ends by a worker, a timeout or a stop of the execution: the words then say only
    that the task has ended.
    """
    reason = f"{row.state}, task {row.task}"
    words = {reason: ""} | {f"{reason}, {word}": word for word in (APPROVED_WORD, REJECTED_WORD)}
    entry = AuditEntry.objects.filter(
        project=execution.project_id, target=execution.arn, action__in=_ANSWERS, reason__in=words
    ).last()
    if entry is None:
        return "This task has ended"
    return f"{entry.actor} {words[entry.reason] or _ANSWERS[entry.action]} this task"


def refusal_words(execution: Execution, row: TaskRow, refused: ServiceError) -> str:
    """Return why an answer was refused; another person answered first if the task is closed."""
    if refused.code not in _CLOSED_CODES:
        return refused.message
    return f"{answer_words(execution, row)}. Your answer changed nothing."


@dataclass(frozen=True, slots=True)
class TaskListChanges:
    """The changes since a list of open tasks was shown.

    ``ended``: the tasks that have ended. ``total``: how many are open. ``new``: how many of them
    were scheduled since.
    """

    ended: tuple[TaskRow, ...]
    total: int
    new: int

    @property
    def seen(self) -> str:
        """Return the state of the list that the reader has after this response."""
        return f"{self.total}-{self.new}"


def list_changes(
    scope: Scope, filters: waiting.TaskFilters, shown: str, since_ms: int
) -> TaskListChanges:
    """Return the changes of a list since a time. ``shown``: task keys, ``7-5,8-5``."""
    keys = {(int(number), int(task)) for number, task in _TASK_KEY.findall(shown)[: waiting.PAGE]}
    rows = TaskRow.objects.filter(
        execution__in={number for number, _ in keys},
        execution__project=scope.project,
        status=TaskStatus.CLOSED,
    )
    ended = rows.select_related("execution").only(*_TASK_COLUMNS) if keys else ()
    every = waiting.open_tasks(scope, filters)
    return TaskListChanges(
        tuple(row for row in ended if (row.execution_id, row.task) in keys),
        every.count(),
        every.filter(scheduled_ms__gt=since_ms).count(),
    )


def input_values(
    project: Project, tasks: Sequence[OpenTask], columns: Mapping[str, PayloadColumn]
) -> dict[str, list[str]]:
    """Return task key -> masked values, in a few queries."""
    if not columns:
        return {}
    return {
        key: [_value_text(text, column.path) for column in columns.values()]
        for key, _, text in _read_inputs(project, tasks)
    }


def _read_inputs(
    project: Project, tasks: Sequence[OpenTask]
) -> Iterator[tuple[str, TaskKind, str]]:
    """Yield key, kind and masked input of each task."""
    if not tasks:
        return
    numbers = {task.row.execution_id for task in tasks}
    executions = {each.pk: each for each in Execution.objects.filter(pk__in=numbers)}
    masks = masked_execution.masked_executions(project, list(executions.values()))
    rows = TaskRow.objects.filter(
        execution_id__in=numbers, task__in={task.row.task for task in tasks}
    ).values_list("execution_id", "task", "kind", "input")
    for number, task, kind, text in rows:
        if number in masks:
            yield f"{number}-{task}", TaskKind(kind), masks[number].of_task(task, text)


# -- without chosen columns ------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class InputField:
    """A short value of an input. ``name``: its path, "" for the whole input."""

    name: str
    value: str


@dataclass(frozen=True, slots=True)
class InputSummary:
    """The short values of an input. ``left_out``: number of further values."""

    fields: tuple[InputField, ...]
    left_out: int = 0


def input_summaries(project: Project, tasks: Sequence[OpenTask]) -> dict[str, InputSummary]:
    """Return task key -> the first short masked values of its input.

    Top-level values come first, then the values one level below. For a callback the input is the
    message sent, without the token.
    """
    return {
        key: _summary(text, is_call=kind is TaskKind.SERVICE)
        for key, kind, text in _read_inputs(project, tasks)
    }


def _summary(text: str, *, is_call: bool) -> InputSummary:
    try:
        value: Any = json.loads(text)
    except (ValueError, RecursionError):
        return InputSummary(())
    value = _message_of(value) if is_call else value
    if not isinstance(value, dict):
        return InputSummary((InputField("", short_text(value)),))
    inner = [
        (f"{name}.{key}", below)
        for name, part in value.items()
        if isinstance(part, dict)
        for key, below in part.items()
    ]
    fields = [
        InputField(visible_text(name), short_text(part))
        for name, part in (*value.items(), *inner)
        if not isinstance(part, dict | list) and part not in (None, "", HIDDEN_TOKEN)
    ]
    return InputSummary(tuple(fields[:MOST_COLUMNS]), max(len(fields) - MOST_COLUMNS, 0))


_MESSAGES = ("MessageBody", "Message", "Payload", "Input", "Detail")
"""The fields with the message in calls of SQS, SNS, Lambda, Step Functions and EventBridge."""


def _message_of(value: Any) -> Any:
    """Return the message that a call sends, else all its parameters."""
    if not isinstance(value, dict):
        return value
    message = next((value[name] for name in _MESSAGES if value.get(name)), value)
    if not isinstance(message, str):
        return message
    try:
        return json.loads(message)
    except (ValueError, RecursionError):
        return message


def _value_text(text: str, path: tuple[str | int, ...]) -> str:
    try:
        return value_text(json.loads(text), path)
    except (ValueError, RecursionError):
        return ""


ACTS = ("ask-many", "approve-many", "reject-many")
MOST = 200
"""The maximum number of tasks in one request."""
_MOST_TOLD = 5


def answer_many(request: HttpRequest, scope: Scope, act: str, comment: str) -> HttpResponse:
    """Answer POSTs of *Open tasks* for several approvals.

    The form has the selected tasks, or one task in ``alike`` for all approvals of the same state
    and state machine. ``ask-many`` shows the page of confirmation. ``approve-many`` and
    ``reject-many`` answer each task in a transaction of its own: a refused answer does not affect
    the others.
    """
    rejects = act == "reject-many"
    require(scope, "SendTaskFailure" if rejects else "SendTaskSuccess")
    alike = request.POST.get("alike", "")
    tasks = (
        _alike(scope, alike) if alike else _chosen_approvals(scope, request.POST.getlist("tasks"))
    )
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
    """Group open approvals by state and state machine; omit groups with a single task.

    Return (state, state machine, count, key of the first task) for each group. The key becomes the
    form's ``alike``.
    """
    offered = [task for task in tasks if task.offered and task.is_approval]
    first = {
        (task.row.state, machine): task.key for task, machine in _name_machines(reversed(offered))
    }
    return [
        (state, machine, count, first[state, machine])
        for state, machine, count in _kinds(offered)
        if count > 1
    ]


def _name_machines(tasks: Iterable[OpenTask]) -> list[tuple[OpenTask, str]]:
    """Return each task with the name of its state machine."""
    return [(task, task.row.execution.state_machine_arn.rpartition(":")[2]) for task in tasks]


def _kinds(tasks: Sequence[OpenTask]) -> list[tuple[str, str, int]]:
    counts = Counter((task.row.state, machine) for task, machine in _name_machines(tasks))
    return [(state, machine, count) for (state, machine), count in counts.items()]


def _chosen_approvals(scope: Scope, keys: Sequence[str]) -> list[OpenTask]:
    """Return the open approvals with these keys."""
    chosen_keys = set(keys[:MOST])
    numbers = {whole_number(key.partition("-")[0]) or 0 for key in chosen_keys}
    rows = waiting.open_tasks(scope, waiting.TaskFilters()).filter(execution__in=numbers)
    tasks = map(waiting.open_task, rows.select_related("execution__definition"))
    return [task for task in tasks if task.key in chosen_keys and task.offered and task.is_approval]


def _alike(scope: Scope, key: str) -> list[OpenTask]:
    """Return the open approvals of a task's state and state machine, oldest first."""
    task = next(iter(_chosen_approvals(scope, [key])), None)
    if task is None:
        return []
    machine = task.row.execution.state_machine_arn
    rows = waiting.open_tasks(scope, waiting.TaskFilters()).filter(
        state=task.row.state, execution__state_machine_arn=machine
    )
    rows = rows.select_related("execution__definition").order_by("scheduled_ms", "execution_id")
    tasks = map(waiting.open_task, rows[:MOST])
    return [task for task in tasks if task.offered and task.is_approval]
