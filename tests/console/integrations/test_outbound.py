"""An outbound request reaches no forbidden address and has limits of time and size."""

from __future__ import annotations

import gzip
import socket
import threading
import time
from typing import TYPE_CHECKING, Any

import pytest
from urllib3.util.wait import wait_for_read

import engine
from console.features.service_jobs import kubernetes
from console.integrations import outbound, web
from console.integrations.outcome import Failed, Outcome, Succeeded, TaskAttempt
from tests.waiting import PATIENCE_S, wait_until

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
    outbound.close_idle()
    yield
    outbound.close_idle()


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
    return outbound.send_request("GET", url, limit_s, most=engine.MAX_BYTES).body


# -- R1, R2: addresses -----------------------------------------------------------------------------


@pytest.mark.parametrize("host", ["127.1", "2130706433", "0x7f.1", "0177.0.0.1", "0", "[::]"])
def test_loopback_in_disguise_is_refused(listener: Listener, host: str) -> None:
    """However it is written, but as loopback is usually written, and before anything connects."""
    refused = r"never called|does not say so|Invalid IPv4 address"
    with pytest.raises((outbound.ConnectError, outbound.InvalidURL), match=refused):
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
    with pytest.raises(outbound.ConnectError, match="does not say so"):
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
    with pytest.raises(outbound.UnsupportedProtocol):
        get(url)


def test_a_user_before_the_host(settings: Any) -> None:
    """Nobody has named an origin with somebody's name in it."""
    settings.STATEYARD_TARGETS = {"http": {"endpoints": ["https://api.example.com"]}}
    assert web._is_allowed("http", "https://api.example.com/a")
    assert not web._is_allowed("http", "https://someone@api.example.com/a")
    assert not web._is_allowed("http", "https://api.example.com@127.0.0.1/a")


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
    """Send a header a byte at a time, for longer than a test waits; then the answer is good."""
    connection.sendall(b"HTTP/1.1 200 OK\r\nX: ")
    until = time.monotonic() + PATIENCE_S
    while time.monotonic() < until:
        connection.sendall(b"x")
        time.sleep(0.05)
    connection.sendall(b"\r\nContent-Length: 2\r\n\r\n{}")


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
    assert time.monotonic() - begun > 2.9, "the task's own clock has had its chance"


def test_an_answer_that_is_packed(settings: Any, listener: Listener) -> None:
    """It is read as it was before."""
    packed = gzip.compress(b'{"a":1}')
    head = f"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: {len(packed)}\r\n\r\n"
    listener.answer = says(head.encode() + packed)
    outcome = http_task(settings, listener)
    assert isinstance(outcome, Succeeded)
    assert engine.loads(outcome.output)["ResponseBody"] == {"a": 1}


def test_a_packed_answer_without_its_end(settings: Any, listener: Listener) -> None:
    """The part of the text that can be unpacked is not taken for all of it."""
    packed = gzip.compress(b"paid: no, refunded" * 1_000)[:-12]
    head = f"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: {len(packed)}\r\n\r\n"
    listener.answer = says(head.encode() + packed)
    outcome = http_task(settings, listener)
    assert isinstance(outcome, Failed)
    assert "its end is missing" in (outcome.cause or "")


@pytest.mark.parametrize("value", ["a\r\nX-Evil: 1", "a\nb", "a\x00b"])
def test_line_ends_in_a_header(settings: Any, listener: Listener, value: str) -> None:
    """No header can be made out of another one's value."""
    outcome = http_task(settings, listener, Headers={"X-Mine": value})
    assert isinstance(outcome, Failed)
    assert not any(b"X-Evil" in request for request in listener.heard)


# -- connections and the protocol ------------------------------------------------------------------


def serves(*answers: bytes) -> Any:
    """Return an answer for each request of a connection, until there is no further one."""

    def answer(connection: socket.socket) -> None:
        for number, data in enumerate(answers):
            if number and not connection.recv(65_536):
                return
            connection.sendall(data)
        connection.recv(65_536)

    return answer


OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}"


def test_a_connection_is_kept(listener: Listener) -> None:
    """Two requests use one connection; a connection that its host has closed is not used."""
    listener.answer = serves(OK, OK)
    url = f"http://127.0.0.1:{listener.port}/"
    assert [get(url), get(url)] == [b"{}", b"{}"]
    assert len(listener.heard) == 1
    listener.answer = says(OK)
    outbound.close_idle()
    get(url)
    wait_until(lambda: not outbound._IDLE._entries or wait_for_read(idle_connection(), timeout=0))
    assert get(url) == b"{}"
    assert len(listener.heard) == 3


def idle_connection() -> socket.socket:
    """Return the only idle connection."""
    ((_, _, connection),) = outbound._IDLE._entries
    return connection


@pytest.mark.parametrize(
    "more",
    [
        b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nevil",
        b"garbage",
    ],
)
def test_more_than_one_response(listener: Listener, more: bytes) -> None:
    """The next request does not take what a server sent beside a response."""
    listener.answer = serves(OK + more)
    url = f"http://127.0.0.1:{listener.port}/"
    assert get(url) == b"{}"
    listener.answer = serves(OK)
    assert get(url) == b"{}"
    assert len(listener.heard) == 2


CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"


@pytest.mark.parametrize(
    ("answer", "body"),
    [
        (CHUNKED + b"2\r\n{\n\r\n1\r\n}\r\n0\r\n\r\n", b"{\n}"),
        (b"HTTP/1.1 103 Early Hints\r\nLink: <a>\r\n\r\n" + OK, b"{}"),
        (b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 204 No Content\r\n\r\n", b""),
        (b"HTTP/1.0 200 OK\r\n\r\nto the end", b"to the end"),
        (b"HTTP/1.1 200 OK\nContent-Length: 2\n\n{}", b"{}"),
        (b"HTTP/1.1 200\r\nContent-Length: 2\r\n\r\n{}", b"{}"),
    ],
)
def test_ways_to_answer(listener: Listener, answer: bytes, body: bytes) -> None:
    """Chunks, interim responses, a body until the end, and lines that end without a return."""
    listener.answer = says(answer)
    assert get(f"http://127.0.0.1:{listener.port}/") == body


@pytest.mark.parametrize(
    ("answer", "problem"),
    [
        (b"", "Server disconnected without sending a response"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n{}", "without sending the complete"),
        (CHUNKED + b"2\r\n{}\r\n", "without sending the complete"),
        (b"HTTP/1.1 200 OK\r\nContent-Le", "without sending the complete"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\n{}", "no HTTP"),
        (b"SSH-2.0-OpenSSH\r\n", "no HTTP"),
        (b"HTTP/1.1 200 OK\r\nX: " + b"x" * 200_000, "larger than 102400 bytes"),
    ],
)
def test_a_broken_response(listener: Listener, answer: bytes, problem: str) -> None:
    """No part of a response is taken for the whole."""
    listener.answer = says(answer)
    with pytest.raises(outbound.CallError, match=problem):
        get(f"http://127.0.0.1:{listener.port}/")


def test_a_response_to_head(listener: Listener) -> None:
    """It has the length of a body and no body."""
    listener.answer = serves(b"HTTP/1.1 200 OK\r\nContent-Length: 900\r\n\r\n", OK)
    url = f"http://127.0.0.1:{listener.port}/"
    answer = outbound.send_request("HEAD", url, 5, most=100)
    assert (answer.body, answer.header("content-length")) == (b"", "900")
    assert get(url) == b"{}"


def test_a_response_to_head_with_a_body(listener: Listener) -> None:
    """The next request on the connection would take the body's rest for its response."""
    listener.answer = serves(b"HTTP/1.1 200 OK\r\nContent-Length: 900\r\n\r\n{", OK)
    url = f"http://127.0.0.1:{listener.port}/"
    assert outbound.send_request("HEAD", url, 5, most=100).body == b""
    listener.answer = serves(OK)
    assert get(url) == b"{}"
    assert len(listener.heard) == 2


def test_trailers_are_no_headers(listener: Listener) -> None:
    """A trailer does not say how the body before it is packed."""
    listener.answer = serves(CHUNKED + b"2\r\n{}\r\n0\r\nContent-Encoding: br\r\n\r\n")
    answer = outbound.send_request("GET", f"http://127.0.0.1:{listener.port}/", 5, most=100)
    assert (answer.body, answer.headers) == (b"{}", [("transfer-encoding", "chunked")])


@pytest.mark.parametrize(
    ("start", "part"),
    [
        (b"0\r\n", b"X-Trailer: a\r\n" * 5_000),
        (b"0\r\nX-Trailer: ", b"x" * 65_536),
        (b"2;extension=", b"x" * 65_536),
    ],
)
def test_framing_without_end(listener: Listener, start: bytes, part: bytes) -> None:
    """Trailers and extensions of chunks count, too: they would fill the memory."""
    sent: list[int] = []

    def answer(connection: socket.socket) -> None:
        connection.sendall(CHUNKED + start)
        while len(sent) < 1_000:
            connection.sendall(part)
            sent.append(len(part))

    listener.answer = answer
    with pytest.raises(ValueError, match="the answer is larger than 1000 bytes"):
        outbound.send_request("GET", f"http://127.0.0.1:{listener.port}/", 30, most=1_000)


@pytest.mark.parametrize("method", ["GET /x HTTP/1.1\r\nA: b\r\n\r\nGET", "GET ", ""])
def test_a_method_that_is_no_word(listener: Listener, method: str) -> None:
    """It would begin another request."""
    with pytest.raises(outbound.CallError, match="Illegal method"):
        outbound.send_request(method, f"http://127.0.0.1:{listener.port}/", 5)


def test_how_an_address_is_sent(listener: Listener) -> None:
    """Characters that no URL has are encoded once, a user becomes a header."""
    at = f"127.0.0.1:{listener.port}"
    get(f"http://us%40er:pass@{at}/a b/%2F/é?q=ö&r=%20+#fragment")
    (request,) = listener.heard
    line, *headers = request.decode().split("\r\n")
    assert line == "GET /a%20b/%2F/%C3%A9?q=%C3%B6&r=%20+ HTTP/1.1"
    assert f"Host: {at}" in headers
    assert f"Authorization: {outbound.basic_authorization('us@er', 'pass')}" in headers


@pytest.mark.parametrize(
    "url", ["http://straße.example/", "http:///path", "http://a\nb/", "http://" + "é" * 80]
)
def test_addresses_of_no_host(url: str) -> None:
    """A name that two versions of IDNA spell in two ways could be another host."""
    with pytest.raises(outbound.InvalidURL):
        get(url)


# -- the same for clusters -------------------------------------------------------------------------


@pytest.mark.slow
def test_a_cluster_that_drips(settings: Any, listener: Listener) -> None:
    """The time of the task counts for the whole answer."""
    listener.answer = dripping
    outcome = cluster_task(settings, listener, timeout_s=1)
    assert isinstance(outcome, Failed)
    assert outcome.error == "EKS.SdkClientException"


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
