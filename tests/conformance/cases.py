"""Load the recorded cases and list those that are known to differ, each with its reason."""

from __future__ import annotations

import importlib.util
import json
import os
import re
from functools import lru_cache
from pathlib import Path
from typing import Any

FOLDER = Path(os.environ.get("STATEYARD_SHARED", "")) / "conformance"
RUNNER = FOLDER / "run.py"
DEFINITIONS = FOLDER.parent / "definitions"
# What no server can answer, and why.
UNREACHABLE = {
    r"test_max_concurrency_path_negative": "recorded while it ran: one event of three",
}

# What the service answers and we do not yet. Each entry names the defect; a case that passes again
# fails the tests until its entry is gone.
DEFECTS: dict[str, str] = {}


@lru_cache(maxsize=1)
def runner() -> Any:
    """Return the runner's module, whose comparison is the one that counts."""
    return fresh_runner()


def fresh_runner() -> Any:
    """Return a copy of the runner's module of one's own."""
    spec = importlib.util.spec_from_file_location("conformance_runner", RUNNER)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def load() -> list[dict[str, Any]]:
    """Return every case."""
    files = [file for file in sorted(FOLDER.glob("*.json")) if file.name != "INDEX.json"]
    return [case for file in files for case in json.loads(file.read_text(encoding="utf-8"))]


def defect(case_id: str) -> str:
    """Return the defect that makes a case fail today, "" if it must pass."""
    return _reason(DEFECTS, case_id)


def unreachable(case_id: str) -> str:
    """Return why no server can pass a case, "" if one can."""
    return _reason(UNREACHABLE, case_id)


def _reason(reasons: dict[str, str], case_id: str) -> str:
    return next((why for pattern, why in reasons.items() if re.search(pattern, case_id)), "")
