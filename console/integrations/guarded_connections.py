"""Let a client of botocore connect only to addresses that may be called, as ``outbound`` does.

The operator's targets are trusted. A target that an owner set on a page may name any host, so its
name is resolved once, each address is judged, and the connection goes to a judged address. Proxies
of the environment are not used: they would resolve the name themselves.
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
    """Connects to an address that was judged (a part of urllib3's connections)."""

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
    """Return a class of pools like ``pool`` whose connections are guarded."""
    guarded = type(f"Guarded{connection.__name__}", (_Guarded, connection), {})
    return type(f"Guarded{pool.__name__}", (pool,), {"ConnectionCls": guarded})


_POOLS = {
    "http": _guarded_pool(awsrequest.AWSHTTPConnectionPool, awsrequest.AWSHTTPConnection),
    "https": _guarded_pool(awsrequest.AWSHTTPSConnectionPool, awsrequest.AWSHTTPSConnection),
}


def guard_client(client: Any) -> None:
    """Let a client that has sent nothing yet connect only where it may."""
    session = client._endpoint.http_session  # noqa: SLF001 - botocore has no other way to it
    session._manager.pool_classes_by_scheme = _POOLS  # noqa: SLF001
