"""Each guard of the store is needed: a copy of the tree without it fails a check."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tests.acceptance.server import ROOT
from tests.chaos.load import Report

if TYPE_CHECKING:
    from pathlib import Path

    from tests.chaos.stage import Size
    from tests.postgres import Postgres

_STORE = "console/store/"
_SIMULATION = "tests/simulation/test_simulation.py::test_any_order"


@dataclass(frozen=True, slots=True)
class Guard:
    """``old`` in ``files`` becomes ``new``; then ``check`` has to fail. ``on``: which database."""

    name: str
    files: tuple[str, ...]
    old: str
    new: str
    check: str
    on: str = "sqlite"


GUARDS = (
    Guard(
        "fence: a step is written only onto the version it was computed from",
        (_STORE + "runs.py",),
        "AND version = %s",
        "AND version <> -1 - %s",
        _SIMULATION,
    ),
    Guard(
        "epoch: no step of a process from before a restore is written",
        (_STORE + "epoch.py",),
        "'0') = %s",
        "'0') IS NOT NULL AND %s IS NOT NULL",
        "tests/console/store/test_workers.py",
    ),
    Guard(
        "inbox: a message is gone with the step that took it",
        (_STORE + "runs.py",),
        "DELETE FROM console_inboxmessage WHERE id = %s",
        "DELETE FROM console_inboxmessage WHERE id = -%s",
        _SIMULATION,
    ),
    Guard(
        "outcome: the first one closes its task",
        (_STORE + "tasks.py",),
        "WHERE execution_id = %s AND task = %s AND status <> 'closed'",
        "WHERE execution_id = %s AND task = %s AND status <> ''",
        "tests/console/store/test_races.py",
        on="postgres",
    ),
    Guard(
        "claim: a task is handed out once",
        (_STORE + "claims.py",),
        "WHERE execution_id = %s AND task = %s AND status = 'scheduled'",
        "WHERE execution_id = %s AND task = %s AND status <> 'closed'",
        "tests/console/store",
    ),
    Guard(
        "lease: one that has ended cannot be renewed",
        (_STORE + "workers.py",),
        "Worker.objects.filter(name=name, lease_until_ms__gt=now_ms)",
        "Worker.objects.filter(name=name, lease_until_ms__gt=-now_ms)",
        "tests/console/store/test_workers.py",
    ),
    Guard(
        "lease: what the dead had in hand is offered again",
        (_STORE + "workers.py",),
        "gone = row.lease_until_ms <= now_ms or",
        "gone = row.lease_until_ms <= -now_ms or",
        "tests/console/store/test_workers.py",
    ),
    Guard(
        "unique name: two web processes make one execution of it",
        ("console/models/executions.py", "console/migrations/0001_initial.py"),
        "models.CharField(max_length=512, unique=True)",
        "models.CharField(max_length=512)",
        "tests/console/store/test_races.py",
        on="postgres",
    ),
)


def guards(folder: Path, server: Postgres | None, size: Size) -> Report:
    """Take out each guard; without ``server``, those that SQLite can show."""
    report = Report("guards", size.seed)
    for number, guard in enumerate(GUARDS):
        if guard.on == "postgres" and server is None:
            continue
        tree = _copy(folder / f"tree-{number}")
        for name in guard.files:
            path = tree / name
            text = path.read_text(encoding="utf-8")
            if guard.old not in text:
                report.violations.append(f"{guard.name}: is not in {name}")
            path.write_text(text.replace(guard.old, guard.new), encoding="utf-8")
        found = _check(tree, guard, server)
        report.n += 1
        report.facts[guard.name] = found or "nothing failed"
        if not found:
            report.violations.append(f"{guard.name}: nothing fails without it")
    return report


def _copy(place: Path) -> Path:
    """Write the tree as it is, without what git does not know."""
    names = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, check=True, capture_output=True)
    archive = subprocess.run(
        ["tar", "-c", "--null", "--files-from=-"],
        cwd=ROOT,
        input=names.stdout,
        check=True,
        capture_output=True,
    )
    place.mkdir()
    subprocess.run(["tar", "-x", "-C", str(place)], input=archive.stdout, check=True)
    return place


def _check(tree: Path, guard: Guard, server: Postgres | None) -> str:
    """Run the check and return its first failing test, "" if none fails."""
    env = {**os.environ, "PYTEST_ADDOPTS": "", "STEPYARD_DATABASE_URL": ""}
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-n", "0"]
    if guard.on == "postgres" and server is not None:
        env["STEPYARD_DATABASE_URL"] = server.url
        command.append("--db=postgres")
    done = subprocess.run(
        [*command, guard.check],
        cwd=tree,
        env=env,
        capture_output=True,
        text=True,
        check=False,
        timeout=900,
    )
    failed = [line for line in done.stdout.splitlines() if line.startswith("FAILED ")]
    return failed[0].removeprefix("FAILED ")[:160] if failed else ""
