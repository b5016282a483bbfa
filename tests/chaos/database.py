"""A proxy in front of PostgreSQL that cuts connections."""

from __future__ import annotations

import contextlib
import random
import selectors
import socket
import threading
import time


class Proxy:
    """Passes bytes on between clients and the server; cuts when it is told to.

    ``ambiguous``: how many replies to COMMIT have been cut off: the server has committed, the
    client hears nothing.
    """

    def __init__(self, server: str, share: float, seed: int) -> None:
        """``share``: of the commits whose reply is cut."""
        self._server = server
        self._share = share
        self._random = random.Random(seed)
        self.ambiguous = 0
        self.most = 0
        self._listener = socket.create_server(("127.0.0.1", 0), backlog=256)
        self.port = self._listener.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    @property
    def url(self) -> str:
        """Return the database's address through the proxy."""
        return f"postgres://postgres:@127.0.0.1:{self.port}/postgres"

    def _accept(self) -> None:
        while True:
            client, _ = self._listener.accept()
            threading.Thread(target=self._serve, args=(client,), daemon=True).start()

    def _serve(self, client: socket.socket) -> None:
        server = socket.socket(socket.AF_UNIX)
        with contextlib.suppress(OSError), client, server:
            server.connect(self._server)
            self._pump(client, server)

    def _pump(self, client: socket.socket, server: socket.socket) -> None:
        selector = selectors.DefaultSelector()
        selector.register(client, selectors.EVENT_READ)
        selector.register(server, selectors.EVENT_READ)
        cut = False
        while True:
            for key, _ in selector.select():
                data = key.fileobj.recv(65536)
                if not data:
                    return
                if key.fileobj is server:
                    if cut and b"COMMIT\0" in data:  # the command's tag: it is committed
                        self.ambiguous += 1
                        return
                    client.sendall(data)
                    continue
                if b"COMMIT\0" in data or data[-7:-1] == b"COMMIT":
                    cut = self.ambiguous < self.most and self._random.random() < self._share
                server.sendall(data)


def wait_until(true: object, seconds: float, pause_s: float = 0.05) -> bool:
    """Wait until a callable is true; return whether it became so in time."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if true():
            return True
        time.sleep(pause_s)
    return False
