"""Measure whether a list of a million executions costs what one of a thousand costs.

``python -m tests.benchmarks.list_cost [--rows 1000,1000000] [--rounds 21] [--postgres|--write]``
fills a database for each size and prints the median time of a page for each query of a list, and of
some whole pages with their frame: processor time on SQLite, elapsed time on PostgreSQL. The newest
executions, as many as a search examines, have histories. The databases take turns, each in a
process of its own, so that other load on the machine affects them alike. On PostgreSQL the command
first does what the server's own autovacuum does after such a load (VACUUM, ANALYZE, a checkpoint)
and waits for it. ``--write``: put the table of SQLite into docs/explanation/performance.md.
"""

from __future__ import annotations

import argparse
import atexit
import json
import multiprocessing
import os
import statistics
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tests.benchmarks.compare import circumstances, write

if TYPE_CHECKING:
    from collections.abc import Callable
    from multiprocessing.connection import Connection

    from django.db.backends.utils import CursorWrapper

ROLE = "arn:aws:iam::123456789012:role/bench"
START = 1_767_355_200_000
QUESTIONS = {
    "newest": "",
    "page at the far end": "before={far}",
    "one status, frequent": "status=SUCCEEDED",
    "one status, rare": "status=TIMED_OUT",
    "four statuses": "status=SUCCEEDED&status=FAILED&status=TIMED_OUT&status=RUNNING",
    "one machine, frequent": "machine=bench",
    "one machine, rare": "machine=other",
    "machine, nothing matches": "machine=bench&q=nothing-has-this-name",
    "name, nothing matches": "q=nothing-has-this-name",
    "error, nothing matches": "error=NoSuchError",
    "duration, nothing matches": "min=9d",
    "started by, nothing matches": "by=nobody",
    "redriven, nothing matches": "redriven=yes",
    "inside, one value": "find=input.orderId+%3D+{some}",
    "inside, looks into every row": "find=input.orderId+%3D+-1.5",
    "inside, free text, no match": "find=nothing-says-this",
    "inside, above a value, none": "find=input.orderId+%3E+999999999",
    "history, nothing matches": "find=history+~+nothing-says-this",
    "caught, nothing matches": "find=caught+%3D+NoSuchError",
    "started, of a day": "find=started+%3E+2026-01-02T13:00+started+%3C+2026-01-02T14:00+x9",
    "times in the middle": "from={middle}&q=x",
}
PAGES = {
    "the whole page, newest": "",
    "the whole page, far end": "before={far}",
    "the whole page, one status": "status=SUCCEEDED",
}
"""Asked as a browser does: the frame, the saved views and the table are in it."""
EVENTS = 12
"""The number of events of each history."""


def fill(rows: int, machine: Any, other: Any) -> None:
    """Store so many executions, one a second, by SQL that the database runs itself."""
    from django.db import connection

    from console.models import Execution

    fields = [field for field in Execution._meta.concrete_fields if field.column != "id"]
    names = [str(field.column) for field in fields]
    status = (
        "CASE WHEN n % 1000 = 0 THEN 'TIMED_OUT' WHEN n % 20 = 0 THEN 'FAILED' "
        "WHEN n % 10000 = 1 THEN 'RUNNING' ELSE 'SUCCEEDED' END"
    )
    place = "'arn:aws:states:us-east-1:123456789012:"
    values = {
        "project_id": str(machine.project_id),
        "state_machine_id": f"CASE WHEN n % 100 = 7 THEN {other.pk} ELSE {machine.pk} END",
        "state_machine_arn": f"{place}stateMachine:bench'",
        "arn": f"{place}execution:bench:x' || n",
        "name": "'x' || n",
        "status": status,
        "definition_id": f"'{machine.definition_id}'",
        "input": '\'{"orderId": \' || n || \', "pad": "' + "x" * 400 + "\"}'",
        "error": "CASE WHEN n % 20 = 0 THEN 'States.Timeout' END",
        "start_ms": f"{START} + n * 1000",
        "stop_ms": f"CASE WHEN n % 10000 = 1 THEN NULL ELSE {START} + n * 1000 + n % 500 END",
        **dict.fromkeys(("machine_updated_ms", "redrive_count"), "0"),
        **dict.fromkeys(("output", "cause", "redrive_ms", "map_run_id", "item_index"), "NULL"),
    }
    empty = {str(field.column): "NULL" if field.null else "''" for field in fields}
    chosen = ", ".join(values.get(name, empty[name]) for name in names)
    numbers = f"WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c WHERE n < {rows})"
    with connection.cursor() as cursor:
        cursor.execute(
            f"INSERT INTO console_execution ({', '.join(names)}) {numbers} SELECT {chosen} FROM c"
            if connection.vendor == "sqlite"
            else f"INSERT INTO console_execution ({', '.join(names)}) "
            f"SELECT {chosen} FROM generate_series(1, {rows}) AS c(n)"
        )
        _fill_histories(cursor)
        if connection.vendor == "postgresql":
            cursor.execute("VACUUM ANALYZE")
            cursor.execute("CHECKPOINT")
        cursor.execute("ANALYZE")


def _fill_histories(cursor: CursorWrapper) -> None:
    """Store the runs and events of the executions that a search in histories examines."""
    from console.web.search.scan import WINDOW

    newest = f"(SELECT id, start_ms FROM console_execution ORDER BY id DESC LIMIT {WINDOW}) AS x"
    kind = (
        "CASE WHEN n = 1 THEN 'ExecutionStarted' "
        f"WHEN n = {EVENTS} THEN 'ExecutionSucceeded' "
        "WHEN n % 2 = 0 THEN 'PassStateEntered' ELSE 'PassStateExited' END"
    )
    data = {"name": "State@n", "input": json.dumps({"orderId": "@id", "pad": "x" * 40})}
    details = json.dumps(data).replace("@n", "' || n / 2 || '").replace("@id", "' || id || '")
    cursor.execute(
        "INSERT INTO console_historyevent "
        "(execution_id, event_id, previous, at_ms, type, state, details) "
        "WITH RECURSIVE c(n) AS "
        f"(SELECT 1 UNION ALL SELECT n + 1 FROM c WHERE n < {EVENTS}) "
        f"SELECT id, n, n - 1, start_ms + n, {kind}, 'State' || n / 2, '{details}' FROM {newest}, c"
    )
    cursor.execute(
        "INSERT INTO console_runrow "
        "(execution_id, version, next_event, snapshot, ready, failures, parked, children_end) "
        f"SELECT id, 1, {EVENTS + 1}, '', FALSE, 0, '', FALSE FROM {newest}"
    )


def questions(rows: int) -> dict[str, Callable[[], Any]]:
    """Fill an empty database, and return what asks each question."""
    from django.contrib.auth import get_user_model
    from django.core.management import call_command
    from django.http import QueryDict
    from django.test import Client

    from console import access
    from console.models import Membership, Project
    from console.store.machines import machines
    from console.web.core.scope import Scope
    from console.web.search import scan
    from console.web.search.filters import ExecutionFilters

    call_command("migrate", verbosity=0)
    call_command("flush", interactive=False, verbosity=0)
    project = Project.objects.create(name="default", account_id="123456789012")
    text = '{"StartAt": "P", "States": {"P": {"Type": "Pass", "End": true}}}'
    bench, other = (
        machines.create_machine(project, "us-east-1", name=name, definition=text, role_arn=ROLE)
        for name in ("bench", "other")
    )
    fill(rows, bench, other)
    user = get_user_model().objects.create_user("bench")
    Membership.objects.create(project=project, user=user, role="editor")
    here = Scope.of(access.Principal(user, project, "editor"), "us-east-1")
    places = {"some": rows - 500, "far": f"{START + 60_000}-60", "middle": "2026-01-02T13:00"}
    client = Client(HTTP_HOST="localhost")
    client.force_login(user)

    def ask(query: str) -> Callable[[], Any]:
        filters = ExecutionFilters.of(QueryDict(query.format(**places)))
        assert not filters.problems, filters.problems
        return lambda: scan.find_executions(here, None, filters)

    def page(query: str) -> Callable[[], Any]:
        address = f"/executions/?{query.format(**places)}"
        answer = client.get(address)
        assert answer.status_code == 200, answer
        return lambda: client.get(address).content

    calls = {name: ask(query) for name, query in QUESTIONS.items()}
    return calls | {name: page(query) for name, query in PAGES.items()}


def begin(rows: int, folder: str, *, postgres: bool) -> Connection:
    """Start what answers for a database of that size, and wait until it is filled."""
    apart = multiprocessing.get_context("spawn")
    near, far = apart.Pipe()
    own = Path(folder) / str(rows)
    own.mkdir()
    apart.Process(target=serve, args=(rows, str(own), far), kwargs={"postgres": postgres}).start()
    near.recv()
    return near


def serve(rows: int, folder: str, ends: Connection, *, postgres: bool) -> None:
    """Fill a database, then answer by name with the milliseconds of an answer, until told None."""
    os.environ["STATEYARD_DATA"] = folder
    os.environ["DJANGO_SETTINGS_MODULE"] = "console.config.settings"
    if postgres:
        from tests.postgres import Postgres

        server = Postgres(Path(folder) / "postgres")
        atexit.register(server.stop)
        os.environ["STATEYARD_DATABASE_URL"] = server.url
    import django

    django.setup()
    asked = questions(rows)
    clock = time.perf_counter if postgres else time.process_time  # SQLite runs in this process
    ends.send(None)
    while name := ends.recv():
        begun = clock()
        asked[name]()
        ends.send((clock() - begun) * 1000)


def main() -> None:
    """Measure, print, and write the table where that is asked for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", default="1000,1000000")
    parser.add_argument("--rounds", type=int, default=21)
    parser.add_argument("--postgres", action="store_true")
    parser.add_argument("--write", action="store_true")
    options = parser.parse_args()
    if options.postgres and options.write:
        parser.error("--write: got --postgres, wanted SQLite, whose processor time is in the table")
    sizes = [int(size) for size in options.rows.split(",")]
    lines = [f"| ms a page | {' | '.join(f'{size:,}' for size in sizes)} |"]
    lines.append("|---" * (len(sizes) + 1) + "|")
    with tempfile.TemporaryDirectory() as folder:
        pipes = [begin(size, folder, postgres=options.postgres) for size in sizes]
        print(f"{'milliseconds a page':<30}" + "".join(f"{size:>12,}" for size in sizes))
        for name in (*QUESTIONS, *PAGES):
            spans = alternate(name, pipes, options.rounds)
            print(f"{name:<30}" + "".join(f"{span:>12.1f}" for span in spans), end="")
            print(f"{spans[-1] / spans[0]:>8.1f}x", flush=True)
            lines.append(f"| {name} | {' | '.join(f'{span:,.1f}' for span in spans)} |")
        for pipe in pipes:
            pipe.send(None)
        for process in multiprocessing.active_children():
            process.join()
    if options.write:
        text = "\n".join((*lines, "", circumstances(options.rounds)))
        write(text, "lists")


def alternate(name: str, pipes: list[Connection], rounds: int) -> list[float]:
    """Return the median of each database's times, asked in turn after one that warms up."""
    spans: list[list[float]] = [[] for _ in pipes]
    for _ in range(rounds + 1):
        for pipe, own in zip(pipes, spans, strict=True):
            pipe.send(name)
            own.append(pipe.recv())
    return [statistics.median(own[1:]) for own in spans]


if __name__ == "__main__":
    main()
