"""The two tiers of the test suite.

The quick tier is what a newcomer runs: language, store, worker, API and pages in one process each,
and store and worker once more on PostgreSQL. The full tier has the rest: real processes, a real
browser, chaos, simulation, the matrices with thousands of cells, and the remaining tests on
PostgreSQL. CI runs both. A test is in the full tier by its folder, or by the mark ``slow``.
"""

from __future__ import annotations

import pytest

TIERS = ("quick", "full", "all")

_FULL = ("tests/acceptance/", "tests/chaos/", "tests/simulation/")
"""Folders of the full tier."""
_QUICK_ON_POSTGRES = ("tests/console/db/", "tests/console/store/", "tests/console/worker/")
"""All that the quick tier runs on PostgreSQL."""


def chosen(config: pytest.Config) -> str:
    """Return the tier of a run: by default ``quick``, or ``all`` if the command names tests."""
    option: str | None = config.getoption("--tier")
    if option is not None:
        return option
    are_named = config.args_source != pytest.Config.ArgsSource.TESTPATHS
    return "all" if are_named or config.option.keyword or config.option.markexpr else "quick"


def includes(tier: str, item: pytest.Item, *, on_postgres: bool) -> bool:
    """Whether a run of a tier has this test."""
    is_quick = (
        not item.nodeid.startswith(_FULL)
        and item.get_closest_marker("slow") is None
        and (not on_postgres or item.nodeid.startswith(_QUICK_ON_POSTGRES))
    )
    return tier == "all" or is_quick == (tier == "quick")
