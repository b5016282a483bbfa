"""The right timeout ends an activity's task, and each one is set where it should be."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from console.errors import ValidationException
from console.models import Execution, TaskRow
from console.statuses import TaskClock
from console.store.machines import tags
from console.store.tasks import activities, claim, expiry
from tests.console.store.helpers import (
    ACTIVITY,
    REGION,
    assert_nothing_wrong,
    create,
    drain,
    one,
    start,
    types,
)

if TYPE_CHECKING:
    from console.models import Project

YEAR_MS = 365 * 24 * 3_600_000


def task(project: Project, said: dict[str, str], **state: Any) -> tuple[Execution, TaskRow]:
    """Return an execution at the task of an activity with these tags, and its row."""
    activities.create_activity(project, REGION, "work")
    tags.put_tags(ACTIVITY, {f"stateyard:{clock}Timeout": value for clock, value in said.items()})
    definition = one("A", Type="Task", Resource=ACTIVITY, **state)
    execution = start(create(project, definition))
    drain(execution)
    return execution, TaskRow.objects.get()


def taken() -> TaskRow:
    """Let a worker take the task; return its row."""
    assert claim.take_activity_task(ACTIVITY, "w") is not None
    return TaskRow.objects.get()


def left(row: TaskRow, since_ms: int | None) -> tuple[int, str]:
    """Return how long its first clock lasts, and which it is."""
    return (row.timeout_due_ms or 0) - (since_ms or 0), row.clock


def test_nothing_but_a_year_limits_a_task_without_tags(project: Project) -> None:
    """As in SWF: every clock is off, and no task is open for longer."""
    _, row = task(project, {})
    assert left(row, row.scheduled_ms) == (YEAR_MS, "year")
    assert left(taken(), row.scheduled_ms) == (YEAR_MS, "year")
    assert TaskRow.objects.get().heartbeat_due_ms is None


def test_each_tag_sets_its_clock(project: Project) -> None:
    """From scheduling to a worker, then from the worker to the end, and the heartbeat beside it."""
    said = {"scheduleToStart": "10", "startToClose": "20", "heartbeat": "5"}
    _, row = task(project, said)
    assert left(row, row.scheduled_ms) == (10_000, "scheduleToStart")
    assert row.heartbeat_due_ms is None
    row = taken()
    assert left(row, row.started_ms) == (20_000, "startToClose")
    assert (row.heartbeat_due_ms or 0) - (row.started_ms or 0) == 5_000


def test_the_whole_life_of_a_task_has_a_clock_that_goes_on(project: Project) -> None:
    """It counts from scheduling, wins over a longer one, and no worker starts it anew."""
    _, row = task(project, {"scheduleToClose": "10", "scheduleToStart": "60"}, TimeoutSeconds=60)
    assert left(row, row.scheduled_ms) == (10_000, "scheduleToClose")
    assert left(taken(), row.scheduled_ms) == (10_000, "scheduleToClose")


def test_the_state_comes_before_the_tag(project: Project) -> None:
    """TimeoutSeconds and HeartbeatSeconds override what the activity says."""
    said = {"startToClose": "20", "heartbeat": "5"}
    task(project, said, TimeoutSeconds=30, HeartbeatSeconds=7)
    row = taken()
    assert left(row, row.started_ms) == (30_000, "startToClose")
    assert (row.heartbeat_due_ms or 0) - (row.started_ms or 0) == 7_000


def test_no_clock_lasts_longer_than_a_year(project: Project) -> None:
    """Neither a tag's nor a state's; and NONE is no clock."""
    said = {"scheduleToStart": "NONE", "heartbeat": "99999999"}
    _, row = task(project, said, TimeoutSeconds=99_999_999)
    assert left(row, row.scheduled_ms) == (YEAR_MS, "year")
    row = taken()
    assert left(row, row.scheduled_ms) == (YEAR_MS, "year")
    assert (row.heartbeat_due_ms or 0) - (row.started_ms or 0) == YEAR_MS


@pytest.mark.parametrize("value", ["", "0", "-1", "1.5", "none", "123456789", "٣"])
def test_a_tag_that_says_no_time_is_refused(project: Project, value: str) -> None:
    """With the words of what is wanted; nothing is stored."""
    activities.create_activity(project, REGION, "work")
    with pytest.raises(ValidationException, match="must be a number of seconds"):
        tags.put_tags(ACTIVITY, {"team": "a", "stateyard:heartbeatTimeout": value})
    assert tags.get_tags(ACTIVITY) == {}


def test_a_task_that_nobody_took_times_out(project: Project) -> None:
    """The history has AWS's event without a start; no worker gets it, and the row says why."""
    execution, _ = task(project, {"scheduleToStart": "10"})
    late(execution)
    assert claim.take_activity_task(ACTIVITY, "w") is None
    execution = drain(execution)
    assert (execution.status, execution.error) == ("FAILED", "States.Timeout")
    assert types(execution)[2:4] == ["ActivityScheduled", "ActivityTimedOut"]
    assert TaskRow.objects.get().clock == TaskClock.SCHEDULE_TO_START
    assert_nothing_wrong()


def test_a_missed_heartbeat_is_named(project: Project) -> None:
    """The row says heartbeat though another clock was running."""
    execution, _ = task(project, {"heartbeat": "5", "startToClose": "50"})
    row = taken()
    assert row.clock == TaskClock.START_TO_CLOSE
    late(execution, "heartbeat_due_ms")
    assert TaskRow.objects.get().clock == TaskClock.HEARTBEAT
    assert drain(execution).status == "FAILED"


def test_a_new_attempt_has_new_clocks(project: Project) -> None:
    """Retry on States.Timeout schedules the task again, for a worker to take in time."""
    retry = [{"ErrorEquals": ["States.Timeout"], "IntervalSeconds": 1, "MaxAttempts": 1}]
    execution, _ = task(project, {"scheduleToStart": "10"}, Retry=retry)
    late(execution)
    drain(execution)
    from console.models import Timer

    Timer.objects.update(due_ms=1)
    drain(execution)
    again = TaskRow.objects.exclude(status="closed").get()
    assert left(again, again.scheduled_ms) == (10_000, "scheduleToStart")


def late(execution: Execution, column: str = "timeout_due_ms") -> None:
    """Let a clock of the open task run out."""
    row = TaskRow.objects.get(execution=execution)
    assert expiry.expire_tasks([(execution.pk, row.task)]) == 0
    TaskRow.objects.filter(task=row.task).update(**{column: 1})
    assert expiry.expire_tasks([(execution.pk, row.task)]) == 1


def test_an_old_task_gets_its_year_from_its_scheduling(project: Project) -> None:
    """Rows that an earlier version wrote have no end of their own."""
    _, row = task(project, {})
    TaskRow.objects.filter(task=row.task).update(close_due_ms=None, timeout_due_ms=None, clock="")
    assert left(taken(), row.scheduled_ms) == (YEAR_MS, "year")


def test_a_task_of_before_is_not_touched_by_a_new_tag(project: Project) -> None:
    """The clocks of a task are those of when it was scheduled."""
    _, row = task(project, {})
    tags.put_tags(ACTIVITY, {"stateyard:startToCloseTimeout": "1"})
    assert left(taken(), row.scheduled_ms) == (YEAR_MS, "year")


@pytest.mark.parametrize(
    ("resource", "clock"),
    [
        ("arn:aws:lambda:us-east-1:123456789012:function:f", ""),
        ("arn:aws:states:::sqs:sendMessage", ""),
        ("arn:aws:states:::sqs:sendMessage.waitForTaskToken", "year"),
        ("arn:aws:states:::batch:submitJob.sync", "year"),
    ],
)
def test_what_waits_outside_ends_after_a_year(project: Project, resource: str, clock: str) -> None:
    """A callback or a job does; a plain call ends by itself, and needs no clock for it."""
    message = {"QueueUrl": "q", "MessageBody": "m"}
    job = {"JobDefinition": "d", "JobName": "n", "JobQueue": "q"}
    parameters = job if "batch" in resource else message
    drain(start(create(project, one("T", Type="Task", Resource=resource, Parameters=parameters))))
    assert TaskRow.objects.get().clock == clock
