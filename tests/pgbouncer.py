"""A PgBouncer before a PostgreSQL of the tests, where the system has one."""

from __future__ import annotations

import shutil
import subprocess
from typing import TYPE_CHECKING

from tests.acceptance.server import free_port
from tests.waiting import wait_until

if TYPE_CHECKING:
    from pathlib import Path

    from tests.postgres import Postgres

PROGRAM = shutil.which("pgbouncer", path="/usr/sbin:/usr/local/sbin:/usr/bin")


class PgBouncer:
    """Pools the sessions of a server; listens on a port of its own."""

    def __init__(self, folder: Path, server: Postgres, **settings: object) -> None:
        """Start it in a new folder. ``settings``: further lines of its file."""
        folder.mkdir()
        self.port = free_port()
        self._owner = server.folder.owner()
        users = folder / "users"
        users.write_text('"postgres" ""\n')
        lines = {
            "listen_addr": "127.0.0.1",
            "listen_port": self.port,
            "unix_socket_dir": "",
            "auth_type": "trust",
            "auth_file": users,
            "default_pool_size": 60,
            "max_client_conn": 200,
            **settings,
        }
        database = f"[databases]\npostgres = host={server.folder} port=5432 dbname=postgres\n"
        text = "".join(f"{name} = {value}\n" for name, value in lines.items())
        self._file = folder / "pgbouncer.ini"
        self._file.write_text(f"{database}[pgbouncer]\n{text}")
        self._log = folder / "log"
        self.start()

    @property
    def url(self) -> str:
        """Return the address of the database through it."""
        return f"postgres://postgres@127.0.0.1:{self.port}/postgres"

    def start(self) -> None:
        """Start it, and wait until it listens."""
        assert PROGRAM is not None
        self._log.touch()
        before = self._log.read_text().count("process up")
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(
                [PROGRAM, str(self._file)], user=self._owner, stdout=log, stderr=log
            )
        wait_until(lambda: self._log.read_text().count("process up") > before)

    def kill(self) -> None:
        """Kill it, with the connections of both sides."""
        self._process.kill()
        self._process.wait()
