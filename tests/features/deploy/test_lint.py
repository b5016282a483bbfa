"""The linter reports what statelint reports, with a linter's exit codes."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from django.core.management import call_command

if TYPE_CHECKING:
    from pathlib import Path

    import pytest

TYPO = {
    "StartAt": "Parallel",
    "States": {
        "parallel": {
            "Type": "Parallel",
            "End": True,
            "Branches": [{"StartAt": "W", "States": {"W": {"Type": "Succeed"}}}],
        }
    },
}


def lint(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str]:
    """Run the command; return its exit code and what it printed."""
    try:
        call_command("lint", *arguments)
    except SystemExit as end:
        return int(end.code or 0), capsys.readouterr().out
    return 0, capsys.readouterr().out


def test_the_deck_s_example(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The two messages of the example come out, and the exit code is 1."""
    file = tmp_path / "typo.json"
    file.write_text(json.dumps(TYPO), encoding="utf-8")
    code, told = lint(capsys, str(file))
    assert code == 1
    assert "2 errors:" in told
    assert "StartAt value Parallel not found in States field at State Machine" in told
    assert "No transition found to state State Machine.parallel" in told


def test_formats(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """JSON can be read by programs; GitHub's form names file, line and column."""
    file = tmp_path / "typo.json"
    file.write_text(json.dumps(TYPO, indent=1), encoding="utf-8")
    _, told = lint(capsys, str(file), "--format", "json")
    assert json.loads(told)["problems"][0]["code"] == "MISSING_TRANSITION_TARGET"
    _, told = lint(capsys, str(file), "--format", "github")
    assert told.startswith(f"::error file={file},line=2,col=13::")


def test_good_file_exits_with_0(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """No problem, no failure."""
    file = tmp_path / "good.json"
    file.write_text(
        json.dumps({"StartAt": "S", "States": {"S": {"Type": "Succeed"}}}), encoding="utf-8"
    )
    assert lint(capsys, str(file)) == (0, f"{file}: 0 errors\n")
