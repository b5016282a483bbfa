"""Find the parent of an execution, and mark Tasks that started child executions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from django.urls import reverse

from console.feature import has_feature
from console.models import Execution, TaskRow
from console.store.tasks.schedule import NESTED
from console.web.core import formatting
from engine import IntegrationPattern

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from engine import Trace


MOST = 1_000
"""The number of latest children that the graph reads."""
_COLUMNS = ("arn", "state_machine_arn", "name", "status", "start_ms", "parent_task")


@dataclass(frozen=True, slots=True)
class ChildSign:
    """A link to the child execution; of several, to their tree or to the newest."""

    href: str
    label: str
    words: str


def child_signs(execution: Execution, trace: Trace) -> dict[str, ChildSign]:
    """Return node id -> sign; two queries, none if no executed Task starts executions."""
    starting = [
        node.id
        for node in trace.graph.nodes
        if node.type == "Task" and "startExecution" in node.text and trace.visits_of(node.id)
    ]
    if not starting or execution.imported_ms is not None:
        return {}
    rows = Execution.objects.filter(project=execution.project_id, parent=execution.pk)
    children: dict[str, list[Execution]] = {}
    newest = list(rows.only(*_COLUMNS).order_by("-pk")[:MOST])
    for child, state in zip(newest, _states_of(execution, newest), strict=True):
        node = trace.graph.by_name.get(state, "")
        if node in starting:
            children.setdefault(node, []).append(child)
    return {node: _sign_of(execution, started) for node, started in children.items()}


def _states_of(execution: Execution, children: list[Execution]) -> list[str]:
    """Return the state that started each child, "" if ambiguous."""
    tasks = [child.parent_task for child in children if child.parent_task is not None]
    rows = TaskRow.objects.filter(execution_id=execution.pk, task__in=tasks)
    states = dict(rows.values_list("task", "state")) if tasks else {}
    loose = len(tasks) < len(children)
    calls = calls_that_did_not_wait([execution.pk] if loose else [])
    others = calls.get(execution.pk, ())
    return [
        only_state_at(others, child.start_ms)
        if child.parent_task is None
        else states.get(child.parent_task, "")
        for child in children
    ]


def _sign_of(execution: Execution, started: list[Execution]) -> ChildSign:
    child = started[0]
    words = f"{len(started):,} child executions"
    if len(started) == 1 or not has_feature("execution_tree"):
        machine = child.state_machine_arn.rpartition(":")[2]
        status = formatting.EXECUTION[child.status].word.lower()
        label = f"Child execution {machine}: {child.name}, {status}"
        address = reverse("arn", args=[child.arn])
        if len(started) == 1:
            words = "1 child execution"
        else:
            label += f"; the newest of {words}"
        return ChildSign(address, formatting.visible_text(label), words)
    machine = execution.state_machine_arn.rpartition(":")[2].replace("/", "~")
    address = reverse("family", args=[machine, execution.name])
    address += f"?region={execution.arn.split(':')[3]}"
    return ChildSign(address, f"{words}, in the execution tree", words)


_MOST_CALLS = 1_000
"""The number of calls searched for the call that started a child without waiting for it."""


class StartCall(NamedTuple):
    """A Task call that started an execution. ``closed_ms``: None while it is open."""

    state: str
    scheduled_ms: int
    closed_ms: int | None


@dataclass(frozen=True, slots=True)
class ParentExecution:
    """The parent of an execution. ``state``: the starting state, "" if ambiguous."""

    execution: Execution
    state: str


def parent_of(execution: Execution) -> ParentExecution | None:
    """Return the parent of an execution, None without one or if deleted."""
    run = execution.map_run
    number = run.parent_id if run else execution.parent
    if number is None:
        return None
    rows = Execution.stored.filter(project=execution.project_id, pk=number)
    parent = rows.only("arn", "name", "state_machine_arn", "imported_ms", "status").first()
    if parent is None:
        return None
    task = run.task if run else execution.parent_task
    return ParentExecution(parent, _state_of_call(parent, execution, task))


def _state_of_call(parent: Execution, child: Execution, task: int | None) -> str:
    if task is not None:
        calls = TaskRow.objects.filter(execution_id=parent.pk, task=task)
        return calls.values_list("state", flat=True).first() or ""
    calls_by_parent = calls_that_did_not_wait([parent.pk])
    return only_state_at(calls_by_parent.get(parent.pk, ()), child.start_ms)


def calls_that_did_not_wait(parents: Collection[int]) -> dict[int, list[StartCall]]:
    """Return execution id -> its calls that started executions without waiting.

    One query, none for no executions. A child of such a call does not know its task.
    """
    calls: dict[int, list[StartCall]] = {}
    if not parents:
        return calls
    rows = TaskRow.objects.filter(
        execution_id__in=parents, service__in=NESTED, action="startExecution"
    ).exclude(pattern__in=(IntegrationPattern.SYNC, IntegrationPattern.SYNC_2))
    columns = rows.values_list("execution_id", "state", "scheduled_ms", "closed_ms")
    for number, state, begun, closed in columns.order_by("execution_id", "task")[:_MOST_CALLS]:
        calls.setdefault(number, []).append(StartCall(state, begun, closed))
    return calls


def only_state_at(calls: Iterable[StartCall], start_ms: int) -> str:
    """Return the state whose call started an execution at a time, "" if ambiguous.

    A call begins before its child, and is over after that.
    """
    states = {
        call.state
        for call in calls
        if call.scheduled_ms <= start_ms and (call.closed_ms is None or call.closed_ms >= start_ms)
    }
    return states.pop() if len(states) == 1 else ""
