"""The two tiers of the test suite.

The quick tier is what a newcomer runs: language, store, worker, API and pages in one process each,
and store and worker once more on PostgreSQL. The full tier has the rest: real processes, a real
browser, chaos, simulation, the matrices with thousands of cells, and more tests on PostgreSQL.
CI runs both. A test is in the full tier by its folder, or by the mark ``slow``.

Pages, API and features ask the store for rows, and most of their tests repeat statements of
others. On PostgreSQL the full tier runs those with the mark ``postgres_too``: they were chosen by
recording, so that together they execute the statements of all. ``--tier all`` runs the others, too.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pathlib import Path

TIERS = ("quick", "full", "all")

_FULL = ("tests/acceptance/", "tests/chaos/", "tests/simulation/")
"""Folders of the full tier."""
_QUICK_ON_POSTGRES = ("tests/console/db/", "tests/console/store/", "tests/console/worker/")
"""All that the quick tier runs on PostgreSQL."""
_ABOVE_THE_STORE = (
    "tests/console/awsapi/",
    "tests/console/web/",
    "tests/features/",
    "tests/security/",
)
"""Folders whose tests run on PostgreSQL, in the full tier, only if they are marked so."""
_ALL_SLOW = re.compile(r"^pytestmark = .*\bmark\.slow\b", re.MULTILINE)
"""A line of files whose tests are all in the full tier: they may import what quick ones lack."""


def chosen(config: pytest.Config) -> str:
    """Return the tier of a run: by default ``quick``, or ``all`` if the command names tests."""
    option: str | None = config.getoption("--tier")
    if option is not None:
        return option
    is_part = not are_all_files(config) or config.option.keyword or config.option.markexpr
    return "all" if is_part else "quick"


def are_all_files(config: pytest.Config) -> bool:
    """Whether the command names no files or folders."""
    return config.args_source == pytest.Config.ArgsSource.TESTPATHS


def includes(tier: str, item: pytest.Item, *, on_postgres: bool) -> bool:
    """Whether a run of a tier has this test."""
    is_quick = (
        not item.nodeid.startswith(_FULL)
        and item.get_closest_marker("slow") is None
        and (not on_postgres or item.nodeid.startswith(_QUICK_ON_POSTGRES))
    )
    if tier == "full" and on_postgres and item.nodeid.startswith(_ABOVE_THE_STORE):
        marks = {mark.name for mark in item.iter_markers()}
        return bool(marks & {"postgres_only", "postgres_too"})
    return tier == "all" or is_quick == (tier == "quick")


def may_include(tier: str, path: Path, place: str, *, on_postgres: bool) -> bool:
    """Whether a folder or file of tests can have a test of the tier: else it is not imported.

    ``place`` is the path from the root, a folder's with a slash at its end. Only the file of a test
    marks it ``slow``.
    """
    if tier == "all":
        return True
    if tier == "quick":
        if place.startswith(_FULL) or (path.is_file() and _ALL_SLOW.search(_text(path))):
            return False
        return not on_postgres or any(
            place.startswith(folder) or folder.startswith(place) for folder in _QUICK_ON_POSTGRES
        )
    if place.startswith(_FULL) or path.is_dir():
        return True
    if on_postgres and place.startswith(_ABOVE_THE_STORE):
        return "mark.postgres_" in _text(path)
    if on_postgres and not place.startswith(_QUICK_ON_POSTGRES):
        return True
    return "mark.slow" in _text(path)


def _text(path: Path) -> str:
    return path.read_text(encoding="utf-8")
