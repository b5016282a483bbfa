"""Take all connections that wait at once, where the event loop takes one in each of its turns.

uvloop takes one new connection a turn, and answers all that have asked something in the same turn:

1. 640 clients connect at once, and each asks again as soon as it has an answer.
2. A turn answers those that are connected already, and takes one more. The more there are, the
   longer a turn lasts: a few, then a few tens of milliseconds.
3. The last client is taken after two seconds, without a word of its call having been read.

So a connection that the loop has taken takes those behind it, up to a bound: a turn in which all of
1,500 were taken lasted for a tenth of a second. (asyncio's own loop takes as many as may wait.)
"""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

from console.server.connections import BoundedProtocol

if TYPE_CHECKING:
    import asyncio
    import socket
    from collections.abc import Callable

MOST_A_TURN = 128


def make_protocol_class(listener: socket.socket) -> type[BoundedProtocol]:
    """Return the class for connections to a listening socket, which must not block."""
    tasks: set[asyncio.Task[object]] = set()

    class Protocol(BoundedProtocol):
        """Takes the connections that wait when the loop has taken its own."""

        def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
            """Begin a connection."""
            super().connection_made(transport)
            with contextlib.suppress(OSError):  # none is left, or the process may open no more
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
    """Let the loop serve a connection; close one that cannot be."""
    try:
        await loop.connect_accepted_socket(make, accepted)
    except OSError:
        accepted.close()
