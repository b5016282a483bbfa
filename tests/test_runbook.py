"""The runbook has an entry for each reason of ``/readyz``, each exit code and each alert."""

from __future__ import annotations

import ast
import inspect
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

from django.db import OperationalError

from console import command_line
from console.db import postgres, writer
from console.features.doctor.management.commands import doctor
from console.features.operations import readiness, readiness_probe
from console.management.commands import prune
from console.server import watchdog
from console.store.state import health

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pytest

ROOT = Path(__file__).parent.parent
PAGE = (ROOT / "docs/how-to/runbook.md").read_text(encoding="utf-8")
ENTRIES = re.findall(r"^\| `([^`]+)` \|", PAGE, re.MULTILINE)
CODES = {int(code) for code in re.findall(r"^\| (\d+) \|", PAGE, re.MULTILINE)}
EXITS = {"sys.exit", "os._exit", "_exit"}
BAD: dict[str, Any] = {
    "workers": 0,
    "oldest_runnable_ms": 10 * health.LATE_MS,
    "schedule_delay_ms": 45_000,
    "disk_free_bytes": 5,
    "clock_offset_ms": -600_000,
}
"""Facts of a server with every fault that a look at its rows can meet."""


def has_entry(reason: str) -> bool:
    """Whether a row of the page is of a reason: N stands for a number, ERROR for a message."""
    patterns = [
        re.escape(entry).replace("N", r"-?\d+").replace("ERROR", ".+")
        if entry.endswith("ERROR") or re.search(r"\bN\b", entry)
        else re.escape(entry)
        for entry in ENTRIES
    ]
    return any(re.fullmatch(pattern, reason) for pattern in patterns)


def reasons_of_rows(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return the reasons that a look at the database may give."""
    monkeypatch.setattr(writer, "refusal", lambda: "disk full")
    # one process that does all has a disk, a team has workers
    return sorted({*health._reasons(BAD), *health._reasons({**BAD, "workers": None})})


def reasons_of_outages(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """Yield the reasons that a database gives which cannot be asked."""
    yield health._why_out(OperationalError("gone"))
    refused = OperationalError("FATAL: sorry, too many clients already")
    assert postgres.lacks_connections(refused)
    yield health._why_out(refused)
    read_only = OperationalError("x")
    read_only.__cause__ = postgres.TakesNoWrites()
    yield health._why_out(read_only)
    monkeypatch.setattr(writer, "is_embedded", lambda: False)
    monkeypatch.setattr(health._LOOKS, "take_part", lambda _: None)
    monkeypatch.setattr(postgres, "is_read_only", lambda: False)
    yield from health.check_health().reasons


def test_every_reason_has_an_entry(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of the rows, of a database out of reach, and of the worker that measures."""
    of_rows = reasons_of_rows(monkeypatch)
    source = inspect.getsource(health._reasons)
    assert len(of_rows) == source.count("reasons.append(") == 6
    reasons = [*of_rows, *reasons_of_outages(monkeypatch)]
    assert len(reasons) == 10
    assert [reason for reason in reasons if not has_entry(reason)] == []


def test_every_reason_of_the_measurement_has_an_entry() -> None:
    """A worker that measures asks a web process as well."""
    assert has_entry(readiness.NOBODY_LOOKED)
    source = inspect.getsource(readiness_probe._web_problem)
    texts = [
        "".join(part.value if isinstance(part, ast.Constant) else "503" for part in node.values)
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.JoinedStr)
    ]
    assert len(texts) == 2
    assert [text for text in texts if not has_entry(text)] == []


def test_a_reason_without_an_entry_would_be_seen() -> None:
    """The comparison above can fail."""
    assert has_entry("work has been waiting for 31000 ms")
    assert not has_entry("work has been waiting")
    assert not has_entry("the moon is full")


def numbers_in_exits() -> Iterator[int]:
    """Yield the numbers that the code exits with."""
    files = [
        *(ROOT / "console").rglob("management/**/*.py"),
        *(ROOT / "console/server").rglob("*.py"),
        *(ROOT / "console/cli/commands").rglob("*.py"),
        ROOT / "console/command_line.py",
    ]
    for file in files:
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and ast.unparse(node.func) in EXITS:
                for argument in node.args:
                    if isinstance(argument, ast.Constant) and isinstance(argument.value, int):
                        yield argument.value


def test_every_exit_code_has_an_entry() -> None:
    """Those of all commands, of a process that ended itself, and of one that was killed."""
    named = {command_line._WRONG_USE, watchdog.EXIT_CODE, prune._INTERRUPTED}
    named |= {*doctor.EXIT_CODES.values(), *numbers_in_exits()}
    assert {0, 1, 2, 3, 4, 70, 130} <= named
    assert named <= CODES
    assert {137, 143} <= CODES, "128 and the number of the signal"
