"""HTTP client for Tasks and deliveries that connects only to allowed addresses (SSRF guard).

The operator names the allowed origins; this module checks where a host name leads at the moment of
the call. A name is resolved once, each address is checked, and the connection goes to a checked
address, so that DNS rebinding has no effect. Always refused: addresses that serve credentials of
the host (link-local and metadata services), also in mapped or tunnelled form, and this server and
its database. Loopback is allowed only if the operator wrote the loopback address. Requests have
limits of time and size, follow no redirects, and use neither proxies of the environment nor
cookies.
"""

from __future__ import annotations

import base64
import contextlib
import ipaddress
import re
import socket
import ssl
import threading
import time
import zlib
from dataclasses import dataclass, field
from email.message import Message
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import quote, unquote, urlsplit

import httptools
from django.conf import settings
from urllib3.util.wait import wait_for_read

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    Address = ipaddress.IPv4Address | ipaddress.IPv6Address

GRACE_S = 2.0
"""The time that a call may outlast its task's timeout, so that the timeout ends the task first."""
_CONNECT_S = 10.0
_NEVER = [
    ipaddress.ip_network(text)
    for text in (
        "0.0.0.0/8",
        "169.254.0.0/16",  # link-local, where clouds have their metadata
        "192.0.0.0/24",  # protocol assignments: the metadata of Oracle's cloud
        "100.100.100.200/32",  # the metadata of Alibaba's
        "224.0.0.0/4",
        "240.0.0.0/4",
        "::/128",
        "fe80::/10",
        "fd00:ec2::/32",  # the metadata of AWS over IPv6
        "fd20:ce::/32",  # of Google's
        "ff00::/8",
    )
]
_INSIDE = {  # network -> the shift, in bits, of the IPv4 address in an IPv6 address
    ipaddress.ip_network("64:ff9b::/96"): 0,
    ipaddress.ip_network("64:ff9b:1::/48"): 0,
    ipaddress.ip_network("::ffff:0:0/96"): 0,
    ipaddress.ip_network("::ffff:0:0:0/96"): 0,
    ipaddress.ip_network("2002::/16"): 80,
}
_PORTS = {"http": 80, "https": 443}
_LONGEST_URL = 65_536
_LARGEST_HEAD = 100 * 1024
_MOST_FRAMING = 8
"""The most bytes received for a byte of a body: a chunk of one byte takes six."""
_CHUNK = 65_536
_SAFE_IN_QUERY = "".join(chr(code) for code in range(0x21, 0x7F) if chr(code) not in '"#<>')
_SAFE_IN_PATH = "".join(set(_SAFE_IN_QUERY) - set("?`{}"))
_UNPRINTABLE = re.compile(r"[\x00-\x1f\x7f]")
_TOKEN = re.compile(rb"[-!#$%&'*+.^_`|~0-9a-zA-Z]+")
_HEADER_VALUE = re.compile(rb"(?:[^\x00\s]+(?:[ \t]+[^\x00\s]+)*)?")
_FRAMING = ("content-length", "transfer-encoding")  # follow from the body, whatever the caller says
_LENGTH_EXPECTED = ("POST", "PUT", "PATCH")
_MOST_IDLE = 64
_IDLE_S = 5.0
"""An idle connection is kept for this long: many servers close theirs at this age."""


class CallError(Exception):
    """A request could not be sent, or its response could not be read."""


class CallTimeout(CallError):
    """A host did not answer in time."""


class ConnectError(CallError):
    """No connection to the host."""


class Refused(ConnectError):
    """The address must never be called."""


class InvalidURL(CallError):
    """The address is no URL of a web server."""


class UnsupportedProtocol(InvalidURL):
    """The scheme of the address is neither http nor https."""


class SentRequest(NamedTuple):
    """A request in the form in which it is sent: its complete ``url`` and its body."""

    method: str
    url: str
    body: bytes


@dataclass(slots=True)
class HttpAnswer:
    """A response. ``headers``: (name in lower case, value), in the order of the response."""

    status: int = 0
    reason: str = ""
    headers: list[tuple[str, str]] = field(default_factory=list)
    body: bytes = b""

    @property
    def is_success(self) -> bool:
        """Whether the status is 2xx."""
        return is_success(self.status)

    @property
    def is_error(self) -> bool:
        """Whether the status is 4xx or 5xx."""
        return self.status >= 400  # noqa: PLR2004

    def header(self, name: str, default: str = "") -> str:
        """Return the values of a header, joined by commas; the name is in lower case."""
        values = [value for own, value in self.headers if own == name]
        return ", ".join(values) if values else default

    @property
    def charset(self) -> str:
        """Return the charset of the Content-Type, "utf-8" if it names none."""
        kind = self.header("content-type")
        if "charset" not in kind.lower():
            return "utf-8"
        message = Message()
        message["Content-Type"] = kind
        return message.get_content_charset() or "utf-8"


def is_success(status: int) -> bool:
    """Whether a status is 2xx."""
    return 200 <= status < 300  # noqa: PLR2004


def send_request(
    method: str,
    url: str,
    limit_s: float,
    *,
    most: int | None = None,
    headers: Mapping[str, str] | None = None,
    content: bytes | None = None,
    trust: str = "",
    observe: Callable[[SentRequest], None] | None = None,
) -> HttpAnswer:
    """Send a request and return the response.

    ``limit_s``: for the whole exchange, from the first byte sent to the last one received.
    ``most``: the most bytes of the response's body, also decompressed; None leaves the body unread.
    ``observe``: called with the request before it is sent. ``trust``: trusted certificates (PEM) in
    place of the usual authorities. Raises ``CallError``, and ``ValueError`` for a body that is too
    long or a header that is not ASCII.
    """
    until = time.monotonic() + limit_s
    place = _read_url(url)
    content = content or b""
    data = _request_head(method, place, headers or {}, content) + content
    if observe is not None:
        observe(SentRequest(method, place.url, content))
    key = _PoolKey(place.scheme, place.host, place.port, trust)
    try:
        connection = _IDLE.take(key) or _open_connection(key, until)
        try:
            _write(connection, data, until)
            answer, reusable = _receive(connection, method, most, until)
        except BaseException:
            connection.close()
            raise
    except TimeoutError as error:
        raise CallTimeout(str(error)) from None
    except OSError as error:
        raise CallError(str(error)) from None
    if reusable:
        _IDLE.put(key, connection)
    else:
        connection.close()
    if answer.body:
        answer.body = _decode_body(answer, most or 0)
    return answer


def close_idle() -> None:
    """Close the idle connections."""
    _IDLE.close()


# -- the request -----------------------------------------------------------------------------------


class _Place(NamedTuple):
    """A parsed URL. ``url``: as it is sent; ``authorization``: from the user before its host."""

    url: str
    scheme: str
    host: str
    port: int
    authority: str
    target: str
    authorization: str


@lru_cache(maxsize=512)
def _read_url(url: str) -> _Place:
    if len(url) > _LONGEST_URL:
        raise InvalidURL("URL too long")
    if (wrong := _UNPRINTABLE.search(url)) is not None:
        raise InvalidURL(f"Invalid non-printable ASCII character in URL, {wrong[0]!r}")
    parts = urlsplit(url)
    if parts.scheme not in _PORTS:
        raise UnsupportedProtocol(
            f"Request URL has an unsupported protocol '{parts.scheme}://'."
            if parts.scheme
            else "Request URL is missing an 'http://' or 'https://' protocol."
        )
    host, port = _ascii_host(parts.hostname or ""), parts.port
    shown = f"[{host}]" if ":" in host else host
    authority = shown if port in (None, _PORTS[parts.scheme]) else f"{shown}:{port}"
    target = quote(parts.path or "/", safe=_SAFE_IN_PATH)
    if parts.query or "?" in url.partition("#")[0]:
        target += "?" + quote(parts.query, safe=_SAFE_IN_QUERY)
    user, authorization = parts.netloc.rpartition("@")[0], ""
    if user:
        authorization = basic_authorization(
            unquote(parts.username or ""), unquote(parts.password or "")
        )
        user += "@"
    return _Place(
        f"{parts.scheme}://{user}{authority}{target}",
        *(parts.scheme, host, port or _PORTS[parts.scheme], authority, target, authorization),
    )


def _ascii_host(host: str) -> str:
    if not host:
        raise InvalidURL("Request URL has no host.")
    if host.isascii():
        return host
    try:
        name = host.encode("idna")
        same = name.decode("idna") == host
    except UnicodeError:
        same = False
    if not same:  # like "ß", which later versions of IDNA keep: it would be another host
        raise InvalidURL(f"Invalid IDNA hostname: {host!r}")
    return name.decode("ascii")


def basic_authorization(user: str, password: str) -> str:
    """Return the value of an ``Authorization`` header of the type Basic."""
    return "Basic " + base64.b64encode(f"{user}:{password}".encode()).decode("ascii")


def _request_head(method: str, place: _Place, headers: Mapping[str, str], content: bytes) -> bytes:
    own = {name.lower() for name in headers}
    fields = [
        (name, value)
        for name, value in (
            ("Host", place.authority),
            ("Accept", "*/*"),
            ("Accept-Encoding", "gzip"),
            ("Connection", "keep-alive"),
            ("User-Agent", "Stateyard"),
        )
        if name.lower() not in own
    ]
    fields += [(name, value) for name, value in headers.items() if name.lower() not in _FRAMING]
    if place.authorization:
        fields = [each for each in fields if each[0].lower() != "authorization"]
        fields.append(("Authorization", place.authorization))
    if content or method in _LENGTH_EXPECTED:
        fields.append(("Content-Length", str(len(content))))
    if _TOKEN.fullmatch(method.encode("ascii")) is None:
        raise CallError(f"Illegal method {method!r}")
    lines = [f"{method} {place.target} HTTP/1.1".encode("ascii")]
    for name, value in fields:
        key, data = name.encode("ascii"), value.encode("ascii")
        if _TOKEN.fullmatch(key) is None:
            raise CallError(f"Illegal header name {key!r}")
        if _HEADER_VALUE.fullmatch(data) is None:
            raise CallError(f"Illegal header value {data!r}")
        lines.append(key + b": " + data)
    return b"\r\n".join(lines) + b"\r\n\r\n"


def _write(connection: socket.socket, data: bytes, until: float) -> None:
    remaining = memoryview(data)
    while remaining:
        connection.settimeout(_seconds_left(until))
        remaining = remaining[connection.send(remaining[:_CHUNK]) :]


def _seconds_left(until: float) -> float:
    """Return the remaining seconds of a request: one limit for all its reads and writes."""
    remaining_s = until - time.monotonic()
    if remaining_s <= 0:
        raise CallTimeout("the answer is too slow")
    return remaining_s


# -- the response ----------------------------------------------------------------------------------


class _ResponseReader:
    """Collects a response from the callbacks of httptools' parser."""

    def __init__(self, method: str) -> None:
        self.parser = httptools.HttpResponseParser(self)
        self.parser.set_dangerous_leniencies(lenient_optional_cr_before_lf=True)
        self.answer = HttpAnswer()
        self.body = bytearray()
        self.has_headers = self.complete = self.reusable = self.ends_with_connection = False
        self._without_body = method == "HEAD"

    def on_message_begin(self) -> None:
        """Note that the server sends more than the response."""
        if self.complete:
            self.reusable = False

    def on_status(self, data: bytes) -> None:
        """Add a part of the reason."""
        if self.complete:
            return
        self.answer.reason += data.decode("ascii", "ignore")

    def on_header(self, name: bytes, value: bytes) -> None:
        """Add a header; trailers after the body are ignored."""
        if self.has_headers:
            return
        try:
            text = value.decode()
        except UnicodeDecodeError:
            text = value.decode("latin-1")
        self.answer.headers.append((name.decode("latin-1").lower(), text))

    def on_headers_complete(self) -> None:
        """Determine how the body ends; an interim response (1xx) is dropped."""
        status = self.parser.get_status_code()
        if self.complete:
            return
        if 100 <= status < 200 and status != 101:  # noqa: PLR2004
            self.answer = HttpAnswer()
            return
        self.answer.status, self.has_headers = status, True
        self.reusable = self.parser.should_keep_alive()
        names = {name for name, _ in self.answer.headers}
        self.ends_with_connection = names.isdisjoint(_FRAMING)
        self.complete = self._without_body

    def on_body(self, data: bytes) -> None:
        """Add a part of the body, or note that a response without a body has one."""
        if self.complete:
            self.reusable = False
        else:
            self.body += data

    def on_message_complete(self) -> None:
        """Note the end, unless it is that of an interim response."""
        self.complete = self.has_headers


def _receive(
    connection: socket.socket, method: str, most: int | None, until: float
) -> tuple[HttpAnswer, bool]:
    """Return a response, and whether its connection can be used again."""
    reading, received = _ResponseReader(method), 0
    while not (reading.complete or (most is None and reading.has_headers)):
        connection.settimeout(_seconds_left(until))
        data = connection.recv(_CHUNK)
        if not data:
            if reading.has_headers and reading.ends_with_connection:
                break
            raise CallError(
                "Server closed the connection without sending the complete response."
                if received
                else "Server disconnected without sending a response."
            )
        received += len(data)
        try:
            reading.parser.feed_data(data)
        except (httptools.HttpParserError, httptools.HttpParserUpgrade) as error:
            if not reading.complete:
                raise CallError(f"the answer is no HTTP: {error}") from None
            reading.reusable = False
        if not reading.has_headers and received > _LARGEST_HEAD:
            raise CallError(f"the headers of the answer are larger than {_LARGEST_HEAD} bytes")
        if most is not None and (
            len(reading.body) > most or received > _MOST_FRAMING * most + _LARGEST_HEAD
        ):
            raise ValueError(f"the answer is larger than {most} bytes")
    if most is not None:
        reading.answer.body = bytes(reading.body)
    return reading.answer, reading.complete and reading.reusable


def _decode_body(answer: HttpAnswer, most: int) -> bytes:
    """Return a decompressed body; raise ``ValueError`` if it is too long."""
    how = answer.header("content-encoding", "identity").strip().lower()
    if how == "identity":
        return answer.body
    if how not in ("gzip", "x-gzip", "deflate"):
        raise ValueError(f"the answer's Content-Encoding: got {how!r}, wanted gzip or none")
    try:
        unpacking = zlib.decompressobj(47)  # gzip or zlib, as it says
        unpacked = unpacking.decompress(answer.body, most + 1)
    except zlib.error as error:
        raise ValueError(f"the answer cannot be unpacked: {error}") from None
    if len(unpacked) > most:
        raise ValueError(f"the answer is larger than {most} bytes")
    if not unpacking.eof:
        raise ValueError("the answer cannot be unpacked: its end is missing")
    return unpacked


# -- connections -----------------------------------------------------------------------------------


class _PoolKey(NamedTuple):
    """Requests with the same key share connections."""

    scheme: str
    host: str
    port: int
    trust: str


class _IdleConnections:
    """Connections between two requests, the oldest first."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._entries: list[tuple[float, _PoolKey, socket.socket]] = []

    def take(self, key: _PoolKey) -> socket.socket | None:
        """Return the most recently used connection that its host has not closed, None without."""
        while True:
            since = time.monotonic() - _IDLE_S
            with self._lock:
                for index in range(len(self._entries) - 1, -1, -1):
                    begun, own_key, connection = self._entries[index]
                    if own_key == key and begun > since:
                        del self._entries[index]
                        break
                else:
                    return None
            if not wait_for_read(connection, timeout=0):
                return connection
            connection.close()  # closed by its host, which would read as an empty response

    def put(self, key: _PoolKey, connection: socket.socket) -> None:
        """Keep a connection; close connections that are too old, and those above the maximum."""
        now = time.monotonic()
        with self._lock:
            self._entries.append((now, key, connection))
            count = len(self._entries)
            outdated = 0
            while outdated < count and (
                count - outdated > _MOST_IDLE or self._entries[outdated][0] <= now - _IDLE_S
            ):
                outdated += 1
            closing, self._entries = self._entries[:outdated], self._entries[outdated:]
        for _, _, each in closing:
            each.close()

    def close(self) -> None:
        """Close all."""
        with self._lock:
            closing, self._entries = self._entries, []
        for _, _, connection in closing:
            connection.close()


_IDLE = _IdleConnections()


def _open_connection(key: _PoolKey, until: float) -> socket.socket:
    """Resolve the host once, check every address, and connect to a checked one."""
    problem: Exception = Refused(f"{key.host} has no address")
    for address in find_addresses(key.host, key.port):
        seconds = min(_CONNECT_S, _seconds_left(until))
        try:
            connection = socket.create_connection((address, key.port), seconds)
        except TimeoutError:
            raise
        except OSError as error:
            problem = ConnectError(str(error))
            continue
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return connection if key.scheme == "http" else _start_tls(connection, key)
    raise problem


def _start_tls(connection: socket.socket, key: _PoolKey) -> socket.socket:
    try:
        return _tls_context(key.trust).wrap_socket(connection, server_hostname=key.host)
    except BaseException as error:
        connection.close()
        if isinstance(error, OSError) and not isinstance(error, TimeoutError):
            raise ConnectError(str(error)) from None
        raise


@lru_cache(maxsize=32)
def _tls_context(trust: str) -> ssl.SSLContext:
    if trust:
        context = ssl.create_default_context(cadata=trust)
    else:
        from botocore.httpsession import where

        context = ssl.create_default_context(cafile=where())
    context.set_alpn_protocols(["http/1.1"])
    return context


# -- where a name leads ----------------------------------------------------------------------------


def find_addresses(host: str, port: int) -> list[str]:
    """Return the checked addresses of a host; raise ``Refused`` or a resolver error."""
    addresses = _resolve_host(host, port)
    for address in addresses:
        check_address(host, address, port)
    return addresses


def _resolve_host(host: str, port: int) -> list[str]:
    """Return the addresses of a host in the resolver's order."""
    try:
        infos = socket.getaddrinfo(host.strip("[]"), port, type=socket.SOCK_STREAM)
    except OSError as error:
        raise ConnectError(str(error)) from None
    return list(dict.fromkeys(str(info[4][0]) for info in infos))


def check_address(host: str, address: str, port: int) -> None:
    """Raise ``Refused`` if an address must not be called."""
    ip_address = _inside(ipaddress.ip_address(address.partition("%")[0]))
    if any(ip_address in network for network in _NEVER):
        raise Refused(f"{host} is at {address}, which is never called from here")
    if ip_address.is_loopback and not _says_loopback(host):
        raise Refused(f"{host} is at {address}, the server itself, and does not say so")
    if (str(ip_address), port) in _own_addresses():
        raise Refused(f"{host}:{port} is this server or its database")


def _inside(address: Address) -> Address:
    """Return the IPv4 address inside a mapped or tunnelled address, else the address."""
    for network, shift in _INSIDE.items():
        if address in network:
            return ipaddress.IPv4Address((int(address) >> shift) & 0xFFFFFFFF)
    return address


def _says_loopback(host: str) -> bool:
    """Whether a host is written as the loopback address in its usual form."""
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return host.lower().rstrip(".") == "localhost"


def _own_addresses() -> frozenset[tuple[str, int]]:
    """Return the addresses of this server and of its database."""
    database = settings.DATABASES["default"]
    return _places(
        settings.STATEYARD_URL, str(database.get("HOST") or ""), int(database.get("PORT") or 5432)
    )


@lru_cache(maxsize=8)
def _places(url: str, database: str, port: int) -> frozenset[tuple[str, int]]:
    parts = urlsplit(url)
    hosts = [(database, port)] if database and not database.startswith("/") else []
    if parts.hostname:
        own = parts.port or (443 if parts.scheme == "https" else 80)
        hosts += [(parts.hostname, own), ("127.0.0.1", own), ("::1", own)]
    places = set()
    for host, number in hosts:
        with contextlib.suppress(ConnectError):
            places |= {(address, number) for address in _resolve_host(host, number)}
    return frozenset(places)
