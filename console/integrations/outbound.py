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

import contextlib
import ipaddress
import socket
import ssl
import threading
import time
import zlib
from functools import lru_cache
from http.cookiejar import DefaultCookiePolicy
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import httpcore
import httpx
from django.conf import settings

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    Address = ipaddress.IPv4Address | ipaddress.IPv6Address

GRACE_S = 2.0
"""A call may last so much longer than its task: the task's own clock shall end it, not the call."""
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
_INSIDE = {  # network -> how far to the right the IPv4 address in it stands
    ipaddress.ip_network("64:ff9b::/96"): 0,
    ipaddress.ip_network("64:ff9b:1::/48"): 0,
    ipaddress.ip_network("::ffff:0:0/96"): 0,
    ipaddress.ip_network("::ffff:0:0:0/96"): 0,
    ipaddress.ip_network("2002::/16"): 80,
}
_running = threading.local()


class Refused(httpcore.ConnectError):
    """The address must never be called."""


@contextlib.contextmanager
def stream_answer(
    method: str,
    url: str,
    limit_s: float,
    told: Callable[[httpx.Request], None] | None = None,
    trust: str = "",
    **more: Any,
) -> Iterator[httpx.Response]:
    """Send a request and yield the response; its body is read by ``read_body``.

    ``limit_s``: for the whole exchange, from the first byte sent to the last one received.
    ``told``: called with the request before it is sent. ``trust``: trusted certificates (PEM) in
    place of the usual authorities. Raises httpx's errors.
    """
    _running.until = time.monotonic() + limit_s
    timeout = httpx.Timeout(limit_s, connect=min(_CONNECT_S, limit_s))
    try:
        client = _client(trust) if trust else _client()
        request = client.build_request(method, url, timeout=timeout, **more)
        if told is not None:
            told(request)
        with contextlib.closing(client.send(request, stream=True)) as answer:
            yield answer
    finally:
        _running.until = None


def read_body(answer: httpx.Response, most: int) -> bytes:
    """Return a response body; raise ``ValueError`` if it is too long, also decompressed."""
    packed = bytearray()
    for chunk in answer.iter_raw():
        packed += chunk
        if len(packed) > most:
            raise ValueError(f"the answer is larger than {most} bytes")
    how = answer.headers.get("content-encoding", "identity").strip().lower()
    if how == "identity" or not packed:
        return bytes(packed)
    if how not in ("gzip", "x-gzip", "deflate"):
        raise ValueError(f"the answer's Content-Encoding: got {how!r}, wanted gzip or none")
    return _unpacked(bytes(packed), most)


def _unpacked(packed: bytes, most: int) -> bytes:
    try:
        whole = zlib.decompressobj(47).decompress(packed, most + 1)  # 47: gzip or zlib, as it says
    except zlib.error as error:
        raise ValueError(f"the answer cannot be unpacked: {error}") from None
    if len(whole) > most:
        raise ValueError(f"the answer is larger than {most} bytes")
    return whole


@lru_cache(maxsize=32)
def _client(trust: str = "") -> httpx.Client:
    limits = httpx.Limits(max_connections=256, max_keepalive_connections=64)
    verify = ssl.create_default_context(cadata=trust) if trust else True
    transport = httpx.HTTPTransport(limits=limits, trust_env=False, verify=verify)
    transport._pool._network_backend = _Backend()  # noqa: SLF001
    client = httpx.Client(
        transport=transport,
        follow_redirects=False,
        trust_env=False,
        headers={"Accept-Encoding": "gzip"},
    )
    client.cookies.jar.set_policy(DefaultCookiePolicy(allowed_domains=[]))
    return client


# -- where a name leads ----------------------------------------------------------------------------


class _Backend(httpcore.NetworkBackend):
    """Network backend that connects only to checked addresses."""

    def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Any = None,
    ) -> httpcore.NetworkStream:
        """Resolve the host once, check every address, and connect to a checked one."""
        problem: Exception = Refused(f"{host} has no address")
        for address in find_addresses(host, port):
            try:
                inner = httpcore.SyncBackend().connect_tcp(
                    address, port, timeout, local_address, socket_options or ()
                )
                return _Stream(inner)
            except httpcore.ConnectError as error:
                problem = error
        raise problem


class _Stream(httpcore.NetworkStream):
    """A connection with one time limit for the whole request, not for each read."""

    def __init__(self, inner: httpcore.NetworkStream) -> None:
        self._inner = inner

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        return self._inner.read(max_bytes, _seconds_left(timeout))

    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        self._inner.write(buffer, _seconds_left(timeout))

    def close(self) -> None:
        self._inner.close()

    def start_tls(
        self,
        ssl_context: ssl.SSLContext,
        server_hostname: str | None = None,
        timeout: float | None = None,
    ) -> httpcore.NetworkStream:
        return _Stream(self._inner.start_tls(ssl_context, server_hostname, _seconds_left(timeout)))

    def get_extra_info(self, info: str) -> Any:
        return self._inner.get_extra_info(info)


def _seconds_left(timeout: float | None) -> float | None:
    """Return the remaining seconds of the current request."""
    until = getattr(_running, "until", None)
    if until is None:
        return timeout
    remaining_s = float(until) - time.monotonic()
    if remaining_s <= 0:
        raise httpcore.ReadTimeout("the answer is too slow")
    return remaining_s if timeout is None else min(timeout, remaining_s)


def find_addresses(host: str, port: int) -> list[str]:
    """Return the checked addresses of a host; raise ``Refused`` or a resolver error."""
    addresses = _resolved(host, port)
    for address in addresses:
        check_address(host, address, port)
    return addresses


def _resolved(host: str, port: int) -> list[str]:
    """Return the addresses of a host in the resolver's order."""
    try:
        infos = socket.getaddrinfo(host.strip("[]"), port, type=socket.SOCK_STREAM)
    except OSError as error:
        raise httpcore.ConnectError(str(error)) from None
    return list(dict.fromkeys(str(info[4][0]) for info in infos))


def check_address(host: str, address: str, port: int) -> None:
    """Raise ``Refused`` if an address must not be called."""
    seen = _inside(ipaddress.ip_address(address.partition("%")[0]))
    if any(seen in network for network in _NEVER):
        raise Refused(f"{host} is at {address}, which is never called from here")
    if seen.is_loopback and not _says_loopback(host):
        raise Refused(f"{host} is at {address}, the server itself, and does not say so")
    if (str(seen), port) in _own_addresses():
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
        with contextlib.suppress(httpcore.ConnectError):
            places |= {(address, number) for address in _resolved(host, number)}
    return frozenset(places)
