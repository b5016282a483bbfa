"""Store the inputs of a Map Run's children, and collect their results.

An input is a row until its child starts, so a Map of any length needs memory for a few items only.
"""

from __future__ import annotations

import functools
import itertools
import json
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from django.db import connection
from django.db.models import Case, When

import engine
from console.db import rows, signals
from console.db.writer import write
from console.models import Execution, MapItem, MapRun, TaskRow
from console.statuses import (
    UNSUCCESSFUL,
    ExecutionStatus,
    MapRunStatus,
    RedriveStatus,
    Topic,
)
from console.store.executions import redrive

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

AT_ONCE = 500
"""Inputs written in one transaction."""
_READ_AT_ONCE = 50
_COLUMNS = "map_run_id, item_index, input"
_TAKE = (
    "SELECT item_index, input FROM console_mapitem"
    " WHERE map_run_id = %s AND item_index >= %s AND item_index < %s ORDER BY item_index"
)
_DROP = "DELETE FROM console_mapitem WHERE map_run_id = %s AND item_index >= %s AND item_index < %s"


@dataclass(frozen=True, slots=True)
class Outside:
    """I/O of a Map Run outside of the database: items to read, or results to write.

    ``part``: the settings of its reader or its writer, from the engine.
    """

    map_run: int
    arn: str
    execution_id: int
    execution_arn: str
    task: int
    part: dict[str, Any]


# -- inputs ----------------------------------------------------------------------------------------


def add_items(map_run_id: int, first: int, texts: Iterable[str]) -> int:
    """Write inputs from an index on (inside a transaction); return how many."""
    values = [(map_run_id, first + offset, text) for offset, text in enumerate(texts)]
    rows.append("console_mapitem", _COLUMNS, values)
    return len(values)


def take_items(map_run_id: int, first: int, count: int) -> list[tuple[int, str]]:
    """Return (index, input) of the next children and delete the rows (inside a transaction)."""
    span = [map_run_id, first, first + count]
    with connection.cursor() as cursor:
        cursor.execute(_TAKE, span)
        items: list[tuple[int, str]] = cursor.fetchall()
        cursor.execute(_DROP, span)
    return items


def complete_reading(map_run_id: int, total: int) -> None:
    """Record that all inputs are stored (inside a transaction)."""
    MapRun.objects.filter(pk=map_run_id).update(total=total, reading=False)


def store_items(map_run_id: int, texts: Iterable[str]) -> None:
    """Write all inputs in batches, after deleting those of an earlier attempt."""
    write(lambda: MapItem.objects.filter(map_run_id=map_run_id).delete())
    source, total = iter(texts), 0
    while batch := list(itertools.islice(source, AT_ONCE)):
        total += write(lambda batch=batch, total=total: add_items(map_run_id, total, batch))  # type: ignore[misc]
    write(lambda: complete_reading(map_run_id, total))
    signals.publish((Topic.MAP_RUN,), map_run_id)


def batch_sizes(run: MapRun, children: Iterable[int]) -> dict[int, int]:
    """Return child id -> number of items in its batch; {} if the Map makes no batches."""
    if not makes_batches(run):
        return {}
    inputs = Execution.objects.filter(pk__in=children).values_list("pk", "input")
    return {number: _size(text) for number, text in inputs}


def items_by_status(run: MapRun) -> Counter[str] | None:
    """Return status -> number of items in batches of such children; None without batches.

    "PENDING": of children that have not started. Reads every batch, which may be slow.
    """
    if not makes_batches(run):
        return None
    by_status: Counter[str] = Counter()
    children = Execution.objects.filter(map_run=run).order_by()
    waits = Case(When(redrive.waiting_children(run), then=True), default=False)
    read = children.annotate(waits=waits).values_list("status", "waits", "input")
    for status, is_waiting, text in read.iterator(chunk_size=_READ_AT_ONCE):
        by_status[ExecutionStatus.PENDING_REDRIVE if is_waiting else status] += _size(text)
    waiting = MapItem.objects.filter(map_run=run).values_list("input", flat=True)
    by_status["PENDING"] = sum(map(_size, waiting.iterator(chunk_size=_READ_AT_ONCE)))
    return by_status


def count_bad_items(run: MapRun, bad: int) -> int:
    """Return the number of items in the children that failed; ``bad``: the number of these."""
    if not _makes_batches(run.arn):
        return bad
    children = Execution.objects.filter(map_run=run, status__in=UNSUCCESSFUL)
    waiting = redrive.waiting_children(run)
    return sum(map(_batch_size, children.exclude(waiting).values_list("arn", flat=True)))


@functools.lru_cache(maxsize=1_000)
def _makes_batches(arn: str) -> bool:
    """Return what ``makes_batches`` does, of a Map Run by its ARN: its definition is read once."""
    return makes_batches(MapRun.objects.select_related("parent__definition").get(arn=arn))


@functools.lru_cache(maxsize=10_000)
def _batch_size(child: str) -> int:
    """Return the number of items of a child by its ARN; its input never changes."""
    return _size(Execution.objects.values_list("input", flat=True).get(arn=child))


def _size(batch: str) -> int:
    return len(json.loads(batch)["Items"])


def makes_batches(run: MapRun) -> bool:
    """Return whether the children of a run get batches of items."""
    state_name = TaskRow.objects.values_list("state", flat=True).get(
        execution_id=run.parent_id, task=run.task
    )
    definition = _state(json.loads(run.parent.definition.text), state_name)
    return definition is not None and "ItemBatcher" in definition


def _state(block: dict[str, Any], name: str) -> dict[str, Any] | None:
    """Return a state of a definition by its name, at any depth."""
    states: dict[str, Any] = block.get("States", {})
    if name in states:
        return dict(states[name])
    for state in states.values():
        blocks = (state.get("ItemProcessor"), state.get("Iterator"), *state.get("Branches", ()))
        for inner in filter(None, blocks):
            nested = _state(inner, name)
            if nested is not None:
                return nested
    return None


# -- outside ---------------------------------------------------------------------------------------


def to_read(map_run_id: int) -> Outside | None:
    """Return the items that a Map Run still has to read, None if there are none."""
    run = (
        MapRun.objects.select_related("parent")
        .filter(pk=map_run_id, status=MapRunStatus.RUNNING)
        .first()
    )
    return _outside(run, "reader") if run is not None and run.reading else None


def to_write(map_run_id: int) -> Outside | None:
    """Return where to write the results; None before the children have ended, or without one."""
    run = (
        MapRun.objects.select_related("parent")
        .filter(pk=map_run_id, status=MapRunStatus.RUNNING)
        .first()
    )
    if run is None or run.reading:
        return None
    ended = run.succeeded + run.failed + run.timed_out + run.aborted
    return writer(run) if ended == run.total else None


def writer(run: MapRun) -> Outside | None:
    """Return where to write the results, None if they are the Map's own result."""
    target = _outside(run, "writer")
    return target if target is not None and target.part.get("resource") else None


def transformation_of(run: MapRun) -> str:
    """Return the transformation of the Map's own result, of WriterConfig.

    COMPACT: the outputs of the children. FLATTEN: the elements of their arrays. NONE: full
    descriptions of the children.
    """
    target = _outside(run, "writer")
    config = {} if target is None else target.part.get("config") or {}
    return str(config.get("Transformation", "COMPACT"))


def _outside(run: MapRun, name: str) -> Outside | None:
    text = TaskRow.objects.filter(execution_id=run.parent_id, task=run.task).values_list("input")
    part = json.loads(text.get()[0]).get(name)
    if part is None:
        return None
    return Outside(run.pk, run.arn, run.parent_id, run.parent.arn, run.task, part)


def describe_child(child: Execution) -> dict[str, Any]:
    """Return a child's description in the results of a Map Run."""
    texts = {"Output": child.output, "Error": child.error, "Cause": child.cause}
    ended = child.status not in UNSUCCESSFUL
    redrive = RedriveStatus.NOT_REDRIVABLE if ended else RedriveStatus.REDRIVABLE_BY_MAP_RUN
    reason = f"Execution is {child.status} and cannot be redriven"
    return {
        "ExecutionArn": child.arn,
        "Input": child.input,
        "InputDetails": {"Included": True},
        "Name": child.name,
        **{name: text for name, text in texts.items() if text is not None},
        **({"OutputDetails": {"Included": True}} if child.output is not None else {}),
        "RedriveCount": child.redrive_count,
        "RedriveStatus": redrive,
        **({"RedriveStatusReason": reason} if ended else {}),
        "StartDate": engine.iso_text(child.start_ms),
        **({"StopDate": engine.iso_text(child.stop_ms)} if child.stop_ms is not None else {}),
        "StateMachineArn": child.state_machine_arn,
        "Status": child.status,
    }


def list_results(map_run_id: int, statuses: Iterable[str]) -> Iterator[Execution]:
    """Yield the children with one of these statuses, by item, in batches."""
    children = Execution.objects.filter(map_run_id=map_run_id, status__in=list(statuses))
    return children.order_by("item_index").iterator(chunk_size=_READ_AT_ONCE)
