"""Limit request bodies and the number of concurrent page requests.

Django reads a whole body into a temporary file before any of our code runs, and gives each request
a thread and a database connection: 200 concurrent requests took hundreds of megabytes, which the
process never released. So a body above its page's limit is refused with 413, by its Content-Length
or while it arrives. A request takes a place after its body is read and gives it back when its
answer begins, so that slow clients hold no place.
"""

from __future__ import annotations

import asyncio
from http.cookies import CookieError, SimpleCookie
from typing import TYPE_CHECKING, Any

from asgiref.sync import sync_to_async
from django.conf import settings

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    Receive = Callable[[], Awaitable[dict[str, Any]]]
    Send = Callable[[dict[str, Any]], Awaitable[None]]
    Application = Callable[[dict[str, Any], Receive, Send], Awaitable[None]]

PAGES = 8
"""Pages made at a time.

200 lists of 100 executions at once, on two cores: 8 made 17 to 23 pages a second in 192 MB, 4 made
15 in 169 MB, without a bound (80 threads) it were 7 to 10 in 469 MB. Fewer arenas of malloc saved
nothing beyond that.
"""
SLOW = 64
"""Requests at a time that may wait for something outside for minutes, as a start link does."""
_SLOW = ("/start/",)
_UNBOUND = ("/healthz", "/readyz", "/static/")
_SMALL_BYTES = 65_536
_IMPORT_BYTES = 65 * 1024 * 1024


class _TooLargeError(Exception):
    """A body exceeds its page's limit."""


class Admission:
    """ASGI application that passes admitted requests to another application, and refuses others."""

    def __init__(self, application: Application) -> None:
        """Start with all places free."""
        self._application = application
        self._pages = asyncio.Semaphore(PAGES)
        self._slow = asyncio.Semaphore(SLOW)

    async def __call__(self, scope: dict[str, Any], receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] != "http":
            return
        most = await _max_body_bytes(scope)
        if _declared_bytes(scope) > most:
            await _refuse(send, most)
            return
        request = _AdmittedRequest(receive, send, most, self._places(scope["path"]))
        try:
            await self._application(scope, request.receive, request.send)
        except _TooLargeError:
            await _refuse(send, most)
        finally:
            request.leave()

    def _places(self, path: str) -> asyncio.Semaphore | None:
        if path.startswith(_UNBOUND):
            return None
        return self._slow if path.startswith(_SLOW) or path.endswith("/test/") else self._pages


class _AdmittedRequest:
    """One request with its body size and its place."""

    def __init__(
        self, receive: Receive, send: Send, most: int, places: asyncio.Semaphore | None
    ) -> None:
        self._receive = receive
        self._send = send
        self._left = most
        self._places = places
        self._has_place = False
        self._whole = False

    async def receive(self) -> dict[str, Any]:
        """Return the next part of the body; the last part waits for a place.

        No message follows the last part, not even about a disconnected client: Django would end the
        request, and its place would be free while its thread still works.
        """
        if self._whole:
            await asyncio.Event().wait()
        message = await self._receive()
        self._left -= len(message.get("body", b""))
        if self._left < 0:
            raise _TooLargeError
        if message["type"] == "http.request" and not message.get("more_body"):
            self._whole = True
            await self._enter()
        return message

    async def _enter(self) -> None:
        if self._places is not None and not self._has_place:
            await self._places.acquire()
            self._has_place = True

    async def send(self, message: dict[str, Any]) -> None:
        """Send a part of the answer, and give the place back."""
        self.leave()
        await self._send(message)

    def leave(self) -> None:
        """Give the place back."""
        if self._places is not None and self._has_place:
            self._has_place = False
            self._places.release()
            self._places = None


# -- bodies ----------------------------------------------------------------------------------------


async def _max_body_bytes(scope: dict[str, Any]) -> int:
    """Return the body limit in bytes: by path, larger for an import by a signed-in user."""
    path: str = scope["path"]
    if path.startswith(("/login/", "/logout/", "/preferences/")):
        return _SMALL_BYTES
    if path == "/import/" and _declared_bytes(scope) != 0 and await _is_signed_in(scope):
        return _IMPORT_BYTES
    most: int = settings.DATA_UPLOAD_MAX_MEMORY_SIZE
    return most


def _declared_bytes(scope: dict[str, Any]) -> int:
    """Return the Content-Length, 0 without one, -1 for a chunked body."""
    headers = dict(scope["headers"])
    if b"transfer-encoding" in headers:
        return -1
    text = headers.get(b"content-length", b"0")
    return int(text) if text.isdigit() else 0


async def _is_signed_in(scope: dict[str, Any]) -> bool:
    """Whether a request has the session of a signed-in user."""
    cookies = b"; ".join(value for name, value in scope["headers"] if name == b"cookie")
    try:
        cookie = SimpleCookie(cookies.decode("latin-1")).get(settings.SESSION_COOKIE_NAME)
    except CookieError:
        return False
    key = "" if cookie is None else cookie.value
    return key.isascii() and key.isalnum() and await sync_to_async(_is_open)(key)


def _is_open(key: str) -> bool:
    from django.contrib.auth import SESSION_KEY
    from django.contrib.sessions.backends.db import SessionStore

    from console.db.writer import drop_broken_connection, release_connection

    # No Django request has begun, so its signals do not renew or return this connection.
    drop_broken_connection()
    try:
        return SESSION_KEY in SessionStore(key)
    finally:
        release_connection()


async def _refuse(send: Send, most: int) -> None:
    """Answer 413; the server discards the rest of the body."""
    text = f"413: the request is larger than the {most:,} bytes that this page takes.\n".encode()
    headers = [
        (b"content-type", b"text/plain; charset=utf-8"),
        (b"content-length", str(len(text)).encode()),
        (b"cache-control", b"no-store"),
        (b"content-security-policy", b"default-src 'none'; frame-ancestors 'none'"),
        (b"x-content-type-options", b"nosniff"),
    ]
    await send({"type": "http.response.start", "status": 413, "headers": headers})
    await send({"type": "http.response.body", "body": text})
