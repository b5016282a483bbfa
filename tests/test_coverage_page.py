"""The tables of coverage are those of the code."""

from __future__ import annotations

from pathlib import Path

import pytest

import engine
from tests import coverage_page

ENGINE = Path(__file__).parent.parent / "engine"


def test_the_page_is_current() -> None:
    """Whoever adds an action or a field writes the page anew."""
    page = coverage_page.PAGE.read_text(encoding="utf-8")
    assert page == coverage_page.render(), "run python -m tests.coverage_page"


@pytest.mark.parametrize("name", sorted(coverage_page.NEVER_WRITTEN))
def test_what_is_never_written_is_nowhere_written(name: str) -> None:
    """No module that makes events names the type."""
    assert name in engine.EVENT_TYPES
    makers = [*(ENGINE / "runtime").rglob("*.py")]
    assert makers
    assert [file for file in makers if name in file.read_text(encoding="utf-8")] == []
