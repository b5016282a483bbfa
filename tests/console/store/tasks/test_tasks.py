"""A task is ended once, and only by a caller with its token."""

from __future__ import annotations

import asyncio
import json
import threading
import time
from functools import partial
from typing import Any

import pytest
from django.db import connection

import engine
from console.awsapi.operations.call import wait_for
from console.db import audit, clock, signals
from console.db.writer import write
from console.errors import ErrorCode, ServiceError
from console.models import Execution, HistoryEvent, Project, TaskRow
from console.own_api import LongPoll
from console.server.threads import Threads
from console.statuses import Topic
from console.store.executions.start import start_execution
from console.store.executions.stop import _post_stop, stop_execution
from console.store.tasks import activities, claim, complete, expiry, manual
from tests.console.store.helpers import (
    ACTIVITY,
    REGION,
    WORK,
    assert_nothing_wrong,
    create,
    crowd,
    drain,
    one,
    start,
    types,
)
from tests.loops import looped
from tests.refusals import raises_code


@pytest.fixture
def execution(project: Project) -> Execution:
    """An execution that waits for an activity worker."""
    activities.create_activity(project, REGION, "work")
    execution = start(create(project, WORK), {"n": 1})
    drain(execution)
    return execution


@pytest.mark.parametrize("ahead", [True, False])
def test_an_activity_of_another_account_does_not_exist(project: Project, *, ahead: bool) -> None:
    """Else a project hands its own input to the workers of any other project.

    1. The editor of a project names the activity of another one in a definition.
    2. Its workers get the task, and keep it: they may not answer its token.
    """
    activities.create_activity(project, REGION, "work")
    other = Project.objects.create(name="other", account_id="210987654321")
    execution = start_execution(create(other, WORK), input="{}", ahead=ahead)
    assert drain(execution).status == "FAILED"
    assert "ActivityScheduled" not in types(execution)
    assert claim.take_activity_task(ACTIVITY, "w1") is None
    failed = Execution.objects.get(pk=execution.pk)
    assert failed.error == "States.Runtime"
    assert f"The activity {ACTIVITY} does not exist." in (failed.cause or "")


def taken(worker: str = "w1") -> claim.ClaimedTask:
    """Take the open task."""
    work = claim.take_activity_task(ACTIVITY, worker)
    assert work is not None
    return work


def test_worker_takes_and_succeeds(execution: Execution) -> None:
    """The worker gets token and input; its output is the execution's."""
    work = taken()
    assert (work.input, claim.take_activity_task(ACTIVITY)) == ('{"n": 1}', None)
    complete.succeed(work.token, '{"done":true}')
    assert drain(execution).output == '{"done":true}'
    assert types(execution)[2:5] == ["ActivityScheduled", "ActivityStarted", "ActivitySucceeded"]


def test_token_in_the_database_is_a_hash(execution: Execution) -> None:
    """The token itself is stored nowhere."""
    del execution
    assert taken().token not in str(TaskRow.objects.values().get())


def test_second_answer_is_too_late(execution: Execution) -> None:
    """The first committed outcome wins; the history is not touched again."""
    work = taken()
    complete.fail(work.token, "E", "C")
    drain(execution)
    before = types(execution)
    for late in (
        lambda: complete.succeed(work.token, "1"),
        lambda: complete.fail(work.token),
        lambda: complete.heartbeat(work.token),
    ):
        with raises_code(ErrorCode.TaskTimedOut):
            late()
    assert types(execution) == before


@pytest.mark.parametrize(
    ("token", "error"),
    [
        ("x", ErrorCode.InvalidToken),
        ("A" * 44, ErrorCode.TaskDoesNotExist),
        ("é" * 44, ErrorCode.InvalidToken),
    ],
)
def test_made_up_tokens_are_refused(project: Project, token: str, error: ErrorCode) -> None:
    """Malformed and unknown tokens have their own errors."""
    del project
    with raises_code(error):
        complete.succeed(token, "1")


def test_tokens_of_another_project_open_nothing(execution: Execution) -> None:
    """A token works only for callers of the project that owns the task."""
    del execution
    other = Project.objects.create(name="other", account_id="999999999999")
    with raises_code(ErrorCode.TaskDoesNotExist):
        complete.succeed(taken().token, "1", other)


def test_output_must_be_json(execution: Execution) -> None:
    """InvalidOutput leaves the task open."""
    del execution
    work = taken()
    with raises_code(ErrorCode.InvalidOutput):
        complete.succeed(work.token, "{")
    complete.succeed(work.token, "{}")


def test_the_token_is_judged_before_the_output(execution: Execution) -> None:
    """A bad token, an unknown one and a closed one are named, whatever the output is."""
    del execution
    work = taken()
    complete.succeed(work.token, "{}")
    for token, error in (
        ("x", ErrorCode.InvalidToken),
        ("A" * 44, ErrorCode.TaskDoesNotExist),
        (work.token, ErrorCode.TaskTimedOut),
    ):
        with raises_code(error):
            complete.succeed(token, "{")


def test_eight_senders_have_one_winner(execution: Execution) -> None:
    """Exactly one of eight concurrent answers is taken, and the history shows it."""
    work = taken()
    won: list[str] = []

    def send(number: int) -> None:
        try:
            complete.succeed(work.token, str(number))
            won.append(str(number))
        except ServiceError as error:
            if error.code != ErrorCode.TaskTimedOut:
                raise
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
    stop_execution(execution)
    with raises_code(ErrorCode.TaskTimedOut):
        complete.heartbeat(work.token)


def test_no_answer_is_taken_after_a_stop(execution: Execution) -> None:
    """Stop is posted but its step is still to come: who answers now is not told it counts."""
    work = taken()
    drain(execution)
    before = types(execution)
    assert write(lambda: _post_stop(execution.pk, engine.Stop()))
    with raises_code(ErrorCode.TaskTimedOut):
        complete.succeed(work.token, "1")
    assert expiry.expire_tasks([(execution.pk, work.task)]) == 0
    assert drain(execution).status == "ABORTED"
    assert types(execution) == [*before, "ExecutionAborted"]
    assert_nothing_wrong()


def test_deadline_counts_from_the_worker_and_is_never_early(project: Project) -> None:
    """An activity that nobody took does not expire; a taken one not before its time."""
    activities.create_activity(project, REGION, "work")
    definition = one("A", Type="Task", Resource=ACTIVITY, TimeoutSeconds=100, HeartbeatSeconds=50)
    execution = start(create(project, definition))
    drain(execution)
    before = TaskRow.objects.get()
    assert (before.timeout_due_ms or 0) - before.scheduled_ms == 365 * 24 * 3_600_000
    work = taken()
    assert not expiry.expire_tasks([(execution.pk, work.task)])
    TaskRow.objects.update(heartbeat_due_ms=1)
    assert expiry.expire_tasks([(execution.pk, work.task)]) == 1
    assert drain(execution).error == "States.Timeout"


def test_called_tasks_of_a_lost_process_are_offered_again(project: Project) -> None:
    """What a process had started to call is called again, with the same idempotency key."""
    arn = "arn:aws:lambda:us-east-1:123456789012:function:f"
    execution = start(create(project, one("T", Type="Task", Resource=arn)))
    drain(execution)
    number = TaskRow.objects.get().task
    first = claim.claim_call(execution.pk, number)
    assert claim.claim_call(execution.pk, number) is None
    assert claim.release_all_calls() == 1
    second = claim.claim_call(execution.pk, number)
    assert first is not None
    assert second is not None
    assert first.idempotency_key == second.idempotency_key
    assert second.dispatches == 2
    assert complete.complete_call(execution.pk, engine.TaskSucceeded(number, "1"))
    assert not complete.complete_call(execution.pk, engine.TaskSucceeded(number, "2"))
    assert drain(execution).output == "1"


def test_a_task_that_a_worker_has_is_not_taken_by_hand(execution: Execution) -> None:
    """A person who keeps it alive does not become its worker, and starts it no second time."""
    work = taken("w1")
    assert write(lambda: claim.claim_by_hand(execution.pk, work.task, "ben")) is None
    manual.heartbeat(execution, work.task, audit.Actor("ben"))
    row = TaskRow.objects.get()
    assert (row.worker, row.dispatches) == ("w1", 1)
    drain(execution)
    assert types(execution).count("ActivityStarted") == 1


def test_the_clock_of_a_lost_activity_task_goes_on(project: Project) -> None:
    """TimeoutSeconds counts from the first start; its history has one, too."""
    activities.create_activity(project, REGION, "work")
    definition = one("A", Type="Task", Resource=ACTIVITY, TimeoutSeconds=100)
    execution = start(create(project, definition))
    drain(execution)
    number = TaskRow.objects.get().task
    assert claim.claim_call(execution.pk, number) is not None
    TaskRow.objects.update(timeout_due_ms=execution.start_ms + 5)
    assert claim.release_call(execution.pk, number)
    assert not claim.release_call(execution.pk, number)
    assert claim.claim_call(execution.pk, number) is not None
    assert TaskRow.objects.get().timeout_due_ms == execution.start_ms + 5
    drain(execution)
    assert types(execution).count("ActivityStarted") == 1


def test_work_of_other_workers_is_left_to_them(execution: Execution) -> None:
    """What an outside worker has is not offered again; its own deadline watches over it."""
    work = taken("stranger")
    assert claim.release_all_calls() == 0
    assert not claim.release_call(execution.pk, work.task)
    assert claim.claimed_tasks() == []


def test_no_worker_can_pass_for_the_builtin_one(execution: Execution) -> None:
    """Whatever a caller is named, what it has is not offered again."""
    for name in (claim.BUILTIN_WORKER, f"\x01{claim.BUILTIN_WORKER}"):
        work = taken(name)
        assert claim.claimed_tasks() == []
        assert not claim.release_call(execution.pk, work.task)
        assert claim.release_all_calls() == 0
        assert claim.return_task(work)


def test_what_a_worker_never_heard_of_is_put_back(execution: Execution) -> None:
    """The next worker gets it with the same token; who has had it meanwhile keeps it."""
    first = taken()
    assert claim.return_task(first)
    second = taken("w2")
    assert second.token == first.token
    assert not claim.return_task(first)
    complete.succeed(second.token, "1")
    assert not claim.return_task(second)
    assert drain(execution).output == "1"
    assert types(execution).count("ActivityStarted") == 1


def poll(seconds: float) -> dict[str, Any]:
    """Poll for work over a connection that is closed after so long."""
    taken: list[claim.ClaimedTask] = []

    def look() -> dict[str, Any] | None:
        work = claim.take_activity_task(ACTIVITY)
        if work is None:
            return None
        taken.append(work)
        time.sleep(0.1)
        return {"taskToken": work.token}

    async def receive() -> dict[str, Any]:
        await asyncio.sleep(seconds)
        return {"type": "http.disconnect"}

    later = LongPoll(look, (Topic.ACTIVITY, ACTIVITY), 10, {}, lambda: claim.return_task(taken[0]))
    threads = Threads(1, "poll")

    async def answer() -> dict[str, Any]:
        try:
            return await wait_for(later, threads, receive)
        finally:
            await threads.run(lambda: connection.close())  # noqa: PLW0108 - the thread's own

    return looped(answer)


def test_a_poll_whose_caller_left_takes_nothing(project: Project) -> None:
    """It ends at once, not at the end of its minute."""
    activities.create_activity(project, REGION, "work")
    begun = time.monotonic()
    assert poll(0.1) == {}
    assert time.monotonic() - begun < 30


def test_a_task_taken_for_nobody_is_put_back(execution: Execution) -> None:
    """The caller left while the task was taken: the next one gets it."""
    poll(0.05)
    assert TaskRow.objects.get().status == "scheduled"
    assert taken().dispatches == 2


def test_a_task_found_at_once_for_nobody_is_put_back() -> None:
    """The answer was there, and the caller was not."""
    undone: list[bool] = []

    async def receive() -> dict[str, Any]:
        return {"type": "http.disconnect"}

    def undo() -> None:
        undone.append(True)

    def look() -> dict[str, Any]:
        return {"taskToken": "t"}

    later = LongPoll(look, (Topic.ACTIVITY, ACTIVITY), 10, {}, undo)
    assert looped(lambda: wait_for(later, Threads(1, "poll"), receive)) == {"taskToken": "t"}
    assert undone == [True]


def test_who_stays_keeps_the_task(execution: Execution) -> None:
    """A caller that is there gets its answer."""
    assert "taskToken" in poll(60)
    assert TaskRow.objects.get().status == "started"


def test_one_poller_is_told_of_one_task() -> None:
    """Each in turn; whoever is told of more than it takes lets another one know."""
    looked: list[int] = []
    offered = [0]

    def look(number: int) -> dict[str, Any] | None:
        looked.append(number)
        if not offered[0]:
            return None
        offered[0] -= 1
        return {"poller": number}

    async def polls() -> list[dict[str, Any]]:
        threads = Threads(1, "poll")
        laters = [
            LongPoll(partial(look, number), (Topic.ACTIVITY, "x"), 10, {}, one_each=True)
            for number in range(4)
        ]
        waiting = [asyncio.create_task(wait_for(later, threads)) for later in laters]
        await asyncio.sleep(0.2)
        assert looked == [0, 1, 2, 3]
        for _ in range(4):
            offered[0] += 1
            signals.deliver((Topic.ACTIVITY, "x"))
        return list(await asyncio.wait_for(asyncio.gather(*waiting), 0.7))

    assert [answer["poller"] for answer in looped(polls)] == [0, 1, 2, 3]
    assert len(looked) == 8


def test_a_heartbeat_in_the_last_moment_wins(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Expiry decides on what the row says when it is closed, not on what was read before."""
    activities.create_activity(project, REGION, "work")
    definition = one("A", Type="Task", Resource=ACTIVITY, HeartbeatSeconds=50)
    execution = start(create(project, definition))
    drain(execution)
    work = taken()
    TaskRow.objects.update(heartbeat_due_ms=1)
    now_ms = clock.now_ms

    def beat_first() -> int:
        monkeypatch.setattr(clock, "now_ms", now_ms)
        TaskRow.objects.update(heartbeat_due_ms=now_ms() + 50_000)
        return now_ms()

    monkeypatch.setattr(clock, "now_ms", beat_first)
    assert expiry.expire_tasks([(execution.pk, work.task)]) == 0


def test_many_late_tasks_expire_together(project: Project) -> None:
    """Each of them once, with what it was late for."""
    activities.create_activity(project, REGION, "work")
    work = one("A", Type="Task", Resource=ACTIVITY, TimeoutSeconds=100, HeartbeatSeconds=50)
    machine = create(project, one("M", Type="Map", ItemProcessor=work))
    late = [start(machine, [1, 2, 3]) for _ in range(2)]
    for execution in late:
        drain(execution)
    numbers = list(TaskRow.objects.values_list("execution_id", "task"))
    TaskRow.objects.filter(execution_id=late[0].pk).update(timeout_due_ms=1)
    TaskRow.objects.filter(execution_id=late[1].pk).update(heartbeat_due_ms=1)
    assert expiry.expire_tasks(numbers) == 6
    assert expiry.expire_tasks(numbers) == 0
    for execution in late:
        assert drain(execution).error == "States.Timeout"
        assert types(execution).count("ActivityTimedOut") == 3


def test_what_is_late_with_a_task_expires_with_it(project: Project) -> None:
    """A clock may name one of them only: they reach the engine in one transaction, as on AWS."""
    activities.create_activity(project, REGION, "work")
    work = one("A", Type="Task", Resource=ACTIVITY, TimeoutSeconds=100)
    execution = start(create(project, one("M", Type="Map", ItemProcessor=work)), [1, 2, 3])
    drain(execution)
    first, _, last = tasks = TaskRow.objects.order_by("task").values_list("task", flat=True)
    TaskRow.objects.filter(task__in=[first, last]).update(timeout_due_ms=1)
    assert expiry.expire_tasks([(execution.pk, last)]) == 2
    assert drain(execution).status == "FAILED"
    late = HistoryEvent.objects.filter(execution=execution, type="ActivityTimedOut")
    assert [event.previous for event in late.order_by("event_id")] == [first, last]
    assert TaskRow.objects.filter(status="closed").count() == len(tasks)
    assert_nothing_wrong()


def test_ten_workers_take_ten_tasks(project: Project) -> None:
    """Workers that poll at once get a task each, none twice."""
    activities.create_activity(project, REGION, "work")
    definition = one("M", Type="Map", ItemProcessor=WORK)
    execution = start(create(project, definition), list(range(10)))
    drain(execution)
    works = crowd(10, lambda number: claim.take_activity_task(ACTIVITY, f"w{number}"))
    assert sorted(json.loads(work.input) for work in works) == list(range(10))


def test_a_heartbeat_keeps_alive_but_never_revives(project: Project) -> None:
    """It moves the heartbeat's deadline, not the timeout's, and is refused once the task ended."""
    activities.create_activity(project, REGION, "work")
    definition = one("A", Type="Task", Resource=ACTIVITY, TimeoutSeconds=100, HeartbeatSeconds=50)
    drain(start(create(project, definition)))
    work = taken()
    TaskRow.objects.update(heartbeat_due_ms=1)
    before = TaskRow.objects.get()
    complete.heartbeat(work.token)
    after = TaskRow.objects.get()
    assert (after.heartbeat_due_ms or 0) > 1
    assert after.timeout_due_ms == before.timeout_due_ms
    complete.fail(work.token)
    with raises_code(ErrorCode.TaskTimedOut):
        complete.heartbeat(work.token)
    assert TaskRow.objects.get().heartbeat_due_ms is None
