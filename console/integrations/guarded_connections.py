"""Let a botocore client connect only to allowed addresses (``outbound.check_address``).

The operator's targets are trusted. A target set by an owner on a page may name any host: its name
is resolved once, each address is checked, and the connection goes to a checked address. Proxies of
the environment are ignored, because they would resolve the name themselves.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import httpcore
from botocore import awsrequest
from urllib3.exceptions import NewConnectionError

from console.integrations import outbound

if TYPE_CHECKING:
    import socket


class _Guarded:
    """Mixin for urllib3 connections that connects to a checked address."""

    def _new_conn(self: Any) -> socket.socket:
        host = self.host
        try:
            addresses = outbound.find_addresses(host, self.port)
        except httpcore.ConnectError as error:
            raise NewConnectionError(self, str(error)) from None
        problem: NewConnectionError = NewConnectionError(self, f"{host} has no address")
        for address in addresses:
            self._dns_host = address  # urllib3's own: the name that is connected to, not the Host
            try:
                connected: socket.socket = super()._new_conn()  # type: ignore[misc]
            except NewConnectionError as error:
                problem = error
            else:
                return connected
            finally:
                self._dns_host = host
        raise problem


def _guarded_pool(pool: type[Any], connection: type[Any]) -> type[Any]:
    """Return a subclass of the connection pool ``pool`` with guarded connections."""
    guarded = type(f"Guarded{connection.__name__}", (_Guarded, connection), {})
    return type(f"Guarded{pool.__name__}", (pool,), {"ConnectionCls": guarded})


_POOLS = {
    "http": _guarded_pool(awsrequest.AWSHTTPConnectionPool, awsrequest.AWSHTTPConnection),
    "https": _guarded_pool(awsrequest.AWSHTTPSConnectionPool, awsrequest.AWSHTTPSConnection),
}


def guard_client(client: Any) -> None:
    """Guard a client that has sent no request yet."""
    session = client._endpoint.http_session  # noqa: SLF001 - botocore has no other way to it
    session._manager.pool_classes_by_scheme = _POOLS  # noqa: SLF001
