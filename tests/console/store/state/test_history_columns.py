"""Reading a history as columns gives what its rows have."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Any

import pytest
from django.db import connection, transaction

import engine
from console.models import Execution, HistoryEvent
from console.store.executions import redrive
from console.store.state import history_columns
from tests.console.store.helpers import create, drain, start, types

if TYPE_CHECKING:
    from collections.abc import Iterable

    from console.models import Project
    from engine import EventBatch

LOOP = {
    "StartAt": "Count",
    "States": {
        "Count": {
            "Type": "Pass",
            "Parameters": {"n.$": "States.MathAdd($.n, 1)", "most.$": "$.most"},
            "Next": "More",
        },
        "More": {
            "Type": "Choice",
            "Choices": [
                {"Variable": "$.n", "NumericLessThanPath": "$.most", "Next": "Count"},
                {"Variable": "$.n", "NumericGreaterThan": 100, "Next": "Look"},
            ],
            "Default": "Each",
        },
        "Each": {
            "Type": "Map",
            "ItemsPath": "$$.Execution.Input.items",
            "ItemProcessor": {"StartAt": "In", "States": {"In": {"Type": "Pass", "End": True}}},
            "Next": "Look",
        },
        "Look": {"Type": "Pass", "InputPath": "$.nothing", "End": True},
    },
}
TURNS: dict[str, Any] = {"n": 0, "most": 5, "items": [1, 2]}


@pytest.fixture
def looped(project: Project) -> Execution:
    """Return a failed execution of a loop, a Map, and a state that cannot be."""
    return drain(start(create(project, LOOP), TURNS, "x"))


def listed(batches: Iterable[EventBatch]) -> list[tuple[Any, ...]]:
    """Write events out: number, previous, time, type and state, how many items."""
    listing: list[tuple[Any, ...]] = []
    for each in batches:
        rows = list(zip(each.previous, each.at_ms, each.kinds, strict=True))
        first = each.last - len(rows) + 1
        listing += [
            (number, *row, each.numbers.get(number)) for number, row in enumerate(rows, first)
        ]
    return listing


def by_rows(execution: Execution) -> list[tuple[Any, ...]]:
    """Write events out as the table has them."""
    rows = HistoryEvent.objects.filter(execution_id=execution.pk).order_by("event_id")
    length = len(TURNS["items"])
    return [
        (
            *(row.event_id, row.previous, row.at_ms, (row.type, row.state)),
            length if row.type == "MapStateStarted" else None,
        )
        for row in rows
    ]


def read(execution: Execution, *bounds: int) -> list[tuple[Any, ...]]:
    """Read events as columns and write them out."""
    return listed(filter(None, [history_columns.read_batch(execution.pk, *bounds)]))


def test_columns_say_what_the_rows_say(looped: Execution) -> None:
    """For the whole history, its beginnings and its parts."""
    every = by_rows(looped)
    assert read(looped) == every
    for upto in range(1, len(every) + 1):
        assert read(looped, 0, upto) == every[:upto]
    assert read(looped, 7, 12) == every[7:12]
    assert read(looped, len(every)) == []


def test_columns_come_in_order(looped: Execution) -> None:
    """However the rows lie in their table, and whatever the planner knows of it."""
    every = by_rows(looped)
    rows = list(HistoryEvent.objects.filter(execution_id=looped.pk))
    HistoryEvent.objects.filter(execution_id=looped.pk).delete()
    random.Random(4711).shuffle(rows)
    for row in rows:
        row.save(force_insert=True)
    assert read(looped) == every
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute("ANALYZE")
        assert read(looped) == every
        transaction.set_rollback(True)  # other tests' planners know nothing of it


def test_names_may_have_the_mark_in_them(looped: Execution) -> None:
    """A state's name may contain the separator of the joined columns."""
    HistoryEvent.objects.filter(execution_id=looped.pk, state="Count").update(state="Co\x1fnt")
    assert read(looped) == by_rows(looped)


def test_what_came_later_is_read_alone(looped: Execution) -> None:
    """A redrive goes on after the events read before; a trace fed in parts equals a whole one."""
    before = len(types(looped))
    first = history_columns.read_batch(looped.pk)
    redrive.redrive_execution(looped)
    drain(looped)
    later, whole = (
        history_columns.read_batch(looped.pk, before),
        history_columns.read_batch(looped.pk),
    )
    assert first is not None
    assert later is not None
    assert whole is not None
    graph = engine.build_graph(engine.parse(looped.definition.text))
    by_parts, at_once = engine.Trace(graph), engine.Trace(graph)
    by_parts.take(first)
    by_parts.take(later)
    at_once.take(whole)
    assert by_parts.last == at_once.last == len(types(looped)) > before
    assert by_parts.counts() == at_once.counts()
    assert by_parts.taken == at_once.taken
    assert by_parts.types == at_once.types
    assert by_parts.statuses()[graph.by_name["Look"]] == "failed"
