"""The database is there, and takes no writes or too few connections, or is another one.

``read-only``: the server refuses to write for a while, as a demoted primary does. ``promote``: the
second host of an address becomes the primary while the first one answers on, read-only. ``pooled``:
a PgBouncer in session mode is killed, and workers behind it. ``connections``: fewer than the
processes would take. ``refused``: the server is down for twenty seconds.
"""

from __future__ import annotations

import contextlib
import json
import os
import random
import signal
import time
import urllib.error
import urllib.request
from typing import TYPE_CHECKING

from botocore.exceptions import ClientError

from tests.chaos.database import wait_until
from tests.chaos.load import Load, Report
from tests.chaos.silence import LONGEST_S, Standstill
from tests.chaos.stage import begin, close
from tests.chaos.team_server import machine_arn
from tests.pgbouncer import PgBouncer
from tests.postgres import Postgres, address

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.chaos.stage import Size
    from tests.chaos.team_server import TeamServer

_LINES = 20  # of the log of a process, in an outage
_OUT_S, _DOWN_S = 8.0, 20.0
_RETURN_S = 10.0
_SLOTS = 20  # of which three are for superusers
_OURS = "SELECT application_name, query FROM pg_stat_activity WHERE application_name ~ '^stateyard'"
_ENDED = "SELECT count(*) FROM console_execution WHERE status <> 'RUNNING'"


def read_only(folder: Path, server: Postgres | None, size: Size) -> Report:
    """Let the server take no writes for a while, again and again."""
    assert server is not None
    report = Report("read-only", size.seed)
    yard = begin(folder, server, size)
    load = Load(yard)
    load.work()
    starter = load.begin(size.n, size.per_s)
    for _ in range(size.faults):
        time.sleep(size.n / size.per_s / (size.faults + 1))
        with _few_lines(yard, report, size):
            server.read_only(on=True)
            _refuses(yard, report)
            time.sleep(_OUT_S)
            server.read_only(on=False)
            _works(server, report)
    starter.join()
    return close(yard, load, report)


def promote(folder: Path, server: Postgres | None, size: Size) -> Report:
    """Promote the second host of an address; the first one answers on, and takes no writes."""
    assert server is not None
    report = Report("promote", size.seed)
    standby = server.replica(folder / "standby")
    try:
        yard = begin(folder, server, size, url=address(server.folder, standby.folder))
        load = Load(yard)
        load.work()
        starter = load.begin(size.n, size.per_s)
        time.sleep(size.n / size.per_s / 2)
        with _few_lines(yard, report, size):
            server.read_only(on=True)
            _refuses(yard, report)
            _catch_up(server, standby)
            standby.promote()
            _works(standby, report)
        starter.join()
        if not wait_until(lambda: not server.ask(_OURS), _RETURN_S, 0.5):
            report.violations.append(f"connections stay with the old one: {server.ask(_OURS)}")
        return close(yard, load, report)
    finally:
        standby.stop()


def pooled(folder: Path, server: Postgres | None, size: Size) -> Report:
    """Kill a PgBouncer in session mode, and workers whose sessions it must end."""
    assert server is not None
    report = Report("pooled", size.seed)
    pooler = PgBouncer(folder / "pgbouncer", server, pool_mode="session")
    try:
        yard = begin(folder, server, size, url=pooler.url)
        load = Load(yard)
        load.work()
        dice = random.Random(size.seed)
        starter = load.begin(size.n, size.per_s)
        for turn in range(size.faults):
            time.sleep(size.n / size.per_s / (size.faults + 1))
            if turn % 2 == 0:
                pooler.kill()
                pooler.start()
            elif pids := yard.worker_pids():
                with contextlib.suppress(ProcessLookupError):
                    os.kill(dice.choice(pids), signal.SIGKILL)
        starter.join()
        return close(yard, load, report)
    finally:
        pooler.kill()


def connections(folder: Path, server: Postgres | None, size: Size) -> Report:
    """Give the processes fewer connections than they would take, for all of the time."""
    assert server is not None
    report = Report("connections", size.seed)
    server.ask(f"ALTER SYSTEM SET max_connections = {_SLOTS}")
    server.ask("CREATE ROLE yard LOGIN")
    server.ask("ALTER DATABASE postgres OWNER TO yard")
    for kind in ("TABLES", "SEQUENCES"):  # which are there already
        server.ask(f"GRANT ALL ON ALL {kind} IN SCHEMA public TO yard")
    server.restart("fast")
    yard = begin(folder, server, size, url=server.url.replace("postgres:@", "yard:@"))
    load = Load(yard)
    load.work()
    with Standstill(server) as standstill:
        load.start(size.n, size.per_s)
        load.wait(240)
    report.facts["standstill_s"] = round(standstill.longest_s, 1)
    if standstill.longest_s >= LONGEST_S:
        report.violations.append(f"work stood still for {standstill.longest_s:.1f} s")
    return close(yard, load, report)


def refused(folder: Path, server: Postgres | None, size: Size) -> Report:
    """End the server for a while, again and again; no process may end with it."""
    assert server is not None
    report = Report("refused", size.seed)
    yard = begin(folder, server, size)
    load = Load(yard)
    load.work()
    before = _processes(yard)
    starter = load.begin(size.n, size.per_s)
    for _ in range(size.faults):
        time.sleep(size.n / size.per_s / (size.faults + 1))
        with _few_lines(yard, report, size):
            server.stop("immediate")
            _answers_503(yard, report)
            time.sleep(_DOWN_S)
            server.start()
            _works(server, report)
    starter.join()
    if _processes(yard) != before:
        report.violations.append(f"processes {before} became {_processes(yard)}")
    return close(yard, load, report)


def _processes(yard: TeamServer) -> set[int]:
    assert yard.web is not None
    alive = {yard.web.pid} if yard.web.poll() is None else set()
    return alive | set(yard.worker_pids())


def _refuses(yard: TeamServer, report: Report) -> None:
    """Check that readiness names the reason, and that the API answers 503."""
    told: list[str] = []

    def says() -> bool:
        with contextlib.suppress(OSError):
            try:
                urllib.request.urlopen(f"http://127.0.0.1:{yard.port}/readyz", timeout=5).close()
            except urllib.error.HTTPError as error:
                told[:] = json.load(error)["reasons"]
        return any("takes no writes" in reason for reason in told)

    if not wait_until(says, _RETURN_S, 1.0):
        report.violations.append(f"readiness does not say that nothing is written: {told}")
    _answers_503(yard, report)


def _answers_503(yard: TeamServer, report: Report) -> None:
    try:
        yard.client().start_execution(stateMachineArn=machine_arn("chain"), name="refused")
        report.violations.append("an execution was started without a database that takes writes")
    except ClientError as error:
        status = error.response["ResponseMetadata"]["HTTPStatusCode"]
        report.facts["answered"] = status
        if status != 503:
            report.violations.append(f"the API answered {status} {error}")


def _works(server: Postgres, report: Report) -> None:
    """Check that executions end soon after the database is back."""
    begun = time.monotonic()
    before = server.ask(_ENDED)
    if not wait_until(lambda: server.ask(_ENDED) != before, _RETURN_S):
        report.violations.append(f"no execution ended within {_RETURN_S} s of the return")
    report.facts["back_s"] = round(time.monotonic() - begun, 1)


def _catch_up(server: Postgres, standby: Postgres) -> None:
    """Wait until a standby has all that its primary has written."""

    def has_all() -> bool:
        written = server.ask("SELECT pg_current_wal_lsn()")
        return standby.ask("SELECT pg_last_wal_replay_lsn()") == written

    if not wait_until(has_all, 60):
        raise RuntimeError("the standby does not catch up")


@contextlib.contextmanager
def _few_lines(yard: TeamServer, report: Report, size: Size) -> Iterator[None]:
    """Check how much the processes log meanwhile."""
    logs = {yard.folder / "web.log": 1, yard.folder / "workers.log": size.workers}
    before = {path: len(path.read_text().splitlines()) for path in logs}
    yield
    for path, processes in logs.items():
        lines = path.read_text().splitlines()[before[path] :]
        report.facts[f"lines_{path.stem}"] = len(lines)
        if len(lines) > _LINES * processes:
            report.violations.append(f"{path.name}: {len(lines)} lines, such as {lines[-1]}")
