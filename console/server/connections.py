"""Limit what one HTTP connection can cost, in uvicorn's protocol, before our code sees a request.

uvicorn's parser waits for the rest of a request without a timeout, and keeps a header of any
length, copying it with each part: 77 MB in one line blocked all other requests for 18 s. So:

* Request headers have ``HEAD_BYTES`` (else 431) and ``HEAD_S`` seconds (else 408). The same bytes
  bound the text between two parts of a chunked body.
* A body arrives with at least ``BODY_BYTES`` in each ``BODY_S`` seconds, or whole (else 408). The
  clock stops while the application does not read.
* After an early answer such as 413, the rest of the request is read and discarded, up to
  ``REST_BYTES``: a client that only writes would otherwise never see the answer.
* A client that takes none of its answer for ``ANSWER_S`` seconds is disconnected.
* ``PIPELINED`` requests may wait for the answer to an earlier one of their connection.

uvicorn leaves some rules of HTTP to the application:

* A request has one Host, or, in HTTP/1.0, none (RFC 9112, 3.2). The host of an absolute URL in the
  request line takes precedence.
* Fields after a chunked body are no headers (RFC 9110, 6.5.1). A proxy checks and sets headers
  only: as a header, such a field would be trusted like one of the proxy.
* When a connection is lost, the running request is notified even if others are pipelined behind it.
  uvicorn stops reading when a pipelined request arrives: until it reads on, it does not notice that
  a client hung up.

uvicorn writes head and body of an answer separately: two system calls for us, and two packets that
wake the client. ``JoinedWrites`` sends both at once.

A timer is armed only while a request or answer is incomplete: most requests arrive whole, and cost
a few comparisons.
"""

from __future__ import annotations

import re
from http import HTTPStatus
from typing import TYPE_CHECKING, Any

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable

    from uvicorn.protocols.http.httptools_impl import RequestResponseCycle

HEAD_BYTES = 65_536
HEAD_S = 10.0
BODY_BYTES = 16_384
BODY_S = 15.0
REST_BYTES = 64 * 1024 * 1024
ANSWER_S = 30.0
PIPELINED = 100
_AUTHORITY = re.compile(rb"https?://([^/?#]*)", re.IGNORECASE)


class JoinedWrites:
    """A transport that sends the head of a response together with the start of the body.

    A head waits until the event loop's next turn at most, so that an answer whose body takes time
    begins at once. All other calls go to the wrapped transport.
    """

    def __init__(self, transport: asyncio.Transport, loop: asyncio.AbstractEventLoop) -> None:
        """``transport``: the real transport."""
        self._transport = transport
        self._loop = loop
        self._head = b""

    def __getattr__(self, name: str) -> Any:
        """Return other attributes of the real transport."""
        return getattr(self._transport, name)

    def write(self, data: bytes) -> None:
        """Send bytes, or hold the head of an answer for a moment.

        Bytes for a closed connection are dropped. uvloop's transport would raise instead, and the
        request would keep its connection to the database open.
        """
        if self._transport.is_closing():
            self._head = b""
        elif self._head:
            head, self._head = self._head, b""
            self._transport.writelines((head, data))
        elif data.startswith(b"HTTP/1.1 ") and data.endswith(b"\r\n\r\n"):
            self._head = data
            self._loop.call_soon(self._flush)
        else:
            self._transport.write(data)

    def close(self) -> None:
        """Send held bytes, then close."""
        self._flush()
        self._transport.close()

    def _flush(self) -> None:
        if self._head:
            head, self._head = self._head, b""
            if not self._transport.is_closing():
                self._transport.write(head)


class BoundedProtocol(HttpToolsProtocol):
    """uvicorn's HTTP protocol with limits of bytes and time."""

    def __init__(self, *args: Any, **more: Any) -> None:
        """Start without any data."""
        super().__init__(*args, **more)
        self._phase = "idle"  # or "head", "body": what of a request is still to come
        self._refused = False
        self._unframed = (
            0  # bytes since the last that were known to be a body's, or a request's end
        )
        self._body = 0
        self._rest = 0
        self._answering: RequestResponseCycle | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._unsent: asyncio.TimerHandle | None = None

    # -- what comes in -----------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Start the clock for the first request."""
        super().connection_made(JoinedWrites(transport, self.loop))  # type: ignore[arg-type]
        self._wait(HEAD_S, self._head_is_late)

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop the clocks and notify the running request; uvicorn notifies the newest."""
        if self._answering is not None and not self._answering.response_complete:
            self._answering.disconnected = True
            self._answering.message_event.set()
        for timer in (self._timer, self._unsent):
            if timer is not None:
                timer.cancel()
        self._timer = self._unsent = None
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Parse received bytes within the limits."""
        if self._refused:
            return
        self._unframed += len(data)
        super().data_received(data)
        if self._refused or self.transport.is_closing():
            return
        if self._unframed > HEAD_BYTES:
            self._refuse(HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE)
        elif self._phase == "idle" and not self._unframed:  # all that came in is whole
            self._stop_waiting()
        elif self._timer is None:
            self._look_later()

    def on_message_begin(self) -> None:
        """A request begins."""
        self._phase = "head"
        super().on_message_begin()

    def on_header(self, name: bytes, value: bytes) -> None:
        """Keep a header; ignore fields after the body."""
        if self._phase == "head":
            super().on_header(name, value)

    def on_headers_complete(self) -> None:
        """Start a request whose headers are within the limits."""
        size = len(self.url) + sum(len(name) + len(value) + 4 for name, value in self.headers)
        if self._refused or size > HEAD_BYTES or len(self.pipeline) >= PIPELINED:
            self._refuse(HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE)
            return
        self._take_host_of_address()
        if not self._has_one_host():
            self._refuse(HTTPStatus.BAD_REQUEST)
            return
        self._phase, self._unframed, self._body, self._rest = "body", 0, 0, 0
        self._stop_waiting()
        super().on_headers_complete()

    def _take_host_of_address(self) -> None:
        """Replace the Host header by the host of an absolute URL in the request line."""
        address = _AUTHORITY.match(self.url)
        if address is not None:
            self.headers[:] = [
                (name, address[1] if name == b"host" else value) for name, value in self.headers
            ]

    def _has_one_host(self) -> bool:
        """Whether a request has exactly one Host."""
        hosts = sum(name == b"host" for name, _ in self.headers)
        return hosts == 1 or (hosts == 0 and self.parser.get_http_version() < "1.1")

    def on_body(self, body: bytes) -> None:
        """Count a part of the body; discard it after an early answer."""
        if self._refused:
            return
        self._unframed = 0
        self._body += len(body)
        if self.cycle.response_complete:
            self._rest += len(body)
            if self._rest > REST_BYTES:
                self._refused = True
                self.transport.abort()
                return
        super().on_body(body)

    def on_message_complete(self) -> None:
        """The request is complete."""
        if self._refused:
            return
        self._phase, self._unframed = "idle", 0
        super().on_message_complete()

    def _start_asgi_task(self, cycle: RequestResponseCycle, app: Any) -> None:
        """Run the application for a request."""
        self._answering = cycle
        super()._start_asgi_task(cycle, app)

    def on_response_complete(self) -> None:
        """Answer the next pipelined request before reading on."""
        super().on_response_complete()
        if self.pipeline:
            self.flow.pause_reading()

    def _refuse(self, status: HTTPStatus) -> None:
        """Send one error answer and stop reading requests.

        Without a word if an earlier request waits for its answer, which the client would take this
        for, or if this one's has begun.
        """
        if self._refused:
            return
        self._refused = True
        self._stop_waiting()
        cycle = self.cycle
        before = cycle is None or cycle.response_complete
        own = self._phase == "body" and not self.pipeline and not cycle.response_started
        if before or own:
            self.transport.write(_answer(status))
        self.transport.close()

    # -- what does not come ------------------------------------------------------------------------

    def _wait(self, seconds: float, then: Callable[[], None]) -> None:
        self._timer = self.loop.call_later(seconds, then)

    def _stop_waiting(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _look_later(self) -> None:
        if self._phase == "body":
            self._body = 0
            self._wait(BODY_S, self._look_at_body)
        else:
            self._wait(HEAD_S, self._head_is_late)

    def _head_is_late(self) -> None:
        self._timer = None
        if self._phase == "head":
            self._refuse(HTTPStatus.REQUEST_TIMEOUT)
        else:  # not a word since it was opened
            self.transport.close()

    def _look_at_body(self) -> None:
        self._timer = None
        if self._phase != "body":
            return
        if self.cycle.response_complete:  # it has had its time to throw the rest away
            self.transport.abort()
        elif self._body < BODY_BYTES and not self.flow.read_paused:
            self._refuse(HTTPStatus.REQUEST_TIMEOUT)
        else:
            self._look_later()

    # -- what is not taken -------------------------------------------------------------------------

    def pause_writing(self) -> None:
        """The client does not read as fast as we write."""
        super().pause_writing()
        if self._unsent is None:
            self._look_at_answer(None)

    def _look_at_answer(self, before: int | None) -> None:
        self._unsent = None
        buffered = self.transport.get_write_buffer_size()
        if before is not None and buffered >= before:
            self.transport.abort()
        elif self.flow.write_paused:
            self._unsent = self.loop.call_later(ANSWER_S, self._look_at_answer, buffered)


def _answer(status: HTTPStatus) -> bytes:
    text = f"{status.value} {status.phrase}\n"
    lines = (
        f"HTTP/1.1 {status.value} {status.phrase}",
        "content-type: text/plain; charset=utf-8",
        f"content-length: {len(text)}",
        "connection: close",
    )
    return "\r\n".join((*lines, "", text)).encode()
