"""A running server answers what the service answered."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from tests.acceptance.server import Server
from tests.conformance import cases

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.acceptance


@pytest.mark.slow
def test_every_recorded_answer_that_can_be_met_is_met(tmp_path: Path) -> None:
    """Run the shared runner against ``up``: what fails is what ``cases`` names a defect for."""
    server = Server(tmp_path / "data")
    server.start()
    try:
        results = _replay(server, tmp_path / "results.json")
    finally:
        server.stop()
    assert len(results) > 300
    failed = {case: told for case, told in results.items() if told and not cases.defect(case)}
    assert failed == {}
    assert [case for case, told in results.items() if not told and cases.defect(case)] == []


def _replay(server: Server, results: Path) -> dict[str, str | None]:
    key, secret = server.keys()
    environment = os.environ | {"AWS_ACCESS_KEY_ID": key, "AWS_SECRET_ACCESS_KEY": secret}
    command = [sys.executable, str(cases.RUNNER), server.url, "--json", str(results)]
    subprocess.run(command, env=environment, check=False, stdout=subprocess.DEVNULL)
    verdicts: dict[str, str | None] = json.loads(results.read_text(encoding="utf-8"))
    return verdicts
