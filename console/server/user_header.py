"""Read a person's name from a header that a proxy of STATEYARD_PROXIES has set.

Anyone can send a header, so only the peer address of the connection counts. This application runs
before uvicorn replaces that address by the one in ``X-Forwarded-For``. The header is removed from
requests of other peers, and they are answered as without it.
"""

from __future__ import annotations

import ipaddress
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable

USER = "stateyard.user"
"""Key of an ASGI scope: the name that a proxy sent, or ``AMBIGUOUS``."""
AMBIGUOUS = "\n"
"""The stand-in for a name if the proxy sent the header more than once. No name has it."""
_Address = ipaddress.IPv4Address | ipaddress.IPv6Address


class UserHeader:
    """ASGI application that puts the name into the scope of another application."""

    def __init__(self, application: Any, header: str, proxies: Iterable[str]) -> None:
        """``proxies``: addresses and networks."""
        self._application = application
        self._header = header.lower().encode()
        self._networks = [ipaddress.ip_network(proxy) for proxy in proxies]

    async def __call__(
        self,
        scope: dict[str, Any],
        receive: Callable[[], Awaitable[dict[str, Any]]],
        send: Callable[[dict[str, Any]], Awaitable[None]],
    ) -> None:
        """Answer a request."""
        if scope["type"] == "http":
            names = [value for name, value in scope["headers"] if name.lower() == self._header]
            if names:
                scope = {**scope, "headers": self._other_headers(scope)}
                if self._is_proxy(scope.get("client")):
                    scope[USER] = _decode(names)
        await self._application(scope, receive, send)

    def _other_headers(self, scope: dict[str, Any]) -> list[tuple[bytes, bytes]]:
        return [(name, value) for name, value in scope["headers"] if name.lower() != self._header]

    def _is_proxy(self, client: tuple[str, int] | None) -> bool:
        """Return whether the peer of a connection is a proxy. ``client``: its address and port."""
        try:
            address = _plain(ipaddress.ip_address(client[0] if client else ""))
        except ValueError:
            return False
        return any(address in network for network in self._networks)


def _plain(address: _Address) -> _Address:
    """Return the IPv4 address inside an IPv4-mapped IPv6 address."""
    mapped = address.ipv4_mapped if isinstance(address, ipaddress.IPv6Address) else None
    return mapped or address


def _decode(names: list[bytes]) -> str:
    """Return the single name; a wrong encoding gives a name that nobody has."""
    if len(names) > 1:
        return AMBIGUOUS
    try:
        return names[0].decode().strip()
    except UnicodeDecodeError:
        return AMBIGUOUS
