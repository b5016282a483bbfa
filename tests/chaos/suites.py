"""Tests that are chaos checks themselves: every crash point, and a checker that can fail."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from typing import TYPE_CHECKING

from tests.acceptance.server import ROOT
from tests.chaos.load import Report

if TYPE_CHECKING:
    from pathlib import Path

    from tests.chaos.stage import Size
    from tests.postgres import Postgres


def crash_points(folder: Path, server: Postgres | None, size: Size) -> Report:
    """Die before and after every commit and every call, in every shape; live on from the rows."""
    del folder
    files = ("test_crash_points.py", "test_relay_deaths.py", "test_outages.py")
    return _run("crash-points", server, size, *(f"tests/console/worker/{name}" for name in files))


def mutate_checker(folder: Path, server: Postgres | None, size: Size) -> Report:
    """Do each kind of harm to sound rows; the checker must name it."""
    del folder
    return _run("mutate-checker", server, size, "tests/features/doctor/test_invariants.py")


def _run(check: str, server: Postgres | None, size: Size, *places: str) -> Report:
    env = {**os.environ, "PYTEST_ADDOPTS": "", "STATEYARD_DATABASE_URL": ""}
    command = [sys.executable, "-m", "pytest", "-q", *places]
    if server is not None:
        env["STATEYARD_DATABASE_URL"] = server.url
        command.append("--db=postgres")
    done = subprocess.run(
        command, cwd=ROOT, env=env, capture_output=True, text=True, check=False, timeout=1200
    )
    report = Report(check, size.seed)
    counted = {word: int(n) for n, word in re.findall(r"(\d+) (passed|failed|error)", done.stdout)}
    report.n = sum(counted.values())
    report.violations += re.findall(r"^FAILED .*", done.stdout, re.MULTILINE)
    if done.returncode and not report.violations:
        report.violations.append(done.stdout[-500:])
    return report
