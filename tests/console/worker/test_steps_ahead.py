"""While a step is being committed the next one is computed, and dropped if the commit fails."""

from __future__ import annotations

import json
import threading
from typing import TYPE_CHECKING, Any

import pytest

from console.db import writer
from console.models import HistoryEvent
from console.store.executions import step
from console.worker.stepping import Stepping
from tests.console.store.helpers import assert_nothing_wrong, create, drain, start, types

if TYPE_CHECKING:
    from collections.abc import Callable

    from console.models import Execution, Project

pytestmark = pytest.mark.django_db(transaction=True)
PASSES = 40
CHAIN = {
    "StartAt": "S0",
    "States": {
        **{f"S{n}": {"Type": "Pass", "Next": f"S{n + 1}"} for n in range(PASSES - 1)},
        f"S{PASSES - 1}": {"Type": "Pass", "End": True},
    },
}
EACH = {
    "StartAt": "A",
    "States": {"A": {"Type": "Pass", "Next": "B"}, "B": {"Type": "Pass", "End": True}},
}
MAP = {"StartAt": "M", "States": {"M": {"Type": "Map", "ItemProcessor": EACH, "End": True}}}


@pytest.fixture(autouse=True)
def short_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a step enter five states at most, and a run go on for as long as it can."""
    monkeypatch.setattr(step, "most_states", lambda: 5)
    monkeypatch.setattr(step, "_FRESH_S", 600.0)


@pytest.fixture
def loads(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Return the executions whose rows have been read."""
    read: list[int] = []
    load_step = step.load_step

    def noted(number: int, rows: Any = None) -> step.Loaded | None:
        read.append(number)
        return load_step(number, rows)

    monkeypatch.setattr(step, "load_step", noted)
    return read


def steps_of() -> Stepping:
    """Return what steps executions on this thread."""
    return Stepping(threading.Event(), lambda: None)


def interfere(
    monkeypatch: pytest.MonkeyPatch, act: Callable[[], object], *, at: int
) -> Callable[[], int]:
    """Act before the commit of this number; return how many there have been."""
    begin, count = writer.Change.begin, 0

    def acting(change: writer.Change[Any]) -> None:
        nonlocal count
        count += 1
        if count == at:
            act()
        begin(change)

    monkeypatch.setattr(writer.Change, "begin", acting)
    return lambda: count


def assert_ran_once(execution: Execution) -> None:
    """Check that each state stands once in a whole history."""
    events = HistoryEvent.objects.filter(execution=execution).order_by("event_id")
    assert [event.event_id for event in events] == list(range(1, 2 * PASSES + 3))
    entered = [event.state for event in events if event.type == "PassStateEntered"]
    assert entered == [f"S{number}" for number in range(PASSES)]
    assert_nothing_wrong()


def test_a_run_is_read_once_for_many_commits(
    project: Project, monkeypatch: pytest.MonkeyPatch, loads: list[int]
) -> None:
    """Nobody else has touched it, so what the last commit made is what a reader would find."""
    execution = start(create(project, CHAIN))
    commits = interfere(monkeypatch, lambda: None, at=0)
    steps_of().work(execution.pk)
    assert commits() >= PASSES / 5
    assert loads == [execution.pk]
    assert_ran_once(execution)


def test_what_follows_a_fenced_step_is_dropped(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    """1. A computes versions 1 and 2.  2. B commits version 1.  3. A's version 1 is fenced.

    Its version 2 would find a version 1, and must not be tried.
    """
    execution = start(create(project, CHAIN))
    commits = interfere(monkeypatch, lambda: step.step_execution(execution.pk), at=1)
    steps = steps_of()
    steps.work(execution.pk)
    assert (steps.fenced, commits()) == (1, 2)
    drain(execution)
    assert_ran_once(execution)


def test_the_rows_are_read_again_after_a_while(
    project: Project, monkeypatch: pytest.MonkeyPatch, loads: list[int]
) -> None:
    """However long a run goes on, somebody may have sent it a message."""
    monkeypatch.setattr(step, "_FRESH_S", -1.0)
    execution = start(create(project, CHAIN))
    commits = interfere(monkeypatch, lambda: None, at=0)
    steps = steps_of()
    for number in range(1, 4):
        steps.work(execution.pk)
        assert (len(loads), commits()) == (number, number)
    drain(execution)
    assert_ran_once(execution)


def test_values_of_a_commit_under_way_are_read(project: Project, loads: list[int]) -> None:
    """Items of a Map are kept by one step and read by the next."""
    execution = start(create(project, MAP), list(range(30)))
    steps_of().work(execution.pk)
    execution.refresh_from_db()
    assert execution.status == "SUCCEEDED"
    assert json.loads(str(execution.output)) == list(range(30))
    assert loads == [execution.pk]
    assert types(execution).count("MapIterationSucceeded") == 30
    assert_nothing_wrong()
