"""Each guard of the store is needed: a copy of the tree without it fails a check."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pytest

from tests.acceptance.server import ROOT
from tests.chaos.load import Report

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from tests.chaos.stage import Size
    from tests.postgres import Postgres

_CHECK_S = 900
_BOTH = ("sqlite", "postgres")
_TABLES = "console/migrations/0001_squashed_0057_event_senders.py"
_TASKS = "console/store/tasks/"
_STEP = "console/store/executions/step.py"
_MERGED = "console/db/merged.py"
_RECORDING = "console/db/rows.py"
_SIMULATION = "tests/simulation/test_simulation.py::test_any_order"
_TEST_MERGED = "tests/console/db/test_merged.py"
_TEST_STEP = "tests/console/store/executions/test_step.py"
_TEST_RACES = "tests/console/store/executions/test_races.py"
_TEST_TASKS = "tests/console/store/tasks/test_tasks.py"
_TEST_WORKERS = "tests/console/store/tasks/test_workers.py"
_TEST_JOINT = "tests/console/store/executions/test_begin_outcomes.py"


@dataclass(frozen=True, slots=True)
class Guard:
    """``old`` in ``files`` becomes ``new``; then each of ``checks`` (database -> tests) fails."""

    name: str
    files: tuple[str, ...]
    old: str
    new: str
    checks: Mapping[str, str]

    def without(self, text: str) -> str:
        """Return the text of one of the files without the guard, which stands in it once."""
        count = text.count(self.old)
        if count != 1:
            raise ValueError(f"{self.name}: got {count} times {self.old!r} in a file, wanted 1")
        return text.replace(self.old, self.new)


GUARDS = (
    Guard(
        "fence: a step is written only onto the version it was computed from",
        (_STEP,),
        "AND version = %s",
        "AND version <> -1 - %s",
        {
            "sqlite": _SIMULATION,
            "postgres": f"{_TEST_MERGED}::test_a_late_step_without_events_takes_nothing_back",
        },
    ),
    Guard(
        "epoch: no step of a process from before a restore is written",
        ("console/db/epoch.py",),
        "'0') = %s",
        "'0') IS NOT NULL AND %s IS NOT NULL",
        dict.fromkeys(_BOTH, f"{_TEST_WORKERS}::test_a_step_of_an_older_epoch_writes_nothing"),
    ),
    Guard(
        "inbox: a message is gone with the step that took it",
        (_STEP,),
        "DELETE FROM console_inboxmessage WHERE id = %s",
        "DELETE FROM console_inboxmessage WHERE id = -%s",
        dict.fromkeys(
            _BOTH, f"{_TEST_STEP}::test_more_messages_than_a_step_takes_ask_for_another_step"
        ),
    ),
    Guard(
        "outcome: the first one closes its task",
        (_TASKS + "schedule.py",),
        "WHERE execution_id = %s AND task = %s AND status <> '{TaskStatus.CLOSED}'",
        "WHERE execution_id = %s AND task = %s AND status <> ''",
        {"sqlite": _TEST_JOINT, "postgres": _TEST_RACES},
    ),
    Guard(
        "joint commit: an outcome counts only if its task is still open",
        (_STEP,),
        "if not all(schedule.close_task(number, task, now_ms) for task in loaded.closes):",
        "if not [schedule.close_task(number, task, now_ms) for task in loaded.closes] and False:",
        {"sqlite": _TEST_JOINT},
    ),
    Guard(
        "joint commit: a run that was parked meanwhile stays as it is",
        (_STEP,),
        "AND parked = ''",
        "AND parked IS NOT NULL",
        dict.fromkeys(_BOTH, _TEST_JOINT),
    ),
    Guard(
        "joint commit: a run whose machine is being deleted stays as it is",
        (_STEP,),
        "AND m.status = '{MachineStatus.DELETING}')",
        "AND m.status = '')",
        dict.fromkeys(_BOTH, _TEST_JOINT),
    ),
    Guard(
        "claim: a task is handed out once",
        (_TASKS + "claim.py",),
        "WHERE execution_id = %s AND task = %s AND status = '{TaskStatus.SCHEDULED}'",
        "WHERE execution_id = %s AND task = %s AND status <> '{TaskStatus.CLOSED}'",
        dict.fromkeys(_BOTH, f"{_TEST_TASKS}::test_a_task_that_a_worker_has_is_not_taken_by_hand"),
    ),
    Guard(
        "merged claim: a task is handed out once",
        (_TASKS + "claim.py",),
        "AND t.status = '{TaskStatus.SCHEDULED}' AND t.kind",
        "AND t.status <> '{TaskStatus.CLOSED}' AND t.kind",
        {"postgres": _TEST_TASKS},
    ),
    Guard(
        "lease: one that has ended cannot be renewed",
        (_TASKS + "workers.py",),
        "Worker.objects.filter(name=name, lease_until_ms__gt=now_ms)",
        "Worker.objects.filter(name=name, lease_until_ms__gt=-now_ms)",
        {"sqlite": _TEST_WORKERS},
    ),
    Guard(
        "lease: what the dead had in hand is offered again",
        (_TASKS + "workers.py",),
        "if lease_until_ms <= now_ms or (",
        "if lease_until_ms <= -now_ms or (",
        {"sqlite": _TEST_WORKERS},
    ),
    Guard(
        "unique name: two web processes make one execution of it",
        ("console/models/executions.py", _TABLES),
        "models.CharField(max_length=512, unique=True)",
        "models.CharField(max_length=512)",
        {"postgres": f"{_TEST_MERGED}::test_one_name_starts_once"},
    ),
    Guard(
        "unique name: two starts that are not merged make one execution of it",
        ("console/models/executions.py", _TABLES),
        "models.CharField(max_length=512, unique=True)",
        "models.CharField(max_length=512)",
        {"postgres": _TEST_RACES},
    ),
    Guard(
        "start: nothing starts while its machine is deleted",
        ("console/store/machines/machines.py",),
        "return row is not None and row[0] == MachineStatus.ACTIVE",
        "return row is not None",
        {"sqlite": "tests/console/store/executions/test_executions.py"},
    ),
    Guard(
        "merged start: nothing starts while its machine is deleted",
        ("console/store/machines/machines.py",),
        "WHERE m.status = '{MachineStatus.ACTIVE}'",
        "WHERE m.status <> ''",
        {"postgres": _TEST_MERGED},
    ),
    Guard(
        "merged: a change whose row is not there is not written",
        (_RECORDING,),
        "            if statement.key\n",
        "            if not statement\n",
        {"postgres": f"{_TEST_MERGED}::test_a_late_step_without_events_takes_nothing_back"},
    ),
    Guard(
        "merged: where one change fails, nothing of the others stays behind",
        (_MERGED,),
        "run_together(connection.connection, _ROLLBACK)\n        return missing",
        'run_together(connection.connection, (("COMMIT", ()),))\n        return missing',
        {"postgres": _TEST_MERGED},
    ),
    Guard(
        "merged: two changes of one execution are not in one transaction",
        (_MERGED,),
        "(later if clash else group).append(change)",
        "group.append(change)",
        {"postgres": _TEST_MERGED},
    ),
    Guard(
        "merged: what a broken connection may have committed is not written again",
        (_MERGED,),
        "            if _is_broken():\n                raise\n",
        "",
        {"postgres": _TEST_MERGED},
    ),
    Guard(
        "recording: a change that asks the database is not recorded",
        (_RECORDING,),
        "with connection.execute_wrapper(_refuse_query):",
        "if noted is not None:",
        {"postgres": _TEST_MERGED},
    ),
)


def guards(folder: Path, server: Postgres | None, size: Size) -> Report:
    """Take out each guard; without ``server``, run the checks that SQLite has."""
    report = Report("guards", size.seed)
    databases = ("sqlite",) if server is None else _BOTH
    for number, guard in enumerate(GUARDS):
        applicable = [database for database in databases if database in guard.checks]
        if not applicable:
            continue
        tree = _copy(folder / f"tree-{number}")
        for name in guard.files:
            path = tree / name
            path.write_text(guard.without(path.read_text(encoding="utf-8")), encoding="utf-8")
        for database in applicable:
            name = f"{guard.name} ({database})"
            evidence, problem = _check(tree, guard.checks[database], server, database)
            report.n += 1
            report.facts[name] = evidence or problem
            if not evidence:
                report.violations.append(f"{name}: {problem}")
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


def _check(tree: Path, check: str, server: Postgres | None, database: str) -> tuple[str, str]:
    """Run a check; return its first failing test, and "" or why it shows nothing.

    A check whose tests cannot be collected, or do not end, shows nothing.
    """
    env = {**os.environ, "PYTEST_ADDOPTS": "", "STATEYARD_DATABASE_URL": ""}
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-n", "0"]
    if database == "postgres" and server is not None:
        env["STATEYARD_DATABASE_URL"] = server.url
        command.append("--db=postgres")
    try:
        done = subprocess.run(
            [*command, check],
            cwd=tree,
            env=env,
            capture_output=True,
            text=True,
            check=False,
            timeout=_CHECK_S,
        )
    except subprocess.TimeoutExpired:
        return "", f"its check did not end in {_CHECK_S} seconds"
    failed = [line for line in done.stdout.splitlines() if line.startswith("FAILED ")]
    if failed:
        return failed[0].removeprefix("FAILED ")[:160], ""
    if done.returncode == pytest.ExitCode.OK:
        return "", "nothing fails without it"
    return "", f"its check cannot be run: {(done.stdout + done.stderr)[-300:]}"
