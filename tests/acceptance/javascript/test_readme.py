"""The SDK for JavaScript, set up by the README's own lines, reaches everything."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from tests.acceptance.readme import EXPORT, FIRST_STEPS, typed

pytestmark = pytest.mark.acceptance


def test_javascript_calls_what_waits_for_an_answer(home: Path, tmp_path: Path) -> None:
    """The README's lines, then StartExecution, StartSyncExecution and TestState."""
    command = ["npm", "install", "--silent", "--no-audit", "--no-fund", "@aws-sdk/client-sfn@3"]
    subprocess.run(command, cwd=tmp_path, check=True, capture_output=True, timeout=300)
    rest = Path(__file__).with_name("sync.mjs").read_text(encoding="utf-8")
    (tmp_path / "script.mjs").write_text(f"{FIRST_STEPS['js']}\n{rest}", encoding="utf-8")
    printed = typed(home, f"{EXPORT}\nnode script.mjs", tmp_path)
    assert json.loads(printed) == {"started": True, "waited": "[4711]", "tried": "[4712]"}
