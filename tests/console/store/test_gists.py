"""Does a gist say what the events say, is it there in time, and does it go with them?"""

from __future__ import annotations

import random
import time
from typing import TYPE_CHECKING, Any

import pytest
from django.db import connection, transaction

import engine
from console import clock
from console.models import Execution, Gist, HistoryEvent, Timer
from console.store.db import signals
from console.store.executions import redrive, retention
from console.store.state import history_columns, history_digest
from console.worker.maintenance import Maintenance
from tests.console.store.helpers import PASS, create, drain, ended, start, types

if TYPE_CHECKING:
    from collections.abc import Iterator

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
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let histories be long from ten events on."""
    monkeypatch.setattr(history_digest, "LONG", 10)
    monkeypatch.setattr(history_digest, "STEP", 8)


@pytest.fixture
def told() -> Iterator[list[int]]:
    """Collect the executions whose histories were said to be long."""
    found: list[int] = []
    end = signals.subscribe(("long",), found.append)
    yield found
    end()


@pytest.fixture
def looped(project: Project, small: None) -> Execution:
    """Return a failed execution of a loop, a Map, and a state that cannot be."""
    del small
    return drain(start(create(project, LOOP), TURNS, "x"))


def listed(batches: Any) -> list[tuple[Any, ...]]:
    """Write events out: number, previous, time, type and state, how many items."""
    found: list[tuple[Any, ...]] = []
    for each in batches:
        rows = list(zip(each.previous, each.at_ms, each.kinds, strict=True))
        first = each.last - len(rows) + 1
        found += [
            (number, *row, each.lengths.get(number)) for number, row in enumerate(rows, first)
        ]
    return found


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


def test_it_says_what_the_events_say(looped: Execution) -> None:
    """Whatever part is asked for, from a gist or from the events."""
    every = by_rows(looped)
    assert listed(history_digest.read(looped.pk)) == every
    history_digest.keep(looped.pk)
    assert Gist.objects.get().last == len(every)
    for upto in range(1, len(every) + 1):
        assert listed(history_digest.read(looped.pk, 0, upto)) == every[:upto]
    assert listed(history_digest.read(looped.pk, 7, 12)) == every[7:12]
    assert listed(history_digest.read(looped.pk, len(every))) == []


def test_columns_come_in_order(looped: Execution) -> None:
    """However the rows lie in their table, and whatever the planner knows of it."""
    every = by_rows(looped)
    rows = list(HistoryEvent.objects.filter(execution_id=looped.pk))
    HistoryEvent.objects.filter(execution_id=looped.pk).delete()
    random.Random(4711).shuffle(rows)
    for row in rows:
        row.save(force_insert=True)
    assert listed(filter(None, [history_columns.read(looped.pk)])) == every
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute("ANALYZE")
        assert listed(filter(None, [history_columns.read(looped.pk)])) == every
        transaction.set_rollback(True)  # other tests' planners know nothing of it


def test_names_may_have_the_mark_in_them(looped: Execution) -> None:
    """What the columns are parted by is no trap."""
    HistoryEvent.objects.filter(execution_id=looped.pk, state="Count").update(state="Co\x1fnt")
    assert listed(history_digest.read(looped.pk)) == by_rows(looped)
    history_digest.keep(looped.pk)
    assert listed(history_digest.read(looped.pk)) == by_rows(looped)


def test_what_came_later_is_read_from_the_events(looped: Execution) -> None:
    """A redrive goes on after the gist, which grows when enough has come."""
    history_digest.keep(looped.pk)
    before = Gist.objects.get().last
    redrive.redrive(looped)
    drain(looped)
    every = by_rows(looped)
    assert len(every) > before
    assert listed(history_digest.read(looped.pk)) == every
    body = bytes(Gist.objects.get().body)
    history_digest.keep(looped.pk)  # too little has come
    assert bytes(Gist.objects.get().body) == body
    fold(looped)


def fold(execution: Execution) -> engine.Trace:
    """Return a trace by the gist, which equals one by the events."""
    graph = engine.build_graph(engine.parse(execution.definition.text))
    by_outline, by_events = engine.Trace(graph), engine.Trace(graph)
    for portion in history_digest.read(execution.pk):
        by_outline.take(portion)
    whole: EventBatch | None = history_columns.read(execution.pk)
    assert whole is not None
    by_events.take(whole)
    assert by_outline.counts() == by_events.counts()
    assert by_outline.taken == by_events.taken
    assert by_outline.types == by_events.types
    return by_outline


def test_a_trace_goes_on_after_an_outline(looped: Execution) -> None:
    """Statuses, ways and counts are those of all events."""
    history_digest.keep(looped.pk)
    trace = fold(looped)
    assert trace.last == len(types(looped))
    assert trace.statuses()[trace.graph.by_name["Look"]] == "failed"


def test_long_histories_are_outlined_soon(project: Project, small: None, told: list[int]) -> None:
    """A commit says that one has grown, upkeep does the rest at its next sweep; a step does not."""
    del small
    short = drain(start(create(project, PASS, "short"), name="short"))
    assert told == []
    execution = drain(start(create(project, LOOP), TURNS, "x"))
    assert execution.pk in told
    assert short.pk not in told
    assert not Gist.objects.exists()
    upkeep = Maintenance()
    upkeep.history_grew(execution.pk)
    swept(upkeep)
    assert Gist.objects.get().last == len(types(execution))


def swept(upkeep: Maintenance) -> None:
    """Let upkeep do what it was told of."""
    from console.store.tasks.workers import Share

    upkeep.sweep(Share())
    upkeep.stop(5)


def test_a_worker_keeps_it_by_itself(project: Project, small: None, worker: object) -> None:
    """Whoever looks some seconds after the end finds it there."""
    del small, worker
    execution = ended(start(create(project, LOOP), TURNS, "x"))
    until = time.monotonic() + 20
    while not Gist.objects.filter(last=len(types(execution))).exists():
        assert time.monotonic() < until, "no gist was kept"
        time.sleep(0.05)


def test_a_running_one_is_outlined_as_it_grows(
    project: Project, small: None, told: list[int]
) -> None:
    """Every so many events, not at every commit."""
    del small
    states = {f"S{n}": {"Type": "Wait", "Seconds": 1, "Next": f"S{n + 1}"} for n in range(10)} | {
        "S10": {"Type": "Wait", "Seconds": 3600, "End": True}
    }
    execution = start(create(project, {"StartAt": "S0", "States": states}), name="x")
    for _ in range(11):
        drain(execution)
        Timer.objects.filter(name__isnull=False).update(due_ms=0)
        if len(types(execution)) == 22:
            break
    assert len(types(execution)) == 22  # in the last state
    assert told == [execution.pk]  # at event 16: the eighth is not long yet


def test_who_reads_a_long_one_says_so(looped: Execution, told: list[int]) -> None:
    """What an earlier version wrote gets its gist when somebody has looked."""
    told.clear()
    list(history_digest.read(looped.pk))
    assert told == [looped.pk]
    history_digest.keep(looped.pk)
    list(history_digest.read(looped.pk))
    assert told == [looped.pk]


def test_it_goes_with_its_execution(looped: Execution) -> None:
    """Nothing is left of it, and what was removed meanwhile gets none."""
    history_digest.keep(looped.pk)
    assert Gist.objects.exists()
    assert retention.prune(retention.Scope(clock.now_ms() + 1000)).executions == 1
    history_digest.keep(looped.pk)
    assert not Gist.objects.exists()


def test_short_ones_have_none(project: Project) -> None:
    """A row is kept for those only that take long to read."""
    execution = drain(start(create(project, PASS)))
    history_digest.keep(execution.pk)
    assert not Gist.objects.exists()
