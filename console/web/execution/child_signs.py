"""Mark Tasks that started child executions in the graph, with a link to these."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from django.urls import reverse

from console.models import Execution, TaskRow
from console.web.core import formatting
from console.web.execution import parent_execution

if TYPE_CHECKING:
    from engine import Trace

MOST = 1_000
"""How many children, the newest ones, the graph looks at."""
_COLUMNS = ("arn", "state_machine_arn", "name", "status", "start_ms", "parent_task")


@dataclass(frozen=True, slots=True)
class ChildSign:
    """A link to the started execution, or to the tree of several."""

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
    calls = parent_execution.calls_that_did_not_wait([execution.pk] if loose else [])
    others = calls.get(execution.pk, ())
    return [
        parent_execution.only_state_at(others, child.start_ms)
        if child.parent_task is None
        else states.get(child.parent_task, "")
        for child in children
    ]


def _sign_of(execution: Execution, started: list[Execution]) -> ChildSign:
    child = started[0]
    if len(started) == 1:
        machine = child.state_machine_arn.rpartition(":")[2]
        status = formatting.EXECUTION[child.status].word.lower()
        label = f"Child execution {machine}: {child.name}, {status}"
        address = reverse("arn", args=[child.arn])
        return ChildSign(address, formatting.visible_text(label), "1 child execution")
    machine = execution.state_machine_arn.rpartition(":")[2].replace("/", "~")
    address = reverse("family", args=[machine, execution.name])
    words = f"{len(started):,} child executions"
    address += f"?region={execution.arn.split(':')[3]}"
    return ChildSign(address, f"{words}, in the execution tree", words)
