"""Planned actions of an operator: hand over, upgrade and go back, restore a backup."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import time
from typing import TYPE_CHECKING

from tests.acceptance.server import ROOT
from tests.chaos.database import wait_until
from tests.chaos.load import Load, Report
from tests.chaos.shapes import PLAIN
from tests.chaos.stage import begin, close
from tests.chaos.team_server import TeamServer
from tests.waiting import PATIENCE_S

if TYPE_CHECKING:
    from pathlib import Path

    from tests.chaos.stage import Size
    from tests.postgres import Postgres


def sigterm(folder: Path, server: Postgres | None, size: Size) -> Report:
    """Ask workers to end while executions run: they hand over, and no call is repeated."""
    assert server is not None
    report = Report("sigterm", size.seed)
    yard = begin(folder, server, size)
    load = Load(yard)
    load.work()
    starter = load.begin(size.n, size.per_s)
    took: list[float] = []
    for _ in range(size.faults):
        time.sleep(max(size.n / size.per_s / size.faults - 0.3, 0.1))
        pid = random.Random(size.seed + len(took)).choice(yard.worker_pids())
        begun = time.monotonic()
        os.kill(pid, signal.SIGTERM)
        if not wait_until(lambda pid=pid: pid not in yard.worker_pids(), 15, 0.01):
            report.violations.append(f"worker {pid} does not end")
        took.append(time.monotonic() - begun)
    starter.join()
    late = sorted(took)
    report.facts |= {"ended": len(took), "hand_over_p50_s": round(late[len(late) // 2], 2)}
    report.facts["hand_over_max_s"] = round(late[-1], 2)
    close(yard, load, report)
    if report.facts["calls_repeated"]:
        report.violations.append(f"{report.facts['calls_repeated']} calls were repeated")
    return report


def upgrade(folder: Path, server: Postgres | None, size: Size) -> Report:
    """From an older revision to this one, back, and forward again, worker by worker, under load.

    Both read and write the newer one's tables.
    """
    assert server is not None
    report = Report("upgrade", size.seed)
    old = export_revision(folder / "old", size.revision)
    yard = TeamServer(folder, server.url)
    yard.root = old
    yard.start_web()
    yard.start_workers(size.workers)
    yard.prepare()
    load = Load(yard, PLAIN)  # an older revision may start nested executions in a way of its own
    load.work()
    starter = load.begin(size.n, size.per_s)
    turns = [ROOT, old, ROOT]
    for root in turns:
        time.sleep(size.n / size.per_s / (len(turns) + 1))
        yard.root = root
        before = yard.workers
        yard.start_workers(size.workers)
        time.sleep(2.0)  # both at work beside each other
        if before is not None:
            before.send_signal(signal.SIGTERM)
            before.wait(PATIENCE_S)
        yard.end_web()
        yard.start_web()
    starter.join()
    report.facts |= {"from": size.revision, "turns": len(turns)}
    return close(yard, load, report)


def export_revision(place: Path, revision: str) -> Path:
    """Write the files of a revision."""
    place.mkdir()
    archive = subprocess.run(
        ["git", "archive", revision], cwd=ROOT, check=True, capture_output=True
    ).stdout
    subprocess.run(["tar", "-x", "-C", str(place)], input=archive, check=True)
    return place


def restore(folder: Path, server: Postgres | None, size: Size) -> Report:
    """Save under load, go on for a while, restore, and revive a worker of the lost future."""
    assert server is not None
    report = Report("restore", size.seed)
    yard = begin(folder, server, size)
    load = Load(yard)
    load.work()
    old = yard.other_worker()
    for turn in range(size.faults):
        numbers = range(turn * size.n, (turn + 1) * size.n)
        starter = load.begin(numbers, size.per_s)
        time.sleep(size.n / size.per_s / 2)
        dump = folder / f"{turn}.dump"
        server.tool("pg_dump", "--format=custom", f"--file={dump}", "postgres")
        starter.join()
        old.send_signal(signal.SIGSTOP)
        yard.kill_web()
        yard.end_workers()
        server.end_sessions()  # the stopped worker may hold a lock in the middle of a step
        server.tool("pg_restore", "--clean", "--if-exists", "--dbname=postgres", str(dump))
        yard.manage("bump_epoch")
        yard.start_web()
        old.send_signal(signal.SIGCONT)
        yard.start_workers(size.workers)
        load.start(numbers, 0)  # what the backup does not have is started again
        load.send_again()
        if not wait_until(lambda old=old: old.poll() is not None, 30):
            report.violations.append("a worker of an older epoch works on")
        old = yard.other_worker()
    report.facts["restores"] = size.faults
    return close(yard, load, report)
