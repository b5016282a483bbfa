"""Count the HTTP requests of this process by kind and status, and time the answers."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from console.db import instruments

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    Send = Callable[[dict[str, Any]], Awaitable[None]]

API, WAIT, SERVICE, PAGE, STATIC, PROBE = "api", "wait", "service", "page", "static", "probe"
"""Kinds of requests.

``api``: calls of Step Functions, and the server's own API; ``wait``: calls that wait for work or
for an end, up to minutes; ``service``: calls of other AWS services.
"""
_WAITS = (b"GetActivityTask", b"StartSyncExecution")
_PROBES = ("/healthz", "/readyz", "/metrics")
_UNANSWERED = "none"


class CountedAnswer:
    """An answer, counted at its end by its status code, or as ``none`` if it never began."""

    __slots__ = ("_code", "_kind", "_send", "_since")

    def __init__(self, kind: str, send: Send) -> None:
        """Start the clock. ``send``: the ASGI function that sends the answer."""
        self._kind, self._send = kind, send
        self._code = _UNANSWERED
        self._since = time.perf_counter()

    async def send(self, message: dict[str, Any]) -> None:
        """Send a part of the answer; record the status code of the first part."""
        if message["type"] == "http.response.start":
            self._code = str(message["status"])
        await self._send(message)

    def end(self) -> None:
        """Count the answer."""
        instruments.REQUESTS.add(self._kind, self._code)
        instruments.ANSWERS.add(time.perf_counter() - self._since, self._kind)


def kind_of_call(scope: dict[str, Any]) -> str:
    """Return the metric's kind of an AWS API call."""
    if scope["path"].endswith(("/GetActivityTask", "/StartSyncExecution")):
        return WAIT
    for name, value in scope["headers"]:
        if name == b"x-amz-target":
            return WAIT if value.endswith(_WAITS) else API
    return API


def kind_of_page(path: str) -> str:
    """Return the metric's kind of any other request."""
    if path.startswith("/static/"):
        return STATIC
    if path.startswith("/api/"):
        return API
    return PROBE if path in _PROBES else PAGE
