"""Measure how near a chain comes to its limit: a bare loop that commits the same rows in groups.

``python -m tests.benchmarks.commit_limit [--databases sqlite,postgres] [--rounds 3] [--seconds 3]``
gives a server the chain of ten Pass states by sixteen clients (``sfn_scenarios``), ends the server,
and lets a bare loop commit copies of one execution's rows into the same tables: by ``executemany``
and ``synchronous=FULL`` on SQLite, by COPY with ``fsync`` and ``synchronous_commit`` on PostgreSQL.
The loop answers nobody and computes nothing. Sixteen clients can have sixteen executions in one
commit at most, so the share is that of the loop's rate with groups of sixteen.
"""

from __future__ import annotations

import argparse
import asyncio
import sqlite3
import statistics
import tempfile
import time
import uuid
from abc import ABC, abstractmethod
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import psycopg
from psycopg import sql

from tests.benchmarks.compared_servers import WORKERS, process_tree_s, running_server
from tests.benchmarks.sfn_scenarios import CLIENTS, chain, chains
from tests.chaos.team_server import TeamServer
from tests.postgres import Postgres

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tests.benchmarks.sfn_client import SigningClient

GROUPS = (1, CLIENTS, 50)
_CHAINS, _BESIDE = 500, 21
"""Executions of the chain that are timed, and those that are not."""
_TABLES = {
    "console_execution": "id",
    "console_runrow": "execution_id",
    "console_historyevent": "execution_id",
    "console_auditentry": "target",
}
"""Tables in which a chain leaves rows -> the column that says whose they are."""
_FIRST = 1_000_000_000  # number of the first copy: the server has used none so far


class Table(NamedTuple):
    """The rows that one execution has in a table."""

    name: str
    columns: tuple[str, ...]
    rows: list[tuple[Any, ...]]


class Measured(NamedTuple):
    """A rate a second, and the processor time of an execution in milliseconds, of all processes."""

    rate: float
    cost_ms: float


# -- databases -------------------------------------------------------------------------------------


class Database(ABC):
    """A database that a server has used, and a connection to it."""

    @abstractmethod
    def select(self, text: str, value: object) -> tuple[tuple[str, ...], list[tuple[Any, ...]]]:
        """Return names of columns and rows of a query with one ``%s``."""

    @abstractmethod
    def commit(self, tables: Sequence[Table]) -> None:
        """Insert rows in one durable transaction."""

    @abstractmethod
    def server_cpu_s(self) -> float:
        """Return the processor time of the database's own processes."""


class SqliteDatabase(Database):
    """A file, opened as the server opens it."""

    def __init__(self, path: Path) -> None:
        """Open a file that is there."""
        self._own = sqlite3.connect(path, isolation_level=None)
        self._own.execute("PRAGMA journal_mode=WAL")
        self._own.execute("PRAGMA synchronous=FULL")

    def select(self, text: str, value: object) -> tuple[tuple[str, ...], list[tuple[Any, ...]]]:
        """Return names of columns and rows."""
        cursor = self._own.execute(text.replace("%s", "?"), [value])
        return tuple(about[0] for about in cursor.description), cursor.fetchall()

    def commit(self, tables: Sequence[Table]) -> None:
        """Insert rows by ``executemany``."""
        self._own.execute("BEGIN IMMEDIATE")
        for table in tables:
            marks = ", ".join("?" * len(table.columns))
            names = ", ".join(f'"{name}"' for name in table.columns)
            self._own.executemany(
                f"INSERT INTO {table.name} ({names}) VALUES ({marks})",
                table.rows,
            )
        self._own.execute("COMMIT")

    def server_cpu_s(self) -> float:
        """Return 0: the database is a part of this process."""
        return 0.0


class PostgresDatabase(Database):
    """A PostgreSQL with its own settings, which are durable."""

    def __init__(self, server: Postgres) -> None:
        """Connect to a server that runs."""
        self._own = psycopg.connect(server.url, autocommit=True)
        pid_file = (server.folder / "postmaster.pid").read_text(encoding="ascii")
        self._postmaster = int(pid_file.split("\n", 1)[0])

    def select(self, text: str, value: object) -> tuple[tuple[str, ...], list[tuple[Any, ...]]]:
        """Return names of columns and rows."""
        cursor = self._own.execute(text.encode(), [value])
        return tuple(about.name for about in cursor.description or ()), cursor.fetchall()

    def commit(self, tables: Sequence[Table]) -> None:
        """Insert rows by COPY."""
        with self._own.transaction(), self._own.cursor() as cursor:
            for table in tables:
                names = sql.SQL(", ").join(map(sql.Identifier, table.columns))
                statement = sql.SQL("COPY {} ({}) FROM STDIN")
                with cursor.copy(statement.format(sql.Identifier(table.name), names)) as copy:
                    for row in table.rows:
                        copy.write_row(row)

    def server_cpu_s(self) -> float:
        """Return the processor time of all its processes."""
        return process_tree_s([self._postmaster])


# -- the chain -------------------------------------------------------------------------------------


async def _measure_chain(client: SigningClient) -> tuple[float, str]:
    """Return executions a second, and the ARN of one more that has ended."""
    rate = await chains(client, _CHAINS)
    return rate, await client.run(await client.create_machine(chain(10)), pause_s=0.01)


def serve(yard: TeamServer, database: Postgres | None) -> tuple[Measured, str]:
    """Run the chains on a server and end it; return what they reached, and the ARN of one."""
    try:
        yard.start_web()
        others = []
        if database is not None:
            yard.start_workers(WORKERS)
            others = [int((database.folder / "postmaster.pid").read_text().split()[0])]
        server = running_server(yard, *others)
        with asyncio.Runner() as loop:
            before = server.cpu_s()
            rate, arn = loop.run(_measure_chain(server.client))
            cost_ms = (server.cpu_s() - before) / (_CHAINS + _BESIDE) * 1e3
        return Measured(rate, cost_ms), arn
    finally:
        yard.stop()


# -- the bare loop ---------------------------------------------------------------------------------


def rows_of(database: Database, arn: str) -> list[Table]:
    """Return all rows that one execution has left."""
    query = "SELECT id FROM console_execution WHERE arn = %s"
    number = database.select(query, arn)[1][0][0]
    tables = []
    for name, column in _TABLES.items():
        value = arn if column == "target" else number
        select = f"SELECT * FROM {name} WHERE {column} = %s"
        columns, rows = database.select(select, value)
        if not rows:
            raise SystemExit(f"{name}: the execution {arn} has left no row")
        tables.append(Table(name, columns, rows))
    return tables


def copies(tables: Sequence[Table], arn: str, first: int, count: int) -> list[Table]:
    """Return the rows of so many executions like one, with numbers from ``first`` on."""
    names = [(first + offset, str(uuid.uuid4())) for offset in range(count)]
    prefix = arn.rpartition(":")[0]
    results = []
    for table in tables:
        own = {name: place for place, name in enumerate(table.columns)}
        rows = []
        for number, name in names:
            new = {
                own.get("id"): number,
                own.get("execution_id"): number,
                own.get("name"): name,
                own.get("arn", own.get("target")): f"{prefix}:{name}",
            }
            rows += [
                tuple(new.get(place, value) for place, value in enumerate(row))
                for row in table.rows
            ]
        results.append(Table(table.name, table.columns, rows))
    return results


def numbers() -> Iterator[int]:
    """Yield where each group's numbers begin."""
    first = _FIRST
    while True:
        yield first
        first += max(GROUPS)


def bare_loop(
    database: Database, tables: Sequence[Table], arn: str, size: int, seconds: float, firsts: Any
) -> Measured:
    """Commit groups of so many executions for a while; to make the rows takes no part in it."""
    lasted, count, making_s = 0.0, 0, 0.0
    own_s, server_s = time.process_time(), database.server_cpu_s()
    while lasted < seconds:
        before = time.process_time()
        group = copies(tables, arn, next(firsts), size)
        making_s += time.process_time() - before
        begun = time.perf_counter()
        database.commit(group)
        lasted += time.perf_counter() - begun
        count += size
    used_s = time.process_time() - own_s - making_s + database.server_cpu_s() - server_s
    return Measured(count / lasted, used_s / count * 1e3)


def measure(name: str, folder: Path, seconds: float) -> tuple[Measured, dict[int, Measured]]:
    """Return what the chain reached on a new server, and the bare loop for each size of groups."""
    with ExitStack() as stack:
        postgres = None
        if name == "postgres":
            postgres = Postgres(folder / "postgres")
            stack.callback(postgres.stop)
        yard = TeamServer(folder, postgres.url if postgres else None)
        reached, arn = serve(yard, postgres)
        database: Database = (
            PostgresDatabase(postgres)
            if postgres
            else SqliteDatabase(folder / "data" / "stateyard.sqlite3")
        )
        tables, firsts = rows_of(database, arn), numbers()
        bare = {size: bare_loop(database, tables, arn, size, seconds, firsts) for size in GROUPS}
        return reached, bare


# -- the table -------------------------------------------------------------------------------------


def main() -> None:
    """Measure and print the medians."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--databases", default="sqlite,postgres")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=3.0, help="of the loop for each size")
    options = parser.parse_args()
    print("| database | | executions/s | processor time of an execution, ms | the chain's share |")
    print("|---|---|---|---|---|")
    for name in options.databases.split(","):
        rounds = []
        for _ in range(options.rounds):
            with tempfile.TemporaryDirectory() as folder:
                Path(folder).chmod(0o755)
                rounds.append(measure(name, Path(folder), options.seconds))
        reached = _median([chains for chains, _ in rounds])
        _print_row(name, f"chain, {CLIENTS} clients", reached, "")
        for size in GROUPS:
            bare = _median([loops[size] for _, loops in rounds])
            _print_row(
                name, f"bare loop, groups of {size}", bare, f"{reached.rate / bare.rate:.0%}"
            )


def _median(measured: Sequence[Measured]) -> Measured:
    return Measured(*(statistics.median(values) for values in zip(*measured, strict=True)))


def _print_row(*cells: Any) -> None:
    name, label, measured, share = cells
    print(
        f"| {name} | {label} | {measured.rate:,.0f} | {measured.cost_ms:.2f} | {share} |",
        flush=True,
    )


if __name__ == "__main__":
    main()
