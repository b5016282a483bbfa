"""A call that would wait for long is refused at once, in the words of its protocol."""

from __future__ import annotations

import asyncio
import json
import threading
import time
from concurrent.futures import Future
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest

from console.asgi import application
from console.db import overload, signals
from console.db.writer import Change, settled
from console.errors import ErrorCode, ProtocolError
from console.models import Execution
from console.server.threads import COUNT, Threads
from console.store.executions import start, waiting_starts
from tests.acceptance.server import START_S
from tests.console.store.helpers import PASS, create, function
from tests.loops import looped
from tests.waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator

    from console.models import Project
    from tests.console.awsapi.world import World

_JSON = (b"content-type", b"application/x-amz-json-1.0")
_TARGET = (b"x-amz-target", b"AWSStepFunctions.ListStateMachines")
_SIGNED = (
    "AWS4-HMAC-SHA256 Credential=AKIA/20260101/us-east-1/{}/aws4_request, "
    f"SignedHeaders=host;x-amz-date, Signature={'0' * 64}"
)
_FORM = (b"content-type", b"application/x-www-form-urlencoded; charset=utf-8")


def _answer(path: str, *headers: tuple[bytes, bytes]) -> tuple[int, dict[bytes, bytes], bytes]:
    """Send a call whose body never comes; return status, headers and body of its answer."""
    return looped(partial(_call, path, *headers))


_read: list[str] = []
"""The paths of calls whose body was asked for."""


async def _call(path: str, *headers: tuple[bytes, bytes]) -> tuple[int, dict[bytes, bytes], bytes]:
    sent: list[dict[str, Any]] = []

    async def send(message: dict[str, Any]) -> None:
        sent.append(message)

    async def receive() -> dict[str, Any]:
        _read.append(path)
        return {"type": "http.disconnect"}

    asked = {"path": path, "raw_path": path.encode(), "query_string": b""}
    about = {"type": "http", "method": "POST", "headers": list(headers), **asked}
    await application(about, receive, send)
    return sent[0]["status"], dict(sent[0]["headers"]), sent[1]["body"]


@pytest.fixture
def crowded(monkeypatch: pytest.MonkeyPatch) -> Iterator[Threads]:
    """Threads of the API that are all taken, and many calls that wait for them."""
    threads = Threads(COUNT, "crowded")
    monkeypatch.setattr("console.awsapi.asgi.threads", lambda: threads)
    free = threading.Event()

    async def fill() -> list[bool]:
        waiting = [threads.run(free.wait) for _ in range(COUNT + overload.MANY_WAITING)]
        filled.set()
        return list(await asyncio.gather(*waiting))

    filled = threading.Event()
    filling = threading.Thread(target=lambda: looped(fill, 2 * START_S))
    filling.start()
    filled.wait(START_S)
    wait_until(lambda: threads.overloaded)
    yield threads
    free.set()
    filling.join(START_S)


def test_a_call_is_refused_before_it_is_read(crowded: Threads) -> None:
    """The answer is 503 in AWS's form, and does not wait for the body."""
    assert crowded.overloaded
    _read.clear()
    status, headers, body = _answer("/", _JSON, _TARGET)
    assert status == 503
    assert headers[b"x-amzn-errortype"] == b"ServiceUnavailable"
    assert json.loads(body)["__type"].endswith("#ServiceUnavailable")
    assert _read == []


def test_other_protocols_say_it_in_their_way(crowded: Threads) -> None:
    """XML for the query protocol, and JSON for EventBridge Scheduler."""
    assert crowded.overloaded
    sts = (b"authorization", _SIGNED.format("sts").encode())
    status, _, body = _answer("/", _FORM, sts)
    assert (status, b"<Code>ServiceUnavailable</Code>" in body) == (503, True)
    scheduler = (b"authorization", _SIGNED.format("scheduler").encode())
    status, headers, _ = _answer("/schedules/one", scheduler)
    assert (status, headers[b"x-amzn-errortype"]) == (503, b"ServiceUnavailable")


_START = (b"x-amz-target", b"AWSStepFunctions.StartExecution")


@pytest.fixture
def door(monkeypatch: pytest.MonkeyPatch) -> None:
    """A door that is open, and stays for an hour as it is left; waits are told apart by hours."""
    monkeypatch.setattr(overload, "starts_refused_until", 0.0)
    monkeypatch.setattr(overload, "BEHIND_S", 3600.0)
    monkeypatch.setattr(overload, "REFUSED_S", 3600.0)


@pytest.mark.usefixtures("door")
@pytest.mark.parametrize(
    ("hours", "remaining", "behind"),
    [
        (0, 2 * overload.MANY_WAITING, False),
        (2, overload.MANY_WAITING - 1, False),
        (2, overload.MANY_WAITING, True),
    ],
)
def test_the_thread_that_commits_is_behind(*, hours: int, remaining: int, behind: bool) -> None:
    """If it leaves many, and what it takes has waited for long; until it leaves few."""
    since = time.monotonic() - hours * 3600
    jobs: list[tuple[Any, float | None]] = [((None, Future()), None), ((None, Future()), since)]
    overload.refuse_late(jobs, remaining)
    assert overload.is_behind() == behind
    overload.refuse_late(jobs[:1], 0)
    assert not overload.is_behind()


def test_a_start_is_refused_at_the_door(monkeypatch: pytest.MonkeyPatch) -> None:
    """While the thread that commits is behind; what reads, or ends work, is let in."""
    monkeypatch.setattr(overload, "starts_refused_until", float("inf"))
    _read.clear()
    status, headers, _ = _answer("/", _JSON, _START)
    assert (status, headers[b"x-amzn-errortype"]) == (503, b"ServiceUnavailable")
    assert _read == []
    for let_in in (_TARGET, (_TARGET[0], b"AWSStepFunctions.SendTaskSuccess")):
        status, _, _ = _answer("/", _JSON, let_in)
        assert status != 503
    assert _read == ["/", "/"]


def test_many_that_came_just_now_are_no_overload() -> None:
    """A burst is taken: nobody has waited for long."""
    threads = Threads(0, "none")

    async def burst() -> bool:
        waiting = [threads.run(time.time) for _ in range(2 * overload.MANY_WAITING)]
        busy = threads.overloaded
        del waiting
        return busy

    assert not looped(burst)


def test_few_that_wait_for_long_are_no_overload(monkeypatch: pytest.MonkeyPatch) -> None:
    """A slow database holds up a few calls; they wait for it as ever."""
    threads = Threads(0, "none")
    monkeypatch.setattr(overload, "LONG_WAIT_S", -1.0)

    async def few() -> bool:
        waiting = [threads.run(time.time) for _ in range(overload.MANY_WAITING - 1)]
        busy = threads.overloaded
        del waiting
        return busy

    assert not looped(few)


# -- a call that has waited for long when its turn comes ------------------------------------------


def test_a_call_that_is_late_is_not_begun() -> None:
    """What came too long ago is refused if many wait behind it; the last few are done."""
    threads = Threads(1, "late")
    begun: list[int] = []
    free = threading.Event()
    calls = 2 * overload.MANY_WAITING

    async def crowd() -> list[Any]:
        first = threads.run(free.wait)
        long_ago = time.monotonic() - 2 * overload.LONG_WAIT_S
        waiting = [
            threads.run_in_time(long_ago, partial(begun.append, number)) for number in range(calls)
        ]
        free.set()
        await first
        return list(await asyncio.gather(*waiting, return_exceptions=True))

    answers = looped(crowd)
    refused = [number for number, answer in enumerate(answers) if answer is not None]
    assert all(isinstance(answers[number], overload.WaitedTooLong) for number in refused)
    assert refused == list(range(calls - overload.MANY_WAITING))
    assert begun == list(range(calls - overload.MANY_WAITING, calls))


@pytest.mark.usefixtures("door")
def test_a_change_that_is_late_is_not_written(project: Project) -> None:
    """It is refused before anything of it is written; changes of workers are never refused."""
    machine = create(project, PASS)
    long_ago = time.monotonic() - 2 * overload.LONG_WAIT_S
    held, free = threading.Event(), threading.Event()

    def hold() -> None:
        held.set()
        free.wait(START_S)

    def holding() -> Execution:
        signals.after_commit(hold)
        execution: Execution = first.write_rows()
        return execution

    first = start.pending_start(machine, name="holds", ahead=True)
    futures: list[Future[Change[Any]]] = []

    def hand_over(change: Change[Any], since: float | None) -> None:
        settled(change)
        futures.append(Future())
        change.hand_over(futures[-1].set_result, since)

    hand_over(Change(holding, mergeable=True), None)
    assert held.wait(START_S)
    for number in range(overload.MANY_WAITING):
        since = None if number == 5 else long_ago
        hand_over(start.pending_start(machine, name=f"start-{number}", ahead=True), since)
    free.set()
    outcomes = [future.result(START_S) for future in futures]
    assert [outcomes[place].result().name for place in (0, 6)] == ["holds", "start-5"]
    for outcome in [*outcomes[1:6], *outcomes[7:]]:
        with pytest.raises(overload.WaitedTooLong):
            outcome.result()
    assert set(Execution.objects.values_list("name", flat=True)) == {"holds", "start-5"}


# -- starts that nobody begins with ---------------------------------------------------------------


@pytest.fixture
def starts(monkeypatch: pytest.MonkeyPatch) -> Iterator[waiting_starts.WaitingStarts]:
    """Starts of a process that works them; two are many, and any wait is long."""
    monkeypatch.setattr(waiting_starts, "MANY_WAITING", 2)
    monkeypatch.setattr(waiting_starts, "LONG_WAIT_S", -1.0)
    yield waiting_starts.WAITING_STARTS
    waiting_starts.WAITING_STARTS.work(None)


def test_starts_are_refused_while_many_wait_to_begin(
    world: World, starts: waiting_starts.WaitingStarts
) -> None:
    """Until a worker has begun with them; executions that ended at once do not count."""
    slow: list[bool] = []
    starts.work(lambda: bool(slow))
    calling = world.fresh({"StartAt": "F", "States": {"F": function("echo", End=True)}})
    passing = world.fresh(PASS)
    for _ in range(3):
        world.start(passing)
    begun = [world.start(calling) for _ in range(2)]
    with pytest.raises(ProtocolError) as caught:
        world.start(passing)
    assert caught.value.code == ErrorCode.ServiceUnavailable
    slow.append(True)  # its functions hold it up: that is no overload of the server
    begun.append(world.start(calling))
    slow.clear()
    for arn in begun[:2]:
        starts.begin(Execution.objects.get(arn=arn).pk)
    world.start(calling)


def test_nothing_is_refused_where_nobody_works(
    project: Project, starts: waiting_starts.WaitingStarts
) -> None:
    """A web process of a team does not know what the workers have in hand."""
    del project
    for number in range(5):
        starts.add(number)
    assert not starts.too_many()
    starts.work(lambda: False)
    for number in range(5):
        starts.add(number)
    assert starts.too_many()
