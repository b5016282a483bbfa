"""Show values of inputs and outputs as list columns, by typed paths."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, NamedTuple

from console.masking import masked_execution
from console.models import Execution
from console.web.core.formatting import visible_text
from console.web.search.query_parser import parse_path

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from console.models import Project

MOST_COLUMNS = 5
_LONGEST, _LONGEST_PATHS = 120, 400
_OUTPUT = "output"


class PayloadColumn(NamedTuple):
    """A column. ``path``: the steps to its value, () for the whole payload."""

    of_output: bool
    path: tuple[str | int, ...]


def read_columns(text: str, *, outputs: bool = False) -> tuple[dict[str, PayloadColumn], str]:
    """Return typed path -> column, and the problem with them, "" without one.

    ``text``: paths with commas between them, such as ``order.id, items[0].sku``. ``outputs``: a
    path that begins with ``output`` is one of the output, else all are of the input.
    """
    if len(text) > _LONGEST_PATHS:
        return {}, f"The columns are longer than {_LONGEST_PATHS} characters."
    columns: dict[str, PayloadColumn] = {}
    for typed in filter(None, (part.strip() for part in text.split(","))):
        try:
            columns[typed] = _read_column(typed, outputs=outputs)
        except ValueError as problem:
            return {}, str(problem)
    if len(columns) > MOST_COLUMNS:
        return {}, f"{len(columns)} columns are too many. Select up to {MOST_COLUMNS}."
    return columns, ""


def _read_column(typed: str, *, outputs: bool) -> PayloadColumn:
    if outputs and typed in ("input", _OUTPUT):
        return PayloadColumn(typed == _OUTPUT, ())
    rest = typed.removeprefix(_OUTPUT)
    if outputs and rest != typed and rest.startswith((".", "[")):
        return PayloadColumn(True, parse_path(rest))
    return PayloadColumn(False, parse_path(typed))


def column_values(
    project: Project, executions: Sequence[Execution], columns: Mapping[str, PayloadColumn]
) -> dict[int, list[str]]:
    """Return execution id -> values as their reader may see them, in a fixed number of queries.

    A path without a value, and an output that is not there yet, have an empty text.
    """
    if not columns or not executions:
        return {}
    numbers = [execution.pk for execution in executions]
    masks = masked_execution.masks_of(project, numbers)
    sources = [
        name
        for name, of_output in (("input", False), (_OUTPUT, True))
        if any(column.of_output is of_output for column in columns.values())
    ]
    values = {number: [""] * len(columns) for number in numbers}
    rows = Execution.stored.filter(pk__in=numbers).order_by().values("pk", *sources)
    for row in rows.iterator(chunk_size=10):  # each may have half a megabyte
        mask = masks[row["pk"]]
        payloads = {name: _read_json(mask.payload(row[name])) for name in sources if row[name]}
        values[row["pk"]] = [
            _value_text(payloads, _OUTPUT if column.of_output else "input", column.path)
            for column in columns.values()
        ]
    return values


def _read_json(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):  # an import may have anything
        return text


def _value_text(payloads: Mapping[str, Any], source: str, path: tuple[str | int, ...]) -> str:
    return value_text(payloads[source], path) if source in payloads else ""


def value_text(value: Any, path: tuple[str | int, ...]) -> str:
    """Return the value at a path as a short line, "" if there is none."""
    for step in path:
        if isinstance(value, list) != isinstance(step, int):
            return ""
        try:
            value = value[step]
        except (LookupError, TypeError):
            return ""
    return short_text(value)


def short_text(value: Any) -> str:
    """Return a JSON value as a line of at most 120 characters."""
    shown = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    shown = visible_text(" ".join(shown.split()))
    return shown if len(shown) <= _LONGEST else f"{shown[: _LONGEST - 1]}…"
