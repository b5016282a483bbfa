"""What of a connection becomes a request, and who is told when it is lost."""

from __future__ import annotations

import asyncio
import socket
from typing import TYPE_CHECKING, Any

import pytest
import uvicorn
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from console.server import serving
from console.server.connections import BoundedProtocol
from tests.loops import looped

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    Receive = Callable[[], Awaitable[dict[str, Any]]]
    Send = Callable[[dict[str, Any]], Awaitable[None]]
    Client = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]

_WAIT_S = 60.0
_HOST = b"Host: localhost\r\n"


class Recorder:
    """An application that keeps the headers of its requests, and which of them were given up."""

    def __init__(self) -> None:
        self.headers: list[dict[bytes, bytes]] = []
        self.under_way = asyncio.Event()
        self.given_up: list[str] = []
        self.told = asyncio.Event()

    async def __call__(self, scope: dict[str, Any], receive: Receive, send: Send) -> None:
        """Answer; the path ``/wait`` waits until its client has gone."""
        self.headers.append(dict(scope["headers"]))
        if scope["path"] == "/wait":
            self.under_way.set()
            while (await receive())["type"] != "http.disconnect":
                pass
            self.given_up.append(scope["path"])
            self.told.set()
            return
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b""})


def _serve(client: Client) -> Recorder:
    """Let a client talk to a server of its own, and return what its application saw."""

    async def run() -> Recorder:
        recorder = Recorder()
        config = uvicorn.Config(
            recorder, http=BoundedProtocol, ws="none", lifespan="off", log_config=None
        )
        config.load()
        state = uvicorn.Server(config).server_state

        def protocol() -> BoundedProtocol:
            return BoundedProtocol(config=config, server_state=state, app_state={})

        server = await asyncio.get_running_loop().create_server(protocol, "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        client.recorder = recorder  # type: ignore[attr-defined]
        await asyncio.wait_for(client(reader, writer), _WAIT_S)
        writer.close()
        server.close()
        return recorder

    return looped(run)


def _ask(request: bytes) -> tuple[bytes, list[dict[bytes, bytes]]]:
    """Send a request; return the first line of the answer, and the headers that arrived."""
    lines: list[bytes] = []

    async def client(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(request)
        lines.append(await reader.readline())

    recorder = _serve(client)
    return lines[0], recorder.headers


def test_a_field_after_the_body_is_no_header() -> None:
    """A proxy lets it pass: it could be the address or the cookie that the proxy checks."""
    line, headers = _ask(
        b"POST / HTTP/1.1\r\n" + _HOST + b"Transfer-Encoding: chunked\r\n\r\n"
        b"1\r\nx\r\n0\r\nX-Forwarded-For: 192.0.2.1\r\nCookie: a=b\r\n\r\n"
    )
    assert line.startswith(b"HTTP/1.1 200 ")
    assert headers == [{b"host": b"localhost", b"transfer-encoding": b"chunked"}]


@pytest.mark.parametrize(
    ("head", "status"),
    [
        (b"GET / HTTP/1.1\r\n\r\n", b"400"),
        (b"GET / HTTP/1.1\r\n" + _HOST + _HOST + b"\r\n", b"400"),
        (b"GET / HTTP/1.0\r\n" + _HOST + _HOST + b"\r\n", b"400"),
        (b"GET / HTTP/1.0\r\n\r\n", b"200"),
        (b"GET / HTTP/1.1\r\n" + _HOST + b"\r\n", b"200"),
    ],
)
def test_a_request_says_once_to_whom_it_goes(head: bytes, status: bytes) -> None:
    """RFC 9112, 3.2: only HTTP/1.0 may leave it out."""
    line, headers = _ask(head)
    assert line.split()[1] == status
    assert bool(headers) == (status == b"200")


@pytest.mark.parametrize("address", [b"http://other.example/", b"http://other.example:80/a?b=c"])
def test_the_host_of_a_whole_address_counts(address: bytes) -> None:
    """RFC 9112, 3.2.2: the Host beside it does not."""
    _, headers = _ask(b"GET " + address + b" HTTP/1.1\r\n" + _HOST + b"\r\n")
    (host,) = headers[0].values()
    assert host.split(b":")[0] == b"other.example"


def test_uvicorn_still_starts_requests_where_we_note_them() -> None:
    """The method is private: without it, nobody would know which request is under way."""
    assert callable(HttpToolsProtocol._start_asgi_task)


def test_the_request_under_way_is_told_that_its_client_is_gone() -> None:
    """Also if another one waits behind it: else a long poll takes a task for nobody."""

    async def client(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        recorder: Recorder = client.recorder  # type: ignore[attr-defined]
        writer.write((b"GET /wait HTTP/1.1\r\n" + _HOST + b"\r\n") * 2)
        await recorder.under_way.wait()
        writer.transport.abort()
        await recorder.told.wait()

    assert _serve(client).given_up == ["/wait"]


@pytest.mark.skipif(not hasattr(socket, "TCP_KEEPIDLE"), reason="the system has another name")
def test_a_client_whose_network_is_gone_is_noticed() -> None:
    """Its connection is probed after ten silent seconds, not after two hours."""
    listener = serving.listen("127.0.0.1", 0)
    serving.let_in(listener)
    with listener, socket.create_connection(listener.getsockname()):
        connection, _ = listener.accept()
        with connection:
            assert connection.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE)
            assert connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE) == 10
