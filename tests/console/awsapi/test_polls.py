"""GetActivityTask reads the rows once, and takes a task on the thread that answers the call."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from console.awsapi import asgi
from console.awsapi.operations import call
from console.awsapi.operations.call import wait_for
from console.db import instruments, signals
from console.db.writer import Change
from console.models import TaskRow
from console.own_api import LongPoll
from console.server.threads import Threads
from tests.console.store.helpers import WORK
from tests.loops import looped
from tests.waiting import PATIENCE_S

if TYPE_CHECKING:
    from tests.console.awsapi.world import World

pytestmark = pytest.mark.postgres_too


@pytest.fixture(autouse=True)
def anyone(settings: Any, world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """Accept calls without a signature, as those of the world's owner."""
    settings.STATEYARD_ACCEPT_ANY_KEY = True
    caller = (world.principal, "us-east-1")
    monkeypatch.setattr(asgi, "identify_caller", lambda *_, **__: caller)


def begin(world: World) -> Any:
    """Begin GetActivityTask as a thread of the server does."""
    headers = {
        "host": ["localhost"],
        "content-type": ["application/x-amz-json-1.0"],
        "x-amz-target": ["AWSStepFunctions.GetActivityTask"],
    }
    body = f'{{"activityArn": "{world.activity}"}}'.encode()
    return asgi.answer_call({"path": "/", "query_string": b""}, headers, body, "request")


def commits() -> int:
    """Return how many transactions of this process have written."""
    return sum(spread.count for spread in instruments.COMMITS.read().values())


def waited(poll: LongPoll, receive: Any = None) -> dict[str, Any]:
    """Wait for the answer of a poll in an event loop."""

    async def answer() -> dict[str, Any]:
        threads = Threads(1, "poll")
        try:
            return await wait_for(poll, threads, receive)
        finally:
            await threads.run(lambda: connection.close())  # noqa: PLW0108 - the thread's own

    return looped(answer)


async def gone() -> dict[str, Any]:
    """Say that the caller has left."""
    return {"type": "http.disconnect"}


def counted(poll: LongPoll, looks: list[str]) -> LongPoll:
    """Return a poll that notes each look."""

    def look() -> Any:
        looks.append("look")
        return poll.look()

    return replace(poll, look=look)


def test_a_poll_without_a_task_reads_one_row_and_writes_nothing(world: World) -> None:
    """It waits for a signal then, without another look."""
    begin(world)  # what a process reads once
    before = commits()
    with CaptureQueriesContext(connection) as queries:
        poll = begin(world)
    assert isinstance(poll, LongPoll)
    assert [query["sql"].split()[0] for query in queries] == ["SELECT"]
    looks: list[str] = []
    assert waited(counted(poll, looks), gone) == {}
    assert looks == []
    assert commits() == before
    assert waited(counted(replace(poll, seen=None), looks), gone) == {}
    assert looks == ["look"]


def test_a_task_is_taken_by_one_commit_of_the_first_thread(world: World) -> None:
    """The event loop gets the answer: no other thread looks."""
    world.start(world.fresh(WORK))
    before = commits()
    change = begin(world)
    assert isinstance(change, Change)
    poll = change.result()
    assert commits() == before + 1
    looks: list[str] = []
    assert "taskToken" in waited(counted(poll, looks))
    assert looks == []
    assert TaskRow.objects.get().status == "started"


def test_a_task_taken_at_once_for_nobody_is_put_back(world: World) -> None:
    """The caller left during the commit."""
    world.start(world.fresh(WORK))
    waited(begin(world).result(), gone)
    assert TaskRow.objects.get().status == "scheduled"


def test_a_task_that_another_poller_took_is_waited_for(world: World) -> None:
    """The rows had a task, and the commit found none."""
    world.start(world.fresh(WORK))
    change = begin(world)
    assert isinstance(change, Change)
    if connection.vendor == "postgresql":
        assert change.may_be_handed_over()
    assert world.ask("GetActivityTask", activityArn=world.activity)
    poll = change.result()
    assert poll.first is None
    assert waited(replace(poll, seconds=0.01)) == {}


def test_a_signal_before_the_wait_makes_it_look(world: World) -> None:
    """1. The poll finds no task.  2. A task is committed.  3. The poll begins to wait."""
    poll = begin(world)
    world.start(world.fresh(WORK))
    assert poll.seen != signals.last_signal(poll.topic)
    assert "taskToken" in waited(poll)


def test_a_lost_signal_delays_a_poll(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """It looks again after a while."""
    poll = begin(world)
    world.start(world.fresh(WORK))
    monkeypatch.setattr(call, "LOOK_AGAIN_S", 0.01)
    lost = replace(poll, seen=signals.last_signal(poll.topic), seconds=PATIENCE_S)
    assert "taskToken" in waited(lost)
