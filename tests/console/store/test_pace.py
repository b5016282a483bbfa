"""Is a limit of state transitions kept, to the token, and is nothing lost by it?"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import pytest

import engine
from console import clock, quotas
from console.models import Execution, HistoryEvent, RunRow, ThrottledMinute, Timer, TokenBucket
from console.store import activities, executions, health, pace, runs, tasks, throttle, workers
from console.store.writer import write
from console.web import waiting
from console.worker import Embedded
from console.worker.embedded import runnable
from tests.console.store.helpers import (
    ACTIVITY,
    PASS,
    REGION,
    WORK,
    assert_nothing_wrong,
    create,
    drain,
    ended,
    function,
    start,
    types,
)

TASK = {"Type": "Task", "Resource": ACTIVITY}

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from pytest_django.fixtures import SettingsWrapper

    from console.models import Project


class Clock:
    """A clock that goes when it is told to."""

    def __init__(self) -> None:
        self.now_ms = 1_800_000_000_000

    def later(self, seconds: float) -> None:
        """Let time pass."""
        self.now_ms += int(seconds * 1000)


@pytest.fixture
def now(monkeypatch: pytest.MonkeyPatch) -> Clock:
    """A clock for everything that asks for the time."""
    made = Clock()
    monkeypatch.setattr(clock, "now_ms", lambda: made.now_ms)
    return made


@pytest.fixture
def limit(settings: SettingsWrapper) -> Iterator[Callable[[float, float], None]]:
    """Return a function that sets the limit."""

    def put(bucket: float, refill: float) -> None:
        settings.STEPYARD_QUOTAS = {"state_transition": {"bucket": bucket, "refill": refill}}
        quotas.forget()

    yield put
    quotas.forget()


def chain(length: int) -> dict[str, Any]:
    """Return a machine of so many Pass states."""
    states: dict[str, Any] = {
        f"S{n}": {"Type": "Pass", "Next": f"S{n + 1}"} for n in range(1, length)
    }
    return {"StartAt": "S1", "States": states | {f"S{length}": {"Type": "Pass", "End": True}}}


def entered(execution: Execution) -> int:
    """Return how many states an execution has entered."""
    return sum(one.endswith("StateEntered") for one in types(execution))


def held(execution: Execution) -> list[str]:
    """Return the timers of an execution that say when tokens are there."""
    return [
        one.name for one in Timer.objects.filter(execution=execution) if pace.is_token(one.name)
    ]


def left(project: Project) -> float:
    """Return what the bucket holds."""
    return TokenBucket.objects.get(project=project, name=pace.BUCKET).tokens


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
    assert sum(one.count for one in ThrottledMinute.objects.all()) == 3


def test_who_came_first_goes_first(project: Project, limit: Any, now: Clock) -> None:
    """Tokens to come are given away in the order in which executions ask for them."""
    limit(1, 1)
    machine = create(project, PASS)
    drain(start(machine))
    line = [start(machine) for _ in range(5)]
    for one in line:
        drain(one)
    for number in range(5):
        now.later(1.01)
        for one in line:
            drain(one)
        assert [entered(one) for one in line] == [1] * (number + 1) + [0] * (4 - number)


def test_a_stop_is_not_held_back(project: Project, limit: Any, now: Clock) -> None:
    """It ends at once, and what it was waiting for goes back into the bucket."""
    limit(1, 0.001)
    execution = start(create(project, chain(3)))
    drain(execution)
    assert left(project) == pytest.approx(-1)
    executions.stop(execution, error="enough")
    assert types(execution)[-1] == "ExecutionAborted"
    assert left(project) == pytest.approx(0)
    assert not Timer.objects.exists()


def test_what_came_before_a_stop_counts(project: Project, limit: Any, now: Clock) -> None:
    """An outcome that was accepted stands in the history before the stop, tokens or not."""
    limit(1, 0.001)
    activities.create(project, REGION, "work")
    execution = start(create(project, {**WORK, "StartAt": "A"}))
    taken = work_of(execution, now)
    tasks.succeed(taken.token, '"done"')
    drain(execution)
    assert "ActivitySucceeded" not in types(execution)
    executions.stop(execution)
    assert "ActivitySucceeded" in types(execution)


def work_of(execution: Execution, now: Clock) -> Any:
    """Let a worker take the task of an execution, whatever that needs."""
    for _ in range(3):
        drain(execution)
        now.later(2000)
    drain(execution)
    taken = tasks.take_activity_task(ACTIVITY, "me")
    TokenBucket.objects.update(tokens=0, at_ms=now.now_ms)
    return taken


def test_a_time_limit_is_not_held_back(project: Project, limit: Any, now: Clock) -> None:
    """TimeoutSeconds runs on while the execution waits for tokens."""
    limit(1, 0.001)
    execution = start(create(project, {**chain(3), "TimeoutSeconds": 5}))
    drain(execution)
    now.later(5)
    assert drain(execution).status == "TIMED_OUT"


def test_an_outcome_waits_for_its_token(project: Project, limit: Any, now: Clock) -> None:
    """A task's result stays in the inbox, is taken when there is a token, and is no late work."""
    limit(1, 0.001)
    activities.create(project, REGION, "work")
    execution = start(create(project, WORK))
    taken = work_of(execution, now)
    tasks.succeed(taken.token, '"done"')
    drain(execution)
    assert held(execution) == ["transitions/1"]
    assert execution.pk not in runnable(workers.Share())
    now.later(500)
    assert health.look().oldest_runnable_ms == 0
    assert_nothing_wrong()
    now.later(501)
    assert drain(execution).output == '"done"'


def test_branches_begin_together(project: Project, limit: Any, now: Clock) -> None:
    """A Parallel is begun with one token; the others are owed, and paid by waiting."""
    limit(2, 1)
    branches = [chain(1)] * 10
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
    tasks.finish(execution.pk, engine.TaskFailed(number, "E", None))
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
    write(lambda: throttle.take(project.pk, pace.BUCKET, rate, 2))
    there = throttle.there
    monkeypatch.setattr(throttle, "there", lambda *_: 4.0)
    assert runs.step(execution.pk)
    assert entered(execution) == 0
    monkeypatch.setattr(throttle, "there", there)
    drain(execution)
    assert entered(execution) == 2


def test_a_limit_that_is_lifted_lets_all_go_on(
    project: Project, limit: Any, now: Clock, settings: SettingsWrapper
) -> None:
    """Whoever was held back goes on when its timer is due, at the latest."""
    limit(1, 1)
    execution = start(create(project, chain(50)))
    drain(execution)
    settings.STEPYARD_QUOTAS = {}
    now.later(2)
    assert drain(execution).status == "SUCCEEDED"
    assert not Timer.objects.exists()


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
        assert {ended(one, 20).status for one in line} == {"SUCCEEDED"}
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
    for one in line:
        drain(one)
    before = sum(map(entered, line))
    now.later(3600)
    for one in line:
        drain(one)
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


def test_a_stop_gets_past_everything_that_waits(project: Project, limit: Any, now: Clock) -> None:
    """However many outcomes were accepted before it: all of them are in the history, then it."""
    limit(1, 0.001)
    activities.create(project, REGION, "work")
    branches = [
        {"StartAt": f"A{n}", "States": {f"A{n}": {**TASK, "End": True}}} for n in range(220)
    ]
    state = {"Type": "Parallel", "Branches": branches, "End": True}
    execution = start(create(project, {"StartAt": "P", "States": {"P": state}}))
    for _ in range(3):
        now.later(1_000_000)
        drain(execution)
    for _ in range(219):
        taken = tasks.take_activity_task(ACTIVITY, "me")
        assert taken is not None
        tasks.succeed(taken.token, "1")
    TokenBucket.objects.update(tokens=0, at_ms=now.now_ms)
    executions.stop(execution)
    assert types(execution).count("ActivitySucceeded") == 219
    assert types(execution)[-1] == "ExecutionAborted"


def test_the_page_says_what_is_held_back(project: Project, limit: Any, now: Clock) -> None:
    """And until when."""
    limit(1, 0.1)
    execution = start(create(project, chain(3)))
    drain(execution)
    (line,) = waiting.panel(execution)["waiting"]
    assert line.text == "Held back by the project's limit of state transitions"
    assert line.until_ms == Timer.objects.get().due_ms
