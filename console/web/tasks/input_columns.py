"""Show values of the tasks' inputs as columns of a list, each chosen by a path."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from console.masking import masked_execution
from console.models import Execution, TaskRow
from console.web.core.formatting import visible_text
from console.web.search.query_parser import parse_path

if TYPE_CHECKING:
    from collections.abc import Sequence

    from console.models import Project
    from console.web.execution.waiting import OpenTask

MOST_COLUMNS = 5
_LONGEST = 120


def read_columns(text: str) -> tuple[dict[str, tuple[str | int, ...]], str]:
    """Return path as typed -> its steps, and what is wrong with one, "" if nothing is.

    ``text``: paths with commas between them, such as ``order.id, items[0].sku``.
    """
    columns: dict[str, tuple[str | int, ...]] = {}
    for typed in filter(None, (part.strip() for part in text.split(","))):
        try:
            columns[typed] = parse_path(typed)
        except ValueError as problem:
            return {}, str(problem)
    if len(columns) > MOST_COLUMNS:
        return {}, f"Got {len(columns)} columns, wanted {MOST_COLUMNS} at most."
    return columns, ""


def input_values(
    project: Project, tasks: Sequence[OpenTask], columns: dict[str, tuple[str | int, ...]]
) -> dict[str, list[str]]:
    """Return key of a task -> its values as they may be read, in a few queries."""
    if not columns or not tasks:
        return {}
    numbers = {task.row.execution_id for task in tasks}
    executions = {each.pk: each for each in Execution.objects.filter(pk__in=numbers)}
    masks = masked_execution.masked_executions(project, list(executions.values()))
    rows = TaskRow.objects.filter(
        execution_id__in=numbers, task__in={task.row.task for task in tasks}
    ).values_list("execution_id", "task", "input")
    return {
        f"{number}-{task}": [
            _value_text(masks[number].of_task(task, text), path) for path in columns.values()
        ]
        for number, task, text in rows
        if number in masks
    }


def _value_text(text: str, path: tuple[str | int, ...]) -> str:
    try:
        value: Any = json.loads(text)
        for step in path:
            if isinstance(value, list) != isinstance(step, int):
                return ""
            value = value[step]
    except (ValueError, LookupError, TypeError, RecursionError):
        return ""
    shown = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    shown = visible_text(" ".join(shown.split()))
    return shown if len(shown) <= _LONGEST else f"{shown[: _LONGEST - 1]}…"
