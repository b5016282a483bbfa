"""A page is made on one thread, without going back to the event loop between its parts."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest
from asgiref.sync import SyncToAsync
from asgiref.testing import ApplicationCommunicator
from django.core.handlers.asgi import ASGIHandler
from django.core.signals import request_finished
from django.http import HttpResponse

from console.server.page_handler import PageHandler
from tests.loops import looped

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

_SCOPE = {
    "type": "http",
    "method": "GET",
    "path": "/login/",
    "query_string": b"",
    "headers": [(b"host", b"localhost")],
}


def _answer(handler: ASGIHandler) -> list[dict[str, Any]]:
    """Ask a handler for the page of the login."""

    async def ask() -> list[dict[str, Any]]:
        connection = ApplicationCommunicator(handler, _SCOPE)
        await connection.send_input({"type": "http.request", "body": b""})
        begun = await connection.receive_output(10)
        body = await connection.receive_output(10)
        await connection.send_input({"type": "http.disconnect"})
        await connection.wait(10)
        return [begun, body]

    return looped(ask)


@pytest.fixture
def hops(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Note what goes from an event loop to a thread."""
    names: list[str] = []
    usual: Callable[..., Any] = SyncToAsync.__call__

    async def noted(self: Any, *args: Any, **kwargs: Any) -> Any:
        names.append(getattr(self.func, "__qualname__", str(self.func)))
        return await usual(self, *args, **kwargs)

    monkeypatch.setattr(SyncToAsync, "__call__", noted)
    return names


@pytest.mark.django_db(transaction=True)
def test_a_request_goes_to_its_thread_once(hops: list[str]) -> None:
    """Only what Django does before and after is apart; its own handler goes there ten times."""
    begun, body = _answer(PageHandler())
    assert begun["status"] == 200
    assert b"</html>" in body["body"]
    assert len([name for name in hops if "get_response" in name]) == 1
    own = len(hops)
    hops.clear()
    assert _answer(ASGIHandler())[0]["status"] == 200
    assert len(hops) >= own + 5


def test_an_end_that_fails_does_not_hide_the_first_error() -> None:
    """What could not be sent, and why, is what is raised."""
    response = HttpResponse(b"x")

    def fail() -> None:
        raise OSError("no end")

    response.close = fail  # type: ignore[method-assign]

    async def send(_message: Mapping[str, Any]) -> None:
        raise RuntimeError("the connection is gone")

    async def ask() -> None:
        with pytest.raises(RuntimeError, match="is gone"):
            await PageHandler().send_response(response, send)

    looped(ask)


@pytest.mark.django_db(transaction=True)
def test_a_request_ends_even_if_its_answer_cannot_be_sent() -> None:
    """Its end gives the connection to the database back, and there are a dozen of them."""
    ended: list[object] = []
    messages = [{"type": "http.request", "body": b""}]

    async def receive() -> dict[str, Any]:
        if not messages:
            await asyncio.Event().wait()
        return messages.pop()

    async def send(_message: Mapping[str, Any]) -> None:
        raise RuntimeError("the connection is gone")

    def note(**_more: object) -> None:
        ended.append(None)

    async def ask() -> None:
        with pytest.raises(RuntimeError, match="is gone"):
            await PageHandler()(_SCOPE, receive, send)

    request_finished.connect(note)
    try:
        looped(ask)
    finally:
        request_finished.disconnect(note)
    assert ended
