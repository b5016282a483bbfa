"""An outbound request reaches no forbidden address and has limits of time and size.

(Above 300 lines: one listener that misbehaves in every way, and who must bear it.)
"""

from __future__ import annotations

import gzip
import socket
import threading
import time
from typing import TYPE_CHECKING, Any

import httpx
import pytest

import engine
from console.integrations import kubernetes, outbound, web
from console.integrations.outcome import Failed, Outcome, Succeeded, TaskAttempt

if TYPE_CHECKING:
    from collections.abc import Iterator


class Listener:
    """A server on the loopback address that answers each connection with raw bytes."""

    def __init__(self) -> None:
        self.answer: Any = None
        self.heard: list[bytes] = []
        self.socket = socket.create_server(("127.0.0.1", 0))
        self.port = self.socket.getsockname()[1]
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self) -> None:
        while True:
            try:
                connection, _ = self.socket.accept()
            except OSError:
                return
            threading.Thread(target=self._one, args=(connection,), daemon=True).start()

    def _one(self, connection: socket.socket) -> None:
        with connection:
            self.heard.append(connection.recv(65_536))
            try:
                self.answer(connection)
            except OSError:
                return


@pytest.fixture
def listener() -> Iterator[Listener]:
    """A server that notes who comes."""
    listener = Listener()
    listener.answer = says(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\n{}")
    yield listener
    listener.socket.close()


@pytest.fixture(autouse=True)
def _fresh() -> Iterator[None]:
    """Keep no connection from test to test."""
    outbound._client.cache_clear()
    yield
    outbound._client().close()
    outbound._client.cache_clear()


def says(data: bytes) -> Any:
    """Return an answer of these bytes."""
    return lambda connection: connection.sendall(data)


def leads_to(monkeypatch: pytest.MonkeyPatch, *answers: list[str]) -> list[str]:
    """Let every name lead to these addresses, one answer after another; return who was asked."""
    asked: list[str] = []
    remaining = list(answers)

    original = socket.getaddrinfo

    def resolve(host: str, port: int, *_: Any, **__: Any) -> list[Any]:
        if host[0].isdigit():
            return original(host, port)
        asked.append(host)
        addresses = remaining.pop(0) if len(remaining) > 1 else remaining[0]
        return [
            (socket.AF_INET, socket.SOCK_STREAM, 6, "", (address, port)) for address in addresses
        ]

    monkeypatch.setattr(socket, "getaddrinfo", resolve)
    return asked


def get(url: str, limit_s: float = 5) -> bytes:
    """Return the body behind an address."""
    with outbound.stream_answer("GET", url, limit_s) as answer:
        return outbound.read_body(answer, engine.MAX_BYTES)


# -- R1, R2: addresses -----------------------------------------------------------------------------


@pytest.mark.parametrize("host", ["127.1", "2130706433", "0x7f.1", "0177.0.0.1", "0", "[::]"])
def test_loopback_in_disguise_is_refused(listener: Listener, host: str) -> None:
    """However it is written, but as loopback is usually written, and before anything connects."""
    refused = r"never called|does not say so|Invalid IPv4 address"
    with pytest.raises((httpx.ConnectError, httpx.InvalidURL), match=refused):
        get(f"http://{host}:{listener.port}/")
    assert listener.heard == []


@pytest.mark.parametrize(
    "address",
    [
        *("169.254.169.254", "fd00:ec2::254", "192.0.0.192", "100.100.100.200", "0.0.0.0"),
        *("::ffff:169.254.169.254", "::ffff:127.0.0.1", "64:ff9b::7f00:1", "64:ff9b::a9fe:a9fe"),
        *("64:ff9b:1::a9fe:a9fe", "2002:7f00:1::", "2002:a9fe:a9fe::", "fe80::1", "::", "::1"),
        *("127.0.0.1", "127.8.8.8", "224.0.0.1", "255.255.255.255", "fd20:ce::254"),
    ],
)
def test_addresses_that_no_name_may_lead_to(address: str) -> None:
    """Metadata services, loopback, and both inside other addresses."""
    with pytest.raises(outbound.Refused):
        outbound.check_address("api.example.com", address, 80)


@pytest.mark.parametrize(
    ("host", "address"),
    [
        *(("api.example.com", address) for address in ("10.1.2.3", "192.168.0.7", "172.16.0.1")),
        *(
            ("api.example.com", address)
            for address in ("fd12:3456::1", "93.184.216.34", "2606:2800::1")
        ),
        *(("127.0.0.1", "127.0.0.1"), ("localhost", "127.0.0.1"), ("[::1]", "::1")),
    ],
)
def test_private_hosts_can_be_called(host: str, address: str) -> None:
    """Staging lives on private networks; loopback is called where it is written as such."""
    outbound.check_address(host, address, 80)


def test_this_server_and_its_database_are_never_called(
    settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not even where somebody has named them."""
    database = {**settings.DATABASES["default"], "HOST": "db.internal", "PORT": "5433"}
    monkeypatch.setitem(settings.DATABASES, "default", database)
    settings.STATEYARD_URL = "http://127.0.0.1:8083"
    leads_to(monkeypatch, ["10.0.0.5"])
    outbound._places.cache_clear()
    for host, address, port in [("10.0.0.5", "10.0.0.5", 5433), ("127.0.0.1", "127.0.0.1", 8083)]:
        outbound.check_address(host, address, 80)
        if host != "127.0.0.1":
            with pytest.raises(outbound.Refused, match="its database"):
                outbound.check_address(host, address, port)
    outbound._places.cache_clear()


# -- R3: names, redirects, schemes -----------------------------------------------------------------


def test_a_name_is_resolved_once(monkeypatch: pytest.MonkeyPatch, listener: Listener) -> None:
    """What was judged is connected to; that the name leads elsewhere a moment later is nothing."""
    asked = leads_to(monkeypatch, ["127.0.0.1"], ["169.254.169.254"])
    assert get(f"http://localhost:{listener.port}/") == b"{}"
    assert asked.count("localhost") == 1


def test_one_bad_address_among_good_ones(
    monkeypatch: pytest.MonkeyPatch, listener: Listener
) -> None:
    """A name that leads to both is refused whole."""
    leads_to(monkeypatch, ["10.255.255.1", "127.0.0.1"])
    with pytest.raises(httpx.ConnectError, match="does not say so"):
        get(f"http://rebind.example.com:{listener.port}/")
    assert listener.heard == []


@pytest.mark.parametrize("place", ["http://169.254.169.254/", "file:///etc/passwd"])
def test_redirects_are_not_followed(listener: Listener, settings: Any, place: str) -> None:
    """The answer is what it is: an error of the status."""
    head = f"HTTP/1.1 302 Found\r\nLocation: {place}\r\nContent-Length: 0\r\n\r\n"
    listener.answer = says(head.encode())
    outcome = http_task(settings, listener)
    assert isinstance(outcome, Failed)
    assert outcome.error == "States.Http.StatusCode.302"
    assert len(listener.heard) == 1


def test_the_environment_sets_no_proxy(monkeypatch: pytest.MonkeyPatch, listener: Listener) -> None:
    """A proxy would resolve names itself."""
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    assert get(f"http://127.0.0.1:{listener.port}/") == b"{}"


@pytest.mark.parametrize("url", ["gopher://127.0.0.1/", "file:///etc/passwd", "ftp://127.0.0.1/"])
def test_other_schemes(url: str) -> None:
    """Only http and https are spoken."""
    with pytest.raises(httpx.UnsupportedProtocol):
        get(url)


def test_a_user_before_the_host(settings: Any) -> None:
    """Nobody has named an origin with somebody's name in it."""
    settings.STATEYARD_TARGETS = {"http": {"endpoints": ["https://api.example.com"]}}
    assert web._allowed("http", "https://api.example.com/a")
    assert not web._allowed("http", "https://someone@api.example.com/a")
    assert not web._allowed("http", "https://api.example.com@127.0.0.1/a")


def test_no_cookie_comes_back(listener: Listener) -> None:
    """What one execution was given is not sent along by the next."""
    head = b"HTTP/1.1 200 OK\r\nSet-Cookie: a=secret\r\nConnection: close\r\n"
    head += b"Content-Length: 2\r\n\r\n{}"
    listener.answer = says(head)
    for _ in range(2):
        get(f"http://127.0.0.1:{listener.port}/")
    assert not any(b"secret" in request for request in listener.heard)


# -- R4: answers -----------------------------------------------------------------------------------


def http_task(settings: Any, listener: Listener, **more: Any) -> Outcome:
    """Call the listener as an HTTP task does."""
    url = f"http://127.0.0.1:{listener.port}"
    connections = {"c": {"name": "X-Key", "value": "v"}}
    settings.STATEYARD_TARGETS = {"http": {"endpoints": [url], "connections": connections}}
    timeout = more.pop("timeout_s", None)
    asked = {
        "ApiEndpoint": f"{url}/",
        "Method": "GET",
        "InvocationConfig": {"ConnectionArn": "c"},
        **more,
    }
    text = engine.dumps(asked)
    return web.call(TaskAttempt("service", "r", "http", "invoke", text, "k", "", "t", timeout))


def cluster_task(settings: Any, listener: Listener, **more: Any) -> Outcome:
    """Ask the listener as if it were a Kubernetes cluster."""
    url = f"http://127.0.0.1:{listener.port}"
    settings.STATEYARD_TARGETS = {"kubernetes": {"endpoints": [url], "token": "t"}}
    asked = {"ClusterName": "c", "CertificateAuthority": "", "Endpoint": url}
    text = engine.dumps(asked | {"Method": "GET", "Path": "/api"})
    return kubernetes.call(TaskAttempt("service", "", "eks", "call", text, "k", "", "", **more))


def endless(connection: socket.socket) -> None:
    """Answer without an end."""
    connection.sendall(b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n")
    while True:
        connection.sendall(b"x" * 65_536)


def dripping(connection: socket.socket) -> None:
    """Send a header that never ends, a byte at a time."""
    connection.sendall(b"HTTP/1.1 200 OK\r\nX: ")
    while True:
        connection.sendall(b"x")
        time.sleep(0.05)


def bomb(connection: socket.socket) -> None:
    """Send little that unpacks to a lot."""
    packed = gzip.compress(bytes(200_000_000), 1)
    head = f"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: {len(packed)}\r\n\r\n"
    connection.sendall(head.encode() + packed)


def small_bomb(connection: socket.socket) -> None:
    """Send less than may be answered, which unpacks to more."""
    packed = gzip.compress(bytes(2_000_000))
    head = f"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: {len(packed)}\r\n\r\n"
    connection.sendall(head.encode() + packed)


@pytest.mark.parametrize("ask", [http_task, cluster_task], ids=lambda function: function.__name__)
@pytest.mark.parametrize(
    "answer", [endless, small_bomb, bomb], ids=lambda function: function.__name__
)
def test_an_answer_that_is_too_large(
    settings: Any, listener: Listener, answer: Any, ask: Any
) -> None:
    """It is cut off at 256 KiB, as it comes and as it unpacks."""
    listener.answer = answer
    outcome = ask(settings, listener)
    assert isinstance(outcome, Failed)
    assert "larger than 262144 bytes" in (outcome.cause or "")


@pytest.mark.slow
def test_an_answer_that_drips(settings: Any, listener: Listener) -> None:
    """The limit counts for the whole answer, not from byte to byte."""
    listener.answer = dripping
    begun = time.monotonic()
    outcome = http_task(settings, listener, timeout_s=1)
    assert isinstance(outcome, Failed)
    assert outcome.error == "States.Http.Socket"
    assert 2.9 < time.monotonic() - begun < 5, "the task's own clock has had its chance"


def test_an_answer_that_is_packed(settings: Any, listener: Listener) -> None:
    """It is read as it was before."""
    packed = gzip.compress(b'{"a":1}')
    head = f"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: {len(packed)}\r\n\r\n"
    listener.answer = says(head.encode() + packed)
    outcome = http_task(settings, listener)
    assert isinstance(outcome, Succeeded)
    assert engine.loads(outcome.output)["ResponseBody"] == {"a": 1}


@pytest.mark.parametrize("value", ["a\r\nX-Evil: 1", "a\nb", "a\x00b"])
def test_line_ends_in_a_header(settings: Any, listener: Listener, value: str) -> None:
    """No header can be made out of another one's value."""
    outcome = http_task(settings, listener, Headers={"X-Mine": value})
    assert isinstance(outcome, Failed)
    assert not any(b"X-Evil" in request for request in listener.heard)


# -- the same for clusters -------------------------------------------------------------------------


@pytest.mark.slow
def test_a_cluster_that_drips(settings: Any, listener: Listener) -> None:
    """The time of the task counts for the whole answer."""
    listener.answer = dripping
    begun = time.monotonic()
    outcome = cluster_task(settings, listener, timeout_s=1)
    assert isinstance(outcome, Failed)
    assert outcome.error == "EKS.SdkClientException"
    assert time.monotonic() - begun < 1 + outbound.GRACE_S + 1


def test_a_cluster_that_sends_elsewhere(settings: Any, listener: Listener) -> None:
    """A redirect is the answer, and the token goes nowhere else."""
    place = f"http://127.0.0.1:{listener.port}/other"
    head = f"HTTP/1.1 302 Found\r\nLocation: {place}\r\nContent-Length: 0\r\n\r\n"
    listener.answer = says(head.encode())
    outcome = cluster_task(settings, listener)
    assert isinstance(outcome, Failed)
    assert outcome.error == "EKS.302"
    assert len(listener.heard) == 1


@pytest.mark.parametrize(
    "charset",
    ["rot13", "zip", "hex", "base64", "unicode_escape", "undefined", "no-such", ""],
)
def test_a_charset_that_is_none_is_taken_for_utf8(
    settings: Any, listener: Listener, charset: str
) -> None:
    """Python knows codecs that are no charsets; the answer is a result whatever it calls itself."""
    body = '{"a": "é\\ud800"}'.encode()
    head = f"Content-Type: text/plain; charset={charset}\r\nContent-Length: {len(body)}\r\n\r\n"
    listener.answer = says(b"HTTP/1.1 200 OK\r\nConnection: close\r\n" + head.encode() + body)
    outcome = http_task(settings, listener)
    assert isinstance(outcome, Succeeded)
    assert engine.loads(outcome.output)["ResponseBody"] == body.decode()
