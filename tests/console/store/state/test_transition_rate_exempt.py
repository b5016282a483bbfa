"""A stop or a time limit gets past the limit of state transitions, and the rest waits."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from console.models import Execution, Timer, TokenBucket
from console.store.executions.stop import stop_execution
from console.store.state import health
from console.store.tasks import activities, claim, complete, workers
from console.web.execution import waiting
from console.worker.embedded import runnable_executions
from tests.console.store.helpers import (
    ACTIVITY,
    REGION,
    WORK,
    assert_nothing_wrong,
    create,
    drain,
    start,
    types,
)
from tests.console.transition_rates import Clock, chain, held, left

TASK = {"Type": "Task", "Resource": ACTIVITY}

if TYPE_CHECKING:
    from pytest_django.fixtures import Settings

    from console.models import Project


def test_a_stop_is_not_held_back(project: Project, limit: Any, now: Clock) -> None:
    """It ends at once, and what it was waiting for goes back into the bucket."""
    limit(1, 0.001)
    execution = start(create(project, chain(3)))
    drain(execution)
    assert left(project) == pytest.approx(-1)
    stop_execution(execution, error="enough")
    assert types(execution)[-1] == "ExecutionAborted"
    assert left(project) == pytest.approx(0)
    assert not Timer.objects.exists()


def test_what_came_before_a_stop_counts(project: Project, limit: Any, now: Clock) -> None:
    """An outcome that was accepted stands in the history before the stop, tokens or not."""
    limit(1, 0.001)
    activities.create_activity(project, REGION, "work")
    execution = start(create(project, {**WORK, "StartAt": "A"}))
    taken = work_of(execution, now)
    complete.succeed(taken.token, '"done"')
    drain(execution)
    assert "ActivitySucceeded" not in types(execution)
    stop_execution(execution)
    assert "ActivitySucceeded" in types(execution)


def work_of(execution: Execution, now: Clock) -> Any:
    """Let a worker take the task of an execution, whatever that needs."""
    for _ in range(3):
        drain(execution)
        now.later(2000)
    drain(execution)
    taken = claim.take_activity_task(ACTIVITY, "me")
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
    activities.create_activity(project, REGION, "work")
    execution = start(create(project, WORK))
    taken = work_of(execution, now)
    complete.succeed(taken.token, '"done"')
    drain(execution)
    assert held(execution) == ["transitions/1"]
    assert execution.pk not in runnable_executions(workers.Share())
    now.later(500)
    assert health.check_health().oldest_runnable_ms == 0
    assert_nothing_wrong()
    now.later(501)
    assert drain(execution).output == '"done"'


def test_a_stop_gets_past_everything_that_waits(project: Project, limit: Any, now: Clock) -> None:
    """However many outcomes were accepted before it: all of them are in the history, then it."""
    limit(1, 0.001)
    activities.create_activity(project, REGION, "work")
    branches = [
        {"StartAt": f"A{n}", "States": {f"A{n}": {**TASK, "End": True}}} for n in range(220)
    ]
    state = {"Type": "Parallel", "Branches": branches, "End": True}
    execution = start(create(project, {"StartAt": "P", "States": {"P": state}}))
    for _ in range(3):
        now.later(1_000_000)
        drain(execution)
    for _ in range(219):
        taken = claim.take_activity_task(ACTIVITY, "me")
        assert taken is not None
        complete.succeed(taken.token, "1")
    TokenBucket.objects.update(tokens=0, at_ms=now.now_ms)
    stop_execution(execution)
    assert types(execution).count("ActivitySucceeded") == 219
    assert types(execution)[-1] == "ExecutionAborted"


def test_the_page_says_what_is_held_back(project: Project, limit: Any, now: Clock) -> None:
    """And until when."""
    limit(1, 0.1)
    execution = start(create(project, chain(3)))
    drain(execution)
    (line,) = waiting.waiting_part(execution).lines
    assert line.text == "Throttled by the project's limit of state transitions"
    assert line.until_ms == Timer.objects.get().due_ms


def test_a_limit_that_is_lifted_lets_all_go_on(
    project: Project, limit: Any, now: Clock, settings: Settings
) -> None:
    """Whoever was held back goes on when its timer is due, at the latest."""
    limit(1, 1)
    execution = start(create(project, chain(50)))
    drain(execution)
    settings.STATEYARD_QUOTAS = {}
    now.later(2)
    assert drain(execution).status == "SUCCEEDED"
    assert not Timer.objects.exists()
