"""A call that would wait for long is refused at once, in the words of its protocol."""

from __future__ import annotations

import asyncio
import json
import threading
import time
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest

from console.asgi import application
from console.fast_path import threads as threads_module
from console.fast_path.threads import COUNT, Threads
from tests.acceptance.server import START_S
from tests.loops import looped

if TYPE_CHECKING:
    from collections.abc import Iterator

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


async def _call(path: str, *headers: tuple[bytes, bytes]) -> tuple[int, dict[bytes, bytes], bytes]:
    sent: list[dict[str, Any]] = []

    async def send(message: dict[str, Any]) -> None:
        sent.append(message)

    async def receive() -> dict[str, Any]:
        msg = "the body was read"
        raise AssertionError(msg)

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
        waiting = [threads.run(free.wait) for _ in range(COUNT + threads_module._MANY_WAITING)]
        filled.set()
        return list(await asyncio.gather(*waiting))

    filled = threading.Event()
    filling = threading.Thread(target=lambda: looped(fill, 2 * START_S))
    filling.start()
    filled.wait(START_S)
    deadline = time.monotonic() + START_S
    while not threads.overloaded and time.monotonic() < deadline:
        time.sleep(0.01)
    yield threads
    free.set()
    filling.join(START_S)


def test_a_call_is_refused_before_it_is_read(crowded: Threads) -> None:
    """The answer is 503 in AWS's form, and does not wait for the body."""
    assert crowded.overloaded
    status, headers, body = _answer("/", _JSON, _TARGET)
    assert status == 503
    assert headers[b"x-amzn-errortype"] == b"ServiceUnavailable"
    assert json.loads(body)["__type"].endswith("#ServiceUnavailable")


def test_other_protocols_say_it_in_their_way(crowded: Threads) -> None:
    """XML for the query protocol, and JSON for EventBridge Scheduler."""
    assert crowded.overloaded
    sts = (b"authorization", _SIGNED.format("sts").encode())
    status, _, body = _answer("/", _FORM, sts)
    assert (status, b"<Code>ServiceUnavailable</Code>" in body) == (503, True)
    scheduler = (b"authorization", _SIGNED.format("scheduler").encode())
    status, headers, _ = _answer("/schedules/one", scheduler)
    assert (status, headers[b"x-amzn-errortype"]) == (503, b"ServiceUnavailable")


def test_many_that_came_just_now_are_no_overload() -> None:
    """A burst is taken: nobody has waited for long."""
    threads = Threads(0, "none")

    async def burst() -> bool:
        waiting = [threads.run(time.time) for _ in range(2 * threads_module._MANY_WAITING)]
        busy = threads.overloaded
        del waiting
        return busy

    assert not looped(burst)


def test_few_that_wait_for_long_are_no_overload(monkeypatch: pytest.MonkeyPatch) -> None:
    """A slow database holds up a few calls; they wait for it as ever."""
    threads = Threads(0, "none")
    monkeypatch.setattr(threads_module, "_LONG_WAIT_S", -1.0)

    async def few() -> bool:
        waiting = [threads.run(time.time) for _ in range(threads_module._MANY_WAITING - 1)]
        busy = threads.overloaded
        del waiting
        return busy

    assert not looped(few)
