"""Show values of task inputs as list columns: the first short ones, or selected paths."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from console.masking import masked_execution
from console.masking.token_display import HIDDEN
from console.models import Execution, TaskRow
from console.statuses import TaskKind
from console.web.core.formatting import visible_text
from console.web.search.query_parser import parse_path

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from console.models import Project
    from console.web.execution.waiting import OpenTask

MOST_COLUMNS = 5
_LONGEST = 120


def read_columns(text: str) -> tuple[dict[str, tuple[str | int, ...]], str]:
    """Return typed path -> its steps, and the error in one, "" without.

    ``text``: paths with commas between them, such as ``order.id, items[0].sku``.
    """
    columns: dict[str, tuple[str | int, ...]] = {}
    for typed in filter(None, (part.strip() for part in text.split(","))):
        try:
            columns[typed] = parse_path(typed)
        except ValueError as problem:
            return {}, str(problem)
    if len(columns) > MOST_COLUMNS:
        return {}, f"{len(columns)} columns are too many. Select up to {MOST_COLUMNS}."
    return columns, ""


def input_values(
    project: Project, tasks: Sequence[OpenTask], columns: dict[str, tuple[str | int, ...]]
) -> dict[str, list[str]]:
    """Return task key -> masked values, in a few queries."""
    if not columns:
        return {}
    return {
        key: [_value_text(text, path) for path in columns.values()]
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

    Top-level values come first, then those one level below. For a callback the input is the message
    sent, without the token.
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
        return InputSummary((InputField("", _short_text(value)),))
    inner = [
        (f"{name}.{key}", below)
        for name, part in value.items()
        if isinstance(part, dict)
        for key, below in part.items()
    ]
    fields = [
        InputField(visible_text(name), _short_text(part))
        for name, part in (*value.items(), *inner)
        if not isinstance(part, dict | list) and part not in (None, "", HIDDEN)
    ]
    return InputSummary(tuple(fields[:MOST_COLUMNS]), max(len(fields) - MOST_COLUMNS, 0))


_MESSAGES = ("MessageBody", "Message", "Payload", "Input", "Detail")
"""The fields of calls that hold what is sent, of SQS, SNS, Lambda, Step Functions, EventBridge."""


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
        value: Any = json.loads(text)
        for step in path:
            if isinstance(value, list) != isinstance(step, int):
                return ""
            value = value[step]
    except (ValueError, LookupError, TypeError, RecursionError):
        return ""
    return _short_text(value)


def _short_text(value: Any) -> str:
    shown = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    shown = visible_text(" ".join(shown.split()))
    return shown if len(shown) <= _LONGEST else f"{shown[: _LONGEST - 1]}…"
