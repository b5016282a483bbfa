"""Call registered functions as a task does, and read what became of it."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import engine
from console.integrations import function, targets
from console.integrations.outcome import Failed, Outcome, Succeeded, TaskAttempt

ARN = "arn:aws:lambda:us-east-1:123456789012:function:"


def call(entry: Any, event: Any = None, timeout_s: int | None = None, name: str = "f") -> Outcome:
    """Call a function as an entry of ``functions.json`` has it."""
    definition = targets.read_function(entry, "", {})
    task = TaskAttempt(
        kind="lambda",
        resource=ARN + name,
        service="",
        action="",
        input=engine.dumps(event),
        idempotency_key="k",
        execution_arn="",
        token="",
        timeout_s=timeout_s,
    )
    return function.call_target(definition.target, name, task, definition.options)


def result(outcome: Outcome) -> Any:
    """Return what a function returned."""
    assert isinstance(outcome, Succeeded), outcome
    return json.loads(outcome.output)


def report(outcome: Outcome, name: str) -> dict[str, Any]:
    """Return the report of a failure with this name."""
    assert isinstance(outcome, Failed), outcome
    assert outcome.error == name, outcome
    report: dict[str, Any] = json.loads(outcome.cause or "")
    assert report["errorType"] == name
    assert outcome.record is not None
    assert report["requestId"] == outcome.record.request
    return report


def write(folder: Path, name: str, source: str) -> None:
    """Write a module."""
    (folder / f"{name}.py").write_text(source, encoding="utf-8")


def find_pythons() -> list[str]:
    """Return the interpreters of this machine that functions may have."""
    names = [f"python3.{minor}" for minor in range(9, 16)]
    paths = {path for name in names if (path := shutil.which(name))}
    for version in (Path.home() / ".pyenv/versions").glob("3.*"):
        if version.name.split(".")[1] in ("9", "10", "11", "12", "13", "14"):
            paths.add(str(version / "bin/python"))
    works = [path for path in paths if not subprocess.run([path, "-c", ""], check=False).returncode]
    return sorted({sys.executable, *works})
