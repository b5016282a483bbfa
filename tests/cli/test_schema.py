"""``stateyard schema`` prints what an editor reads."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import engine
from console import command_line

if TYPE_CHECKING:
    import pytest


def test_the_schema_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    """As JSON, and nothing else."""
    try:
        command_line.main(["schema"])
    except SystemExit as end:
        assert not end.code  # noqa: PT017 - a code of 0 is success
    assert json.loads(capsys.readouterr().out) == engine.json_schema()
