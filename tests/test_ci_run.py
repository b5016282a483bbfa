"""``.ci/run`` with commands that only succeed or fail: every part runs, and any failure counts."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parent.parent / ".ci/run"
STUBS = ("python", "ruff", "mypy", "typos", "djade")
README = "# Yard\n\n## Test\n\n```sh\n{}\n```\n"
ADDED = 11
"""The parts beside those of the README's line."""


def run(folder: Path, line: str, **stubs: str) -> subprocess.CompletedProcess[str]:
    """Run a copy of the script, with a README's test line and shell code for programs."""
    programs = folder / ".venv/bin"
    for place in (folder / ".ci", folder / "templates", programs):
        place.mkdir(parents=True)
    shutil.copy(SCRIPT, folder / ".ci/run")
    (folder / "README.md").write_text(README.format(line), encoding="utf-8")
    for name in (*STUBS, "chromium", "chromium-headless-shell", "pgbouncer"):
        (programs / name).write_text(f"#!/bin/sh\n{stubs.get(name, 'true')}\n", encoding="utf-8")
        (programs / name).chmod(0o755)
    environment = {**os.environ, "PATH": f"{programs}{os.pathsep}{os.environ['PATH']}"}
    return subprocess.run(
        ["bash", ".ci/run"],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )


def table(run: subprocess.CompletedProcess[str]) -> list[tuple[str, str]]:
    """Return part and result of the lines of the table."""
    rows = re.findall(r"^ *\d+ s  (.{70,}?)  +(\S.*)$", run.stdout, re.MULTILINE)
    return [(part.strip(), result) for part, result in rows]


def test_every_part_passes(tmp_path: Path) -> None:
    """The steps of the README's line are parts of their own."""
    ci = run(tmp_path, "true && echo quick")
    parts = table(ci)
    assert ci.returncode == 0, ci.stderr
    assert [part for part, _ in parts[:2]] == ["true", "echo quick"]
    assert {result for _, result in parts} == {"passed"}
    assert len(parts) == 2 + ADDED


def test_a_failure_hides_no_other_part(tmp_path: Path) -> None:
    """What comes after it runs all the same, and the exit code is 1."""
    ci = run(
        tmp_path, "false && echo quick", mypy="exit 2", python='[ "$*" != "-m pytest --tier full" ]'
    )
    parts = table(ci)
    failed = [part for part, result in parts if result == "FAILED"]
    assert ci.returncode == 1
    assert failed == [
        "false",
        ".venv/bin/python -m pytest --tier full",
        ".venv/bin/mypy engine console manage.py tests",
    ]
    assert len(parts) == 2 + ADDED


@pytest.mark.parametrize("line", ["echo 3 passed, 1 skipped", "echo 1 skipped >&2"])
def test_a_skip_is_a_failure(tmp_path: Path, line: str) -> None:
    """Nothing may be skipped, also where pytest itself succeeds."""
    ci = run(tmp_path, line)
    assert ci.returncode == 1
    assert table(ci)[0] == (line, "FAILED: a test was skipped")
