"""Listen on the port and serve pages and API, for the commands ``up`` and ``web``."""

from __future__ import annotations

import contextlib
import errno
import logging
import os
import signal
import socket
import threading
import time
import warnings
from typing import TYPE_CHECKING

import uvicorn
from django.conf import settings
from django.core.management.base import CommandError
from django.urls import URLResolver, get_resolver

from console.db.writer import is_embedded
from console.feature import View
from console.server.connections import BoundedProtocol
from console.server.gc_freeze import spare_collections
from console.server.shutdown import SHUTTING_DOWN
from console.server.user_header import UserHeader

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable, Iterator

BACKLOG = 2048
"""The maximum number of connections that wait to be accepted."""
_IMPORTS_AFTER_S = 2.0
"""The delay of imports after the start: a test or a benchmark calls as soon as the server is ready.

A page that is opened meanwhile imports its own views.
"""
_PROBES = {"TCP_KEEPIDLE": 10, "TCP_KEEPINTVL": 5, "TCP_KEEPCNT": 3}
"""After how many silent seconds a client's machine is asked whether it is there, and how often.

Without it a client that lost its network holds its long poll for a minute, and a task that is
scheduled meanwhile is handed to nobody.
"""
KEEP_ALIVE_S = 65
"""Longer than proxies keep a line that is not used (60 s by default with nginx and ALB).

The proxy must be the first to close a connection: a request that crosses with our closing is
answered with 502.
"""
MOST_A_TURN = 128


def listen(host: str, port: int) -> socket.socket:
    """Bind the port early; clients can connect only after ``let_in``."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # asyncio sends small answers at once only on sockets that say they are TCP (else: 40 ms)
    listener = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for name, value in _PROBES.items():  # its connections begin with what it has
        if hasattr(socket, name):
            listener.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)
    with _port_errors(listener, host, port):
        listener.bind((host, port))
    return listener


def let_in(listener: socket.socket) -> None:
    """Accept connections: early clients wait until ``serve`` answers instead of being refused.

    To be called before the address is printed, because a reader may connect at once.
    """
    host, port = listener.getsockname()[:2]
    with _port_errors(listener, host, port):
        listener.listen(BACKLOG)


@contextlib.contextmanager
def _port_errors(listener: socket.socket, host: str, port: int) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        listener.close()
        if error.errno == errno.EADDRINUSE:
            msg = f"--port {port}: something else is listening there; choose another, or 0"
            raise CommandError(msg) from None
        raise CommandError(f"--host {host} --port {port}: {error.strerror}") from None


def allow(host: str) -> None:
    """Add a host name to the allowed hosts."""
    if host not in ("0.0.0.0", "::", "127.0.0.1", "::1", "localhost"):  # noqa: S104
        settings.ALLOWED_HOSTS.append(host)


def read_in_the_event_loop() -> None:
    """Run short API reads of an embedded database in the event loop's thread.

    By default Django refuses that, because a query may take long. It has a switch for programs with
    short queries: SQLite returns a row in less time than another thread takes to wake. Only the
    calls of ``asgi._SHORT`` read there. With PostgreSQL the switch stays off, so the tests on
    PostgreSQL prove that nothing else reads in the loop.
    """
    if is_embedded():
        os.environ["DJANGO_ALLOW_ASYNC_UNSAFE"] = "1"


class _Server(uvicorn.Server):
    """uvicorn server that answers long polls when it shuts down.

    uvicorn would let them wait until its patience is over, and then answer with 500.
    """

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Serve, then import what the first requests of each kind need."""
        await super().startup(sockets)
        threading.Thread(target=_import_rest, name="imports", daemon=True).start()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Answer the long polls, then shut down."""
        SHUTTING_DOWN.set()
        await super().shutdown(sockets)


def _import_rest() -> None:
    time.sleep(_IMPORTS_AFTER_S)
    import_views(get_resolver())
    spare_collections()


def import_views(resolver: URLResolver) -> None:
    """Import the views of all addresses; raise ``ImportError`` or ``AttributeError`` for a typo."""
    for entry in resolver.url_patterns:
        if isinstance(entry, URLResolver):
            import_views(entry)
        elif isinstance(entry.callback, View):
            _ = entry.callback.function


def serve(listener: socket.socket) -> None:
    """Serve until SIGINT or SIGTERM."""
    read_in_the_event_loop()
    listener.setblocking(False)
    logging.getLogger("uvicorn.error").setLevel(logging.WARNING)
    # static files are sent by WhiteNoise, which reads them synchronously; they are small
    warnings.filterwarnings("ignore", message="StreamingHttpResponse must consume synchronous")
    config = uvicorn.Config(
        "console.asgi:application",
        log_config=None,
        access_log=False,
        lifespan="off",
        server_header=False,
        date_header=True,
        # without this, uvicorn believes everybody on this machine
        proxy_headers=bool(settings.STATEYARD_PROXIES),
        forwarded_allow_ips=settings.STATEYARD_PROXIES,
        timeout_graceful_shutdown=3,
        timeout_keep_alive=KEEP_ALIVE_S,
        backlog=BACKLOG,
        http=make_protocol_class(listener),
        ws="none",
    )
    config.load()
    if settings.STATEYARD_TRUSTED_USER_HEADER:  # around uvicorn's own trust in proxies
        config.loaded_app = UserHeader(
            config.loaded_app,
            settings.STATEYARD_TRUSTED_USER_HEADER,
            settings.STATEYARD_PROXIES,
        )
    _ = get_resolver().url_patterns  # what every page needs
    spare_collections()
    server = _Server(config)
    # uvicorn raises the signal again after a clean stop, which would end the process by it
    signal.signal(signal.SIGTERM, lambda *_: None)
    with contextlib.suppress(KeyboardInterrupt):  # uvicorn raises it again after a clean stop
        server.run(sockets=[listener])


def make_protocol_class(listener: socket.socket) -> type[BoundedProtocol]:
    """Return the protocol class for connections to a non-blocking listening socket."""
    tasks: set[asyncio.Task[object]] = set()

    class Protocol(BoundedProtocol):
        """Takes the connections that wait when the loop has taken its own."""

        def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
            """Begin a connection."""
            super().connection_made(transport)
            with contextlib.suppress(OSError):  # none waits, or too many files are open
                for _ in range(MOST_A_TURN):
                    self._begin(listener.accept()[0])

        def _begin(self, accepted: socket.socket) -> None:
            accepted.setblocking(False)
            task = self.loop.create_task(_connect(self.loop, self._make_protocol, accepted))
            tasks.add(task)
            task.add_done_callback(tasks.discard)

        def _make_protocol(self) -> BoundedProtocol:
            return BoundedProtocol(self.config, self.server_state, self.app_state)

    return Protocol


async def _connect(
    loop: asyncio.AbstractEventLoop,
    make: Callable[[], BoundedProtocol],
    accepted: socket.socket,
) -> None:
    """Let the event loop serve an accepted connection; close it on an error."""
    try:
        await loop.connect_accepted_socket(make, accepted)
    except OSError:
        accepted.close()
