"""Group the failures of the last day by kind, with their trend, for the overview."""

from __future__ import annotations

from typing import TYPE_CHECKING

from console import clock
from console.web.core.formatting import DAY
from console.web.search import failure_groups, failure_trends, scan
from console.web.search.filters import ExecutionFilters

if TYPE_CHECKING:
    from console.web.core.scope import Scope
    from console.web.search.failure_trends import TrendingFailure

MOST_GROUPED = 500
"""How many of the newest failures are grouped: the page asks for them again every few seconds."""
MOST_SHOWN = 6


def failure_kinds(scope: Scope) -> tuple[list[TrendingFailure], int]:
    """Return the kinds of failures of executions that started in 24 hours, and how many there are.

    The most frequent kinds come first.
    """
    now = clock.now_ms()
    filters = ExecutionFilters(statuses=failure_groups.STATUSES, since=now - DAY)
    part = scan.find_keys(scope, None, filters, None, MOST_GROUPED)
    numbers = [number for _, number in part.keys]
    groups = failure_groups.group_failures(failure_groups.list_failures(scope.project, numbers))
    return failure_trends.trending_failures(groups[:MOST_SHOWN], DAY, now), len(groups)
