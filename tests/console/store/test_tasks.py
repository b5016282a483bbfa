"""Who may end a task, and how often?"""

from __future__ import annotations

import json
import threading

import pytest
from django.db import connection

import engine
from console import errors
from console.models import Execution, Project, TaskRow
from console.store import activities, executions, tasks
from tests.console.store.helpers import (
    ACTIVITY,
    REGION,
    WORK,
    create,
    crowd,
    drain,
    one,
    start,
    types,
)


@pytest.fixture
def execution(project: Project) -> Execution:
    """An execution that waits for an activity worker."""
    activities.create(project, REGION, "work")
    execution = start(create(project, WORK), {"n": 1})
    drain(execution)
    return execution


def taken(worker: str = "w1") -> tasks.Work:
    """Take the open task."""
    work = tasks.take_activity_task(ACTIVITY, worker)
    assert work is not None
    return work


def test_worker_takes_and_succeeds(execution: Execution) -> None:
    """The worker gets token and input; its output is the execution's."""
    work = taken()
    assert (work.input, tasks.take_activity_task(ACTIVITY)) == ('{"n": 1}', None)
    tasks.succeed(work.token, '{"done":true}')
    assert drain(execution).output == '{"done":true}'
    assert types(execution)[2:5] == ["ActivityScheduled", "ActivityStarted", "ActivitySucceeded"]


def test_token_in_the_database_is_a_hash(execution: Execution) -> None:
    """The token itself is stored nowhere."""
    del execution
    assert taken().token not in str(TaskRow.objects.values().get())


def test_second_answer_is_too_late(execution: Execution) -> None:
    """The first committed outcome wins; the history is not touched again."""
    work = taken()
    tasks.fail(work.token, "E", "C")
    drain(execution)
    before = types(execution)
    for late in (
        lambda: tasks.succeed(work.token, "1"),
        lambda: tasks.fail(work.token),
        lambda: tasks.heartbeat(work.token),
    ):
        with pytest.raises(errors.TaskTimedOut):
            late()
    assert types(execution) == before


@pytest.mark.parametrize(
    ("token", "error"),
    [
        ("x", errors.InvalidToken),
        ("A" * 44, errors.TaskDoesNotExist),
        ("é" * 44, errors.InvalidToken),
    ],
)
def test_made_up_tokens_are_refused(project: Project, token: str, error: type[Exception]) -> None:
    """Malformed and unknown tokens have their own errors."""
    del project
    with pytest.raises(error):
        tasks.succeed(token, "1")


def test_tokens_of_another_project_open_nothing(execution: Execution) -> None:
    """A token works only for callers of the project that owns the task."""
    del execution
    other = Project.objects.create(name="other", account_id="999999999999")
    with pytest.raises(errors.TaskDoesNotExist):
        tasks.succeed(taken().token, "1", other)


def test_output_must_be_json(execution: Execution) -> None:
    """InvalidOutput leaves the task open."""
    del execution
    work = taken()
    with pytest.raises(errors.InvalidOutput):
        tasks.succeed(work.token, "{")
    tasks.succeed(work.token, "{}")


def test_eight_senders_have_one_winner(execution: Execution) -> None:
    """Exactly one of eight concurrent answers is taken, and the history shows it."""
    work = taken()
    won: list[str] = []

    def send(number: int) -> None:
        try:
            tasks.succeed(work.token, str(number))
            won.append(str(number))
        except errors.TaskTimedOut:
            pass
        finally:
            connection.close()

    threads = [threading.Thread(target=send, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(won) == 1
    assert drain(execution).output == won[0]


def test_stopping_closes_the_token(execution: Execution) -> None:
    """A worker whose execution was stopped learns it at its next call."""
    work = taken()
    executions.stop(execution)
    with pytest.raises(errors.TaskTimedOut):
        tasks.heartbeat(work.token)


def test_deadline_counts_from_the_worker_and_is_never_early(project: Project) -> None:
    """An activity that nobody took does not expire; a taken one not before its time."""
    activities.create(project, REGION, "work")
    definition = one("A", Type="Task", Resource=ACTIVITY, TimeoutSeconds=100, HeartbeatSeconds=50)
    execution = start(create(project, definition))
    drain(execution)
    assert TaskRow.objects.get().timeout_due_ms is None
    work = taken()
    assert not tasks.expire(execution.pk, work.task)
    TaskRow.objects.update(heartbeat_due_ms=1)
    assert tasks.expire(execution.pk, work.task)
    assert drain(execution).error == "States.Timeout"


def test_called_tasks_of_a_lost_process_are_offered_again(project: Project) -> None:
    """What a process had started to call is called again, with the same idempotency key."""
    arn = "arn:aws:lambda:us-east-1:123456789012:function:f"
    execution = start(create(project, one("T", Type="Task", Resource=arn)))
    drain(execution)
    number = TaskRow.objects.get().task
    first = tasks.claim(execution.pk, number)
    assert tasks.claim(execution.pk, number) is None
    assert tasks.release_called() == 1
    second = tasks.claim(execution.pk, number)
    assert first is not None
    assert second is not None
    assert first.idempotency_key == second.idempotency_key
    assert second.dispatches == 2
    assert tasks.finish(execution.pk, engine.TaskSucceeded(number, "1"))
    assert not tasks.finish(execution.pk, engine.TaskSucceeded(number, "2"))
    assert drain(execution).output == "1"


def test_the_clock_of_a_lost_activity_task_goes_on(project: Project) -> None:
    """TimeoutSeconds counts from the first start; its history has one, too."""
    activities.create(project, REGION, "work")
    definition = one("A", Type="Task", Resource=ACTIVITY, TimeoutSeconds=100)
    execution = start(create(project, definition))
    drain(execution)
    number = TaskRow.objects.get().task
    assert tasks.claim(execution.pk, number) is not None
    TaskRow.objects.update(timeout_due_ms=execution.start_ms + 5)
    assert tasks.release(execution.pk, number)
    assert not tasks.release(execution.pk, number)
    assert tasks.claim(execution.pk, number) is not None
    assert TaskRow.objects.get().timeout_due_ms == execution.start_ms + 5
    drain(execution)
    assert types(execution).count("ActivityStarted") == 1


def test_work_of_other_workers_is_left_to_them(execution: Execution) -> None:
    """What an outside worker has is not offered again; its own deadline watches over it."""
    work = taken("stranger")
    assert tasks.release_called() == 0
    assert not tasks.release(execution.pk, work.task)
    assert tasks.held_here() == []


def test_ten_workers_take_ten_tasks(project: Project) -> None:
    """Workers that poll at once get a task each, none twice."""
    activities.create(project, REGION, "work")
    definition = one("M", Type="Map", ItemProcessor=WORK)
    execution = start(create(project, definition), list(range(10)))
    drain(execution)
    works = crowd(10, lambda number: tasks.take_activity_task(ACTIVITY, f"w{number}"))
    assert sorted(json.loads(work.input) for work in works) == list(range(10))


def test_a_heartbeat_keeps_alive_but_never_revives(project: Project) -> None:
    """It moves the heartbeat's deadline, not the timeout's, and is refused once the task ended."""
    activities.create(project, REGION, "work")
    definition = one("A", Type="Task", Resource=ACTIVITY, TimeoutSeconds=100, HeartbeatSeconds=50)
    drain(start(create(project, definition)))
    work = taken()
    TaskRow.objects.update(heartbeat_due_ms=1)
    before = TaskRow.objects.get()
    tasks.heartbeat(work.token)
    after = TaskRow.objects.get()
    assert (after.heartbeat_due_ms or 0) > 1
    assert after.timeout_due_ms == before.timeout_due_ms
    tasks.fail(work.token)
    with pytest.raises(errors.TaskTimedOut):
        tasks.heartbeat(work.token)
    assert TaskRow.objects.get().heartbeat_due_ms is None
