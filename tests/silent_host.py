"""A web address that accepts connections and never says a word."""

from __future__ import annotations

import contextlib
import socket
import threading


class SilentHost:
    """Listens on a free port of this machine until it is closed."""

    def __init__(self) -> None:
        """Accept connections from now on."""
        self.connections: list[socket.socket] = []
        self._listener = socket.create_server(("127.0.0.1", 0), backlog=1024)
        self.url = f"http://127.0.0.1:{self._listener.getsockname()[1]}"
        self._thread = threading.Thread(target=self._accept, daemon=True)
        self._thread.start()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                self.connections.append(self._listener.accept()[0])

    def close(self) -> None:
        """Let go of whoever waits."""
        with contextlib.suppress(OSError):  # of a listener, not on every system
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self._thread.join(10)  # else a connection that it accepts now would stay open
        for connection in self.connections:
            connection.close()
