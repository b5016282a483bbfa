"""A client that is slow, silent, endless or broken costs nobody else anything."""

from __future__ import annotations

import contextlib
import re
import socket
import threading
import time
import urllib.request
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TYPE_CHECKING, NamedTuple, Self

import pytest

from console.server import admission, connections
from tests.acceptance.server import Server

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = pytest.mark.acceptance

GET = b"GET /login/ HTTP/1.1\r\nHost: localhost\r\n"
POST = b"POST /login/ HTTP/1.1\r\nHost: localhost\r\n"
API = (
    b"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/x-amz-json-1.0\r\n"
    b"X-Amz-Target: AWSStepFunctions.ListStateMachines\r\n"
)
CHUNKED = b"Transfer-Encoding: chunked\r\n\r\n"
MEGABYTE = b"x" * 1_000_000


def connected(server: Server, data: bytes = b"", *, seconds: float = 40) -> socket.socket:
    """Open a connection and send something."""
    connection = socket.create_connection(("127.0.0.1", server.port), timeout=seconds)
    connection.sendall(data)
    return connection


def answer(connection: socket.socket, until: bytes = b"content-length: 0") -> bytes:
    """Return what comes until ``until``, the end of the connection, or nothing within its time."""
    data = b""
    with contextlib.suppress(OSError):
        while part := connection.recv(65_536):
            data += part
            if b"\r\n\r\n" in data and until in part:
                break
    connection.close()
    return data


def status(connection: socket.socket) -> int:
    """Return the status of the first answer, 0 if the connection closes without one."""
    with connection:
        data = b""
        with contextlib.suppress(OSError):
            while b"\r\n" not in data and (part := connection.recv(65_536)):
                data += part
    match = re.match(rb"HTTP/1\.1 (\d{3})", data)
    return int(match[1]) if match else 0


class Bystander:
    """Somebody who asks for a page and for the server's health all the time."""

    def __init__(self, server: Server) -> None:
        self.server = server
        self.slowest = 0.0
        self.answers = 0
        self.failures: list[str] = []
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._ask)

    def _ask(self) -> None:
        while not self._ended.is_set():
            for path in ("/healthz", "/login/"):
                begun = time.monotonic()
                try:
                    with urllib.request.urlopen(f"{self.server.url}{path}", timeout=30):
                        self.answers += 1
                except OSError as error:
                    self.failures.append(f"{path}: {error}")
                self.slowest = max(self.slowest, time.monotonic() - begun)
            time.sleep(0.02)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join()
        assert self.failures == []
        assert self.answers > 0


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server of this module's own: no other test waits behind what is done here."""
    server = Server(tmp_path_factory.mktemp("bounds") / "data").start()
    yield server
    assert "Traceback" not in server.log()
    server.stop()


class SlowRequests(NamedTuple):
    """What comes of two requests that take many seconds, beside the tests of others.

    ``drip``: how long a header of single bytes is taken, and its status; ``steady``: the status of
    a body in twenty parts.
    """

    drip: Future[tuple[float, int]]
    steady: Future[int]


@pytest.fixture(scope="module")
def slow_requests(server: Server) -> Iterator[SlowRequests]:
    """Send both from here on."""
    with ThreadPoolExecutor(2) as threads:
        yield SlowRequests(threads.submit(_drip, server), threads.submit(_send_steadily, server))


def _drip(server: Server) -> tuple[float, int]:
    connection = connected(server, GET + b"X: ")
    begun = time.monotonic()
    with contextlib.suppress(OSError):
        while time.monotonic() - begun < connections.HEAD_S + 10:
            connection.sendall(b"x")
            time.sleep(0.2)
    return time.monotonic() - begun, status(connection)


def _send_steadily(server: Server) -> int:
    size = 60_000
    connection = connected(server, POST + b"Content-Length: %d\r\n\r\n" % size)
    for _ in range(20):
        connection.sendall(b"x" * (size // 20))
        time.sleep((connections.BODY_S + 2) / 20)
    return status(connection)


# -- headers ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("line", [b"X: ", b"GET /", b"X"], ids=["value", "address", "name"])
def test_headers_without_end_are_refused(server: Server, line: bytes) -> None:
    """77 MB in one line are a 431 after 64 KB, and nobody else waits."""
    with Bystander(server) as other:
        connection = connected(server, line if line == b"GET /" else GET + line)
        with contextlib.suppress(OSError):
            for _ in range(77):
                connection.sendall(MEGABYTE)
        assert status(connection) in (431, 0), (
            "0: the rest that was sent made the answer unreadable"
        )
        connection = connected(server, (line if line == b"GET /" else GET + line) + b"x" * 66_000)
        assert status(connection) == 431
    assert other.slowest < 3


@pytest.mark.parametrize(("size", "expected"), [(60_000, 200), (80_000, 431)])
def test_headers_have_64_kb_however_they_come(server: Server, size: int, expected: int) -> None:
    """Headers of more than 64 KB are refused, in one piece or in many."""
    many = b"".join(b"X-%d: %s\r\n" % (number, b"y" * 90) for number in range(size // 100))
    for data in (many, b"X: " + b"y" * size + b"\r\n"):
        connection = connected(server, GET + b"Connection: close\r\n" + data + b"\r\n")
        assert status(connection) == expected


def test_what_follows_a_chunk_is_bounded_too(server: Server) -> None:
    """Trailers and extensions of chunks are headers by another name."""
    for rest in (b"0\r\nX: ", b"1;"):
        connection = connected(server, POST + CHUNKED + rest)
        with contextlib.suppress(OSError):
            connection.sendall(b"x" * 200_000)
        assert status(connection) in (400, 413, 422, 431, 0)


# -- silence ---------------------------------------------------------------------------------------


@pytest.mark.usefixtures("slow_requests")
def test_half_open_requests_are_closed(server: Server) -> None:
    """Nothing, half a header, half a body: all gone in time; pages are made meanwhile."""
    body = POST + b"Content-Length: 1000\r\n\r\nabc"
    with Bystander(server) as other:
        begun = time.monotonic()
        silent = [connected(server) for _ in range(100)]
        heads = [connected(server, GET + b"X: y") for _ in range(300)]
        bodies = [connected(server, body) for _ in range(100)]
        calls = [connected(server, API + b"Content-Length: 1000\r\n\r\n{") for _ in range(100)]
        assert {status(connection) for connection in silent} == {0}
        assert {status(connection) for connection in heads} == {408}
        assert time.monotonic() - begun > connections.HEAD_S / 2
        assert {status(connection) for connection in (*bodies, *calls)} <= {408, 0}
        assert time.monotonic() - begun < connections.HEAD_S + connections.BODY_S + 10
    assert other.slowest < 3


def test_a_header_that_drips_is_closed(slow_requests: SlowRequests) -> None:
    """The time counts from the request's beginning, not from its last byte."""
    seconds, answered = slow_requests.drip.result(60)
    assert connections.HEAD_S / 2 < seconds < connections.HEAD_S + 5
    assert answered in (408, 0)


def test_a_body_that_comes_steadily_is_taken(slow_requests: SlowRequests) -> None:
    """Slowly, but as fast as is wanted: longer than the clock of one look."""
    assert slow_requests.steady.result(60) == 403  # it has no token of a form


# -- bodies ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("head", "size"),
    [
        (POST, 200_000_000),
        (POST, 65_537),
        (GET.replace(b"GET /login/", b"POST /import/"), 60_000_000),
    ],
    ids=["200 MB", "64 KB and a byte", "an import of nobody"],
)
def test_a_body_that_is_declared_too_large_is_refused(
    server: Server, head: bytes, size: int
) -> None:
    """413 before a byte of it is read."""
    assert status(connected(server, head + b"Content-Length: %d\r\n\r\n" % size)) == 413


def test_a_body_that_grows_too_large_is_refused(server: Server) -> None:
    """A body in chunks is answered 413 once it is too large, and its rest is thrown away."""
    with Bystander(server) as other:
        connection = connected(server, POST + CHUNKED)
        for _ in range(20):
            connection.sendall(b"f4240\r\n" + MEGABYTE + b"\r\n")
        connection.sendall(b"0\r\n\r\n")
        assert status(connection) == 413
    assert other.slowest < 3


@pytest.mark.parametrize("chunked", [False, True])
def test_a_call_that_is_too_large_is_refused_in_the_shape_of_aws(
    server: Server, chunked: bool
) -> None:
    """1 MiB, and what a signature may add."""
    connection = connected(server, API)
    connection.sendall(CHUNKED if chunked else b"Content-Length: 2000000\r\n\r\n")
    for _ in range(2):
        connection.sendall(b"f4240\r\n" + MEGABYTE + b"\r\n" if chunked else MEGABYTE)
    connection.settimeout(5)
    data = answer(connection, until=b"RequestEntityTooLargeException")
    assert data.startswith(b"HTTP/1.1 413")
    assert b"RequestEntityTooLargeException" in data


@pytest.mark.parametrize(
    "chunks",
    [
        *(b"zz\r\nabc\r\n0\r\n\r\n", b"-1\r\n\r\n", b"ffffffffffffffffff\r\n", b"3\r\nabcdef\r\n"),
        *(b"3\nabc\n0\n\n", b"\r\n\r\n", b"0x3\r\nabc\r\n0\r\n\r\n", b"3\r\nabc\r\n\xff\xfe\r\n"),
    ],
)
@pytest.mark.parametrize("head", [POST, API], ids=["page", "call"])
def test_broken_chunks_are_a_bad_request(server: Server, head: bytes, chunks: bytes) -> None:
    """No broken chunk is answered with a 5xx, and the rest is not read as another request."""
    connection = connected(server, head + CHUNKED + chunks, seconds=2)
    data = answer(connection)
    assert all(int(code) < 500 for code in re.findall(rb"HTTP/1\.1 (\d{3})", data))


# -- answers ---------------------------------------------------------------------------------------


def test_pipelined_requests_are_answered_in_their_order(server: Server) -> None:
    """50 in one piece are answered; thousands are not kept."""
    request = b"GET /static/stateyard/no-%d.css HTTP/1.1\r\nHost: localhost\r\n\r\n"
    connection = connected(server, b"".join(request % number for number in range(50)))
    connection.settimeout(4)
    assert answer(connection).count(b"HTTP/1.1 404") == 50
    with Bystander(server) as other:
        connection = connected(server)
        with contextlib.suppress(OSError):
            for _ in range(20):
                connection.sendall(b"".join(request % number for number in range(1_000)))
        connection.settimeout(4)
        assert answer(connection).count(b"HTTP/1.1 404") < 20_000
    assert other.slowest < 3


def test_a_bad_request_behind_a_good_one_takes_not_its_answer(server: Server) -> None:
    """The first is answered as ever, or not at all."""
    connection = connected(
        server, GET + b"\r\n" + GET + b"X: " + b"y" * 70_000 + b"\r\n\r\n", seconds=5
    )
    assert status(connection) in (200, 0)


def test_who_reads_slowly_has_no_place(server: Server) -> None:
    """More of them than there are places, each with an answer it does not take."""
    asked = GET.replace(b"/login/", b"/static/stateyard/console.css") + b"\r\n"
    with Bystander(server) as other:
        slow = []
        for _ in range(3 * admission.PAGES):
            connection = socket.socket()
            connection.settimeout(2)
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4_096)
            connection.connect(("127.0.0.1", server.port))
            connection.sendall((GET + b"\r\n") * 50 + asked * 40)
            slow.append(connection)
        time.sleep(2)
        for reader in slow:
            reader.close()
    assert other.slowest < 5


def test_who_leaves_early_costs_no_place(server: Server) -> None:
    """Hundreds of requests whose senders are gone: the next one finds a place."""
    for _ in range(200):
        connected(server, GET + b"\r\n").close()
    with urllib.request.urlopen(f"{server.url}/login/", timeout=30) as response:
        assert response.status == 200


def test_an_upgrade_is_not_made(server: Server) -> None:
    """The server makes no WebSocket, whichever libraries are installed."""
    words = b"Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"
    connection = connected(
        server, GET + words + b"Sec-WebSocket-Key: dGhlIHNhbXBsZQ==\r\n\r\n", seconds=5
    )
    assert status(connection) in (200, 400, 426)
