"""Every caller gets its own answer, from any thread that made it.

(On the embedded database: with another one every call has a thread.)
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import threading
import time
from typing import TYPE_CHECKING, Any

import pytest
from django.core.exceptions import SynchronousOnlyOperation
from django.db import DEFAULT_DB_ALIAS, OperationalError, connection, connections

from console.awsapi import asgi
from console.awsapi.operations.call import wait_for
from console.config import quotas
from console.db import merged, writer
from console.db.writer import Change
from console.errors import ErrorCode, ProtocolError
from console.models import Activity, Execution
from console.own_api import LongPoll
from console.server.threads import Threads, await_write, run_in_loop
from console.statuses import Topic
from console.store.executions.find import get_execution
from console.store.state import throttle
from console.store.tasks import activities
from tests.console.store.helpers import PASS, REGION, create, start
from tests.loops import looped
from tests.waiting import PATIENCE_S, wait_until

if TYPE_CHECKING:
    from collections.abc import Callable

    from console.models import Project


def test_many_threads_answer_one_loop() -> None:
    """A thousand calls on eight threads: each gets its own result, or its own error."""
    threads = Threads(8, "many")

    def work(number: int) -> int:
        if number % 7 == 0:
            raise LookupError(number)
        return number * 2

    async def ask() -> list[Any]:
        calls = [threads.run(work, number) for number in range(1000)]
        return list(await asyncio.gather(*calls, return_exceptions=True))

    for number, answer in enumerate(looped(ask)):
        assert answer.args == (number,) if number % 7 == 0 else answer == number * 2


@pytest.mark.sqlite_only
def test_an_embedded_database_is_read_in_the_event_loop(project: Project) -> None:
    """A row of SQLite takes less time than waking another thread; all tasks use one connection."""
    execution = start(create(project, PASS))

    def read() -> tuple[str, int]:
        row = get_execution(project, execution.arn)
        return row.arn, id(connection.connection)

    async def task() -> tuple[str, int]:
        return run_in_loop(read)

    async def ask() -> list[tuple[str, int]]:
        return await asyncio.gather(*(task() for _ in range(5)))

    [(arn, _)] = set(looped(ask))
    assert arn == execution.arn


@pytest.mark.postgres_only
def test_a_database_of_its_own_process_is_not_read_in_the_event_loop(
    project: Project,
) -> None:
    """Django refuses, since a query may take long."""

    async def ask() -> int:
        return Execution.objects.filter(project=project).count()

    with pytest.raises(SynchronousOnlyOperation):
        looped(ask)


@pytest.mark.sqlite_only
def test_a_change_is_answered_after_its_commit(project: Project) -> None:
    """The loop goes on meanwhile; what was written is there, and what failed is not."""
    writer.write(lambda: None)  # the thread is there

    def make(name: str, *, fails: bool) -> Change[str]:
        def change() -> str:
            arn = activities.create_activity(project, REGION, name).arn
            if fails:
                raise LookupError(arn)
            return arn

        return Change(change, lambda arn: arn).then(str.upper)

    async def ask() -> tuple[Any, ...]:
        spare = Threads(1, "spare")
        both = (
            await_write(make("kept", fails=False), spare),
            await_write(make("gone", fails=True), spare),
        )
        return tuple(await asyncio.gather(*both, return_exceptions=True))

    answer, gone = looped(ask)
    assert answer == Activity.objects.get().arn.upper()
    assert isinstance(gone, LookupError)


@pytest.mark.sqlite_only
def test_an_answer_may_be_found_after_a_failed_commit(project: Project) -> None:
    """On a thread, because it may take long."""
    del project
    where: list[str] = []

    def fails() -> None:
        raise OperationalError("disk I/O error")

    def rescue(error: Exception) -> str:
        where.append(threading.current_thread().name)
        return f"in spite of {error}"

    pending: Change[str] = Change(fails, str, rescue)
    spare = Threads(1, "spare")
    assert looped(lambda: await_write(pending, spare)) == "in spite of disk I/O error"
    assert where == ["spare-0"]
    assert pending.result() == "in spite of disk I/O error"


@pytest.mark.sqlite_only
def test_a_thread_hands_a_change_over_and_the_loop_hears_of_its_commit(project: Project) -> None:
    """Also of what failed, and of an answer that is no change; a late one is not begun."""
    threads = Threads(1, "handing")

    def make(name: str) -> Change[str]:
        return Change(lambda: activities.create_activity(project, REGION, name).name, str.upper)

    def fails() -> None:
        raise LookupError

    async def ask() -> list[Any]:
        now = time.monotonic()
        jobs: tuple[Callable[[], Any], ...] = (
            lambda: make("kept"),
            lambda: Change(fails),
            fails,
            lambda: "read",
        )
        return list(
            await asyncio.gather(
                *(threads.run_to_commit(now, job) for job in jobs), return_exceptions=True
            )
        )

    answer, gone, failed, read = looped(ask)
    assert (answer, read) == ("KEPT", "read")
    assert isinstance(gone, LookupError)
    assert isinstance(failed, LookupError)
    assert Activity.objects.get().name == "kept"


def test_threads_are_started_as_they_are_needed(monkeypatch: pytest.MonkeyPatch) -> None:
    """One for jobs one after another, and as many as there may be for those that wait."""
    threads, free = Threads(4, "needed"), threading.Event()
    names: set[str] = set()

    def job(barrier: threading.Barrier | None = None) -> None:
        names.add(threading.current_thread().name)
        if barrier is not None:
            barrier.wait(PATIENCE_S)

    async def flow() -> None:
        for _ in range(5):
            await threads.run(job)
            wait_until(lambda: threads._idle == 1)  # else a second one may be started
        assert names == {"needed-0"}
        together = threading.Barrier(4)  # it opens if four run at once
        await asyncio.gather(*(threads.run(job, together) for _ in range(4)))
        await asyncio.gather(*(threads.run(job) for _ in range(40)))

    looped(flow)
    assert names == {f"needed-{number}" for number in range(4)}

    def refuse(_: object) -> None:
        raise RuntimeError("can't start new thread")

    fewer, none = Threads(4, "fewer"), Threads(1, "none")

    async def refused() -> None:
        held = fewer.run(free.wait, PATIENCE_S)
        monkeypatch.setattr(threading.Thread, "start", refuse)
        later = fewer.run(int)  # waits for the only one
        free.set()
        assert (await held, await later) == (True, 0)
        with pytest.raises(RuntimeError, match="new thread"):
            none.run(int)

    looped(refused)
    assert not none._waiting_since


@pytest.mark.postgres_only
def test_a_thread_keeps_no_connection_when_it_has_nothing_to_do(
    transactional_db: None,
) -> None:
    """Others may need it; and after a restart of the database a kept one fails the next call."""
    threads = Threads(1, "idle")
    seen: list[Any] = []

    def connect() -> None:
        connection.ensure_connection()
        seen.append(connections[DEFAULT_DB_ALIAS])

    def fail() -> None:
        connect()
        raise LookupError

    async def ask() -> None:
        for job in (connect, fail):
            with contextlib.suppress(LookupError):
                await threads.run(job)
            assert seen.pop().connection is None

    looped(ask)


@pytest.mark.postgres_only
def test_what_is_looked_at_beside_a_call_leaves_no_connection_behind(
    transactional_db: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A look for an answer, taking it back, and finding out what became of a failed commit."""
    threads = Threads(1, "looks")
    seen: list[Any] = []

    def look(*_: object) -> dict[str, Any]:
        connection.ensure_connection()
        seen.append(connections[DEFAULT_DB_ALIAS])
        return {}

    def refuse(_: object) -> None:
        raise OperationalError

    async def ask() -> None:
        later = LongPoll(look, (Topic.RUNNABLE,), 5, {}, undo=look)
        await wait_for(later, threads, receive=_gone)
        failed: Change[Any] = Change(lambda: None, rescue=look, mergeable=True)
        assert failed.may_be_handed_over()
        monkeypatch.setattr(merged, "commit", refuse)
        await await_write(failed, threads)

    looped(ask)
    assert len(seen) == 3
    assert [wrapper.connection for wrapper in seen] == [None] * 3


def test_a_server_that_shuts_down_answers_long_polls(monkeypatch: pytest.MonkeyPatch) -> None:
    """A worker hears that there is no task; other calls are made again by SDKs."""
    threads, shutting_down = Threads(1, "ends"), threading.Event()
    monkeypatch.setattr("console.awsapi.operations.call.SHUTTING_DOWN", shutting_down)
    longest_s = 10 * PATIENCE_S  # for which they would wait

    def look() -> None:
        shutting_down.set()

    async def ask() -> None:
        worker = LongPoll(look, (Topic.RUNNABLE,), longest_s, {"waited": True}, one_each=True)
        async with asyncio.timeout(PATIENCE_S):
            assert await wait_for(worker, threads) == {"waited": True}
            with pytest.raises(ProtocolError) as refused:
                await wait_for(LongPoll(look, (Topic.RUNNABLE,), longest_s, {}), threads)
        assert refused.value.code == ErrorCode.ServiceUnavailable

    looped(ask)


def test_an_answer_that_is_there_is_given_while_the_server_shuts_down(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Else an SDK would start an execution again that has ended; but no task is handed out."""
    threads, shutting_down = Threads(1, "there"), threading.Event()
    monkeypatch.setattr("console.awsapi.operations.call.SHUTTING_DOWN", shutting_down)
    shutting_down.set()
    looks: list[str] = []

    def look() -> dict[str, Any]:
        looks.append("look")
        return {"status": "SUCCEEDED"}

    async def ask() -> None:
        assert await wait_for(LongPoll(look, (Topic.RUNNABLE,), 60, {}), threads) == look()
        looks.clear()
        assert (
            await wait_for(LongPoll(look, (Topic.RUNNABLE,), 60, {}, one_each=True), threads) == {}
        )

    looped(ask)
    assert not looks


async def _gone() -> dict[str, Any]:
    return {"type": "http.disconnect"}


def test_an_error_that_a_loop_does_not_take_is_told_all_the_same() -> None:
    """StopIteration cannot be raised into a coroutine; nobody must wait for ever."""
    threads = Threads(1, "stops")

    async def ask() -> None:
        await threads.run(next, iter(()))

    with pytest.raises(RuntimeError, match="StopIteration"):
        looped(ask)


def test_who_stops_waiting_takes_nothing_back() -> None:
    """The job goes on, and a thread that tells a loop of it, gone or not, is not disturbed."""
    threads = Threads(1, "left")
    free, done = threading.Event(), threading.Event()

    def job() -> None:
        free.wait(PATIENCE_S)
        done.set()

    async def leave() -> None:
        waiting = threads.run(job)
        waiting.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await waiting

    looped(leave)
    free.set()
    assert done.wait(PATIENCE_S)

    async def again() -> str:
        return str(await threads.run(lambda: "heard"))

    assert looped(again) == "heard"


async def call(target: str, body: dict[str, Any]) -> dict[str, Any]:
    """Send a call through the edge and return what it answers."""
    sent: list[dict[str, Any]] = []
    text = json.dumps(body).encode()

    heard = False

    async def receive() -> dict[str, Any]:
        nonlocal heard
        if heard:
            await asyncio.Event().wait()  # the caller stays
        heard = True
        return {"type": "http.request", "body": text}

    async def send(message: dict[str, Any]) -> None:
        sent.append(message)

    headers = [
        (b"host", b"localhost"),
        (b"content-type", b"application/x-amz-json-1.0"),
        (b"x-amz-target", f"AWSStepFunctions.{target}".encode()),
    ]
    scope = {"path": "/", "query_string": b"", "headers": headers}
    await asgi.aws_application(scope, receive, send)
    answer: dict[str, Any] = json.loads(sent[1]["body"])
    assert sent[0]["status"] == 200, answer
    return answer


def act_as_owner(project: Project, django_user_model: Any, monkeypatch: Any, settings: Any) -> None:
    """Let every call be one of an owner of a project."""
    from console import access
    from console.models import Membership, Role

    user = django_user_model.objects.create_user("ana")
    Membership.objects.create(project=project, user=user, role=Role.OWNER)
    settings.STATEYARD_ACCEPT_ANY_KEY = True
    monkeypatch.setattr(
        access, "anonymous_principal", lambda: access.Principal(user, project, Role.OWNER, "k")
    )


@pytest.mark.sqlite_only
def test_short_calls_hold_no_thread(
    project: Project, django_user_model: Any, monkeypatch: Any, settings: Any
) -> None:
    """With every thread busy an execution is started, described, worked and ended all the same."""
    act_as_owner(project, django_user_model, monkeypatch, settings)
    work = activities.create_activity(project, REGION, "work").arn
    state = {"Type": "Task", "Resource": work, "End": True}
    machine = create(project, {"StartAt": "A", "States": {"A": state}})
    busy, free = Threads(1, "busy"), threading.Event()
    monkeypatch.setattr(asgi, "threads", lambda: busy)

    async def flow() -> str:
        held = busy.run(free.wait, 30)
        begun = await call("StartExecution", {"stateMachineArn": machine.arn})
        got = await call("GetActivityTask", {"activityArn": work})
        await call("SendTaskSuccess", {"taskToken": got["taskToken"], "output": "{}"})
        seen = await call("DescribeExecution", {"executionArn": begun["executionArn"]})
        assert not held.done()
        free.set()
        await held
        return str(seen["status"])

    assert looped(flow) == "SUCCEEDED"  # the outcome of a task moves its execution


@pytest.mark.sqlite_only
def test_the_loop_does_not_wait_for_a_commit_of_a_quota(
    project: Project, django_user_model: Any, monkeypatch: Any, settings: Any
) -> None:
    """A token of the rate of starts is taken by a commit: another thread waits for it."""
    act_as_owner(project, django_user_model, monkeypatch, settings)
    machine = create(project, {"StartAt": "A", "States": {"A": {"Type": "Pass", "End": True}}})
    started_on: set[int] = set()
    monkeypatch.setattr(throttle, "start_allowed", lambda *_: started_on.add(threading.get_ident()))

    async def start_one() -> int:
        await call("StartExecution", {"stateMachineArn": machine.arn})
        return threading.get_ident()

    settings.STATEYARD_QUOTAS = {"state_transition": {"bucket": 10, "refill": 1}}
    quotas.forget()
    assert asgi._is_short("StartExecution", b"{}")  # of this quota nothing is taken at a start
    settings.STATEYARD_QUOTAS = {"start_execution": {"bucket": 10, "refill": 1}}
    quotas.forget()
    try:
        loop_thread = looped(start_one)
    finally:
        settings.STATEYARD_QUOTAS = {}
        quotas.forget()
    assert len(started_on) == 1
    assert loop_thread not in started_on
