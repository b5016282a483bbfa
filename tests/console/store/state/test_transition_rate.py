"""A limit of state transitions holds to the token, and loses nothing."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import pytest

import engine
from console.config import quotas
from console.db.writer import write
from console.models import HistoryEvent, RunRow, TaskRow, ThrottledMinute, TokenBucket
from console.store.executions import step
from console.store.state import throttle, transition_rate
from console.store.tasks import complete
from console.worker import Embedded
from tests.console.store.helpers import (
    PASS,
    assert_nothing_wrong,
    create,
    drain,
    ended,
    function,
    renamed,
    start,
    types,
)
from tests.console.transition_rates import Clock, chain, entered, held, left

if TYPE_CHECKING:
    from console.models import Project


def test_without_the_setting_nothing_is_counted(project: Project) -> None:
    """Off by default: no bucket, no row, no wait."""
    assert drain(start(create(project, chain(50)))).status == "SUCCEEDED"
    assert not TokenBucket.objects.exists()
    assert not ThrottledMinute.objects.exists()


def test_what_has_no_tokens_goes_on_when_they_come(
    project: Project, limit: Any, now: Clock
) -> None:
    """Two states at once, then one a second; each wait is a timer in a row, and is counted."""
    limit(2, 1)
    machine = create(project, chain(5))
    execution = start(machine)
    drain(execution)
    for number in (2, 3, 4):
        assert entered(execution) == number
        assert held(execution) == ["transitions/1"]
        assert not RunRow.objects.get(execution=execution).ready
        assert_nothing_wrong()
        now.later(0.9)
        drain(execution)
        assert entered(execution) == number
        now.later(0.101)
        drain(execution)
    now.later(1)
    assert drain(execution).status == "SUCCEEDED"
    assert entered(execution) == 5
    assert not held(execution)
    assert sum(minute.count for minute in ThrottledMinute.objects.all()) == 3


def test_who_came_first_goes_first(project: Project, limit: Any, now: Clock) -> None:
    """Tokens to come are given away in the order in which executions ask for them."""
    limit(1, 1)
    machine = create(project, PASS)
    drain(start(machine))
    line = [start(machine) for _ in range(5)]
    for execution in line:
        drain(execution)
    for number in range(5):
        now.later(1.01)
        for execution in line:
            drain(execution)
        assert [entered(execution) for execution in line] == [1] * (number + 1) + [0] * (4 - number)


def test_branches_begin_together(project: Project, limit: Any, now: Clock) -> None:
    """A Parallel is begun with one token; the others are owed, and paid by waiting."""
    limit(2, 1)
    branches = [renamed(chain(1), number) for number in range(10)]
    definition = {
        "StartAt": "P",
        "States": {"P": {"Type": "Parallel", "Branches": branches, "End": True}},
    }
    execution = start(create(project, definition))
    drain(execution)
    assert entered(execution) == 11
    assert left(project) <= -9
    now.later(20)
    assert drain(execution).status == "SUCCEEDED"


def test_a_retry_costs_a_token(project: Project, limit: Any, now: Clock) -> None:
    """Trying again is a transition as entering is."""
    limit(1, 0.1)
    retry = [{"ErrorEquals": ["States.ALL"], "IntervalSeconds": 1, "MaxAttempts": 1}]
    task = function("no-such", Retry=retry, End=True)
    execution = start(create(project, {"StartAt": "T", "States": {"T": task}}))
    drain(execution)
    now.later(11)
    drain(execution)
    TokenBucket.objects.update(tokens=0, at_ms=now.now_ms)
    (number,) = execution.taskrow_set.values_list("task", flat=True)
    complete.complete_call(execution.pk, engine.TaskFailed(number, "E", None))
    now.later(10)
    drain(execution)
    TokenBucket.objects.update(tokens=0, at_ms=now.now_ms)
    now.later(2)
    drain(execution)
    assert execution.taskrow_set.count() == 1
    now.later(10)
    drain(execution)
    assert execution.taskrow_set.count() == 2


def test_express_machines_are_not_limited(project: Project, limit: Any) -> None:
    """AWS limits the transitions of Standard ones only."""
    limit(1, 0.001)
    machine = create(project, chain(20))
    machine.type = "EXPRESS"
    machine.save()
    assert drain(start(machine)).status == "SUCCEEDED"


def test_tokens_that_somebody_else_took_are_not_spent(
    project: Project, limit: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Who counted on more than there is when it commits has written nothing, and tries again."""
    limit(4, 0.001)
    execution = start(create(project, chain(5)))
    rate = quotas.Rate(4, 0.001)
    write(lambda: throttle.take(project.pk, transition_rate.BUCKET, rate, 2))
    original = throttle.available_tokens
    monkeypatch.setattr(throttle, "available_tokens", lambda *_: 4.0)
    assert step.step_execution(execution.pk)
    assert entered(execution) == 0
    monkeypatch.setattr(throttle, "available_tokens", original)
    drain(execution)
    assert entered(execution) == 2


@pytest.mark.slow
def test_a_crowd_goes_as_fast_as_the_limit_says(project: Project, limit: Any) -> None:
    """No faster than the bucket allows at any moment, not much slower, and across a restart."""
    limit(10, 40)
    machine = create(project, chain(5))
    begun = time.monotonic()
    line = [start(machine) for _ in range(20)]
    first = Embedded()
    first.start()
    time.sleep(0.7)
    first.stop()
    second = Embedded()
    second.start()
    try:
        assert {ended(execution, 20).status for execution in line} == {"SUCCEEDED"}
    finally:
        second.stop()
    took = time.monotonic() - begun
    assert 90 / 40 - 0.1 <= took < 90 / 40 + 8
    kinds = HistoryEvent.objects.filter(type="PassStateEntered").order_by("at_ms")
    moments = list(kinds.values_list("at_ms", flat=True))
    assert len(moments) == 100
    for count, at_ms in enumerate(moments[10:], 11):  # so many had come by then, at the most
        assert count <= 10 + (at_ms - moments[0]) * 40 / 1000 + 5
    assert_nothing_wrong()


def test_what_is_owed_is_part_of_the_bucket(project: Project, limit: Any, now: Clock) -> None:
    """After a time in which nothing ran no more go at once than the bucket holds."""
    limit(3, 1)
    machine = create(project, chain(4))
    line = [start(machine) for _ in range(5)]
    for execution in line:
        drain(execution)
    before = sum(map(entered, line))
    now.later(3600)
    for execution in line:
        drain(execution)
    assert sum(map(entered, line)) - before == 3 + 2  # two were owed more than it holds


def test_children_of_a_map_run_pay_for_themselves(project: Project, limit: Any) -> None:
    """Each is an execution of the project; together they go no faster than one would."""
    limit(3, 20)
    mode = {"ProcessorConfig": {"Mode": "DISTRIBUTED", "ExecutionType": "STANDARD"}}
    state = {"Type": "Map", "ItemProcessor": {**mode, **chain(2)}, "End": True}
    begun = time.monotonic()
    parent = start(create(project, {"StartAt": "M", "States": {"M": state}}), list(range(10)))
    worker = Embedded()
    worker.start()
    try:
        assert ended(parent, 30).status == "SUCCEEDED"
    finally:
        worker.stop()
    assert time.monotonic() - begun > (1 + 10 * 2 - 3) / 20 - 0.1
    assert_nothing_wrong()


def test_a_task_is_called_when_its_siblings_have_had_their_tokens(
    project: Project, limit: Any, now: Clock
) -> None:
    """Meanwhile it waits in the snapshot: no worker sees it, and nothing says that it started."""
    limit(4, 1)
    call = {"StartAt": "Call", "States": {"Call": function("work", End=True)}}
    both = {"Type": "Parallel", "Branches": [call, chain(4)], "End": True}
    execution = start(create(project, {"StartAt": "Both", "States": {"Both": both}}))
    drain(execution)
    for _ in range(2):  # two tokens are missing
        assert entered(execution) == 4
        assert "LambdaFunctionScheduled" in types(execution)
        assert "LambdaFunctionStarted" not in types(execution)
        assert not TaskRow.objects.filter(execution=execution).exists()
        assert_nothing_wrong()
        now.later(1.001)
        drain(execution)
    assert types(execution)[-1] == "LambdaFunctionStarted"
    assert TaskRow.objects.get(execution=execution).status == "scheduled"
    assert_nothing_wrong()
