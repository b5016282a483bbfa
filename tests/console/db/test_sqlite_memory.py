"""The caches of many connections to SQLite, one of each thread, have a limit together."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
from typing import TYPE_CHECKING

from console.config import settings

if TYPE_CHECKING:
    from pathlib import Path

_READ_BY_MANY = """
import pathlib, sqlite3, sys
kept = []
for _ in range(80):
    connection = sqlite3.connect(sys.argv[1])
    connection.executescript(sys.argv[2])
    connection.execute("SELECT SUM(LENGTH(text)) FROM filled").fetchone()
    kept.append(connection)
status = pathlib.Path("/proc/self/status").read_text()
print(status.partition("VmRSS:")[2].split()[0])
"""


def test_eighty_connections_share_a_quarter_of_a_gigabyte(tmp_path: Path) -> None:
    """Each has eight megabytes of its own else: a server has two hundred threads."""
    path = tmp_path / "filled.sqlite3"
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE filled (text)")
        connection.executemany("INSERT INTO filled VALUES (?)", [("x" * 900,)] * 12_000)
    connection.close()
    pragmas = settings._sqlite()["OPTIONS"]["init_command"]
    command = [sys.executable, "-c", _READ_BY_MANY, str(path), pragmas]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=120)
    assert int(done.stdout) < 400_000  # kB
