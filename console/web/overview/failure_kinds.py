"""Group the failures of the last day by kind, with their trend, for the overview."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from console.db import clock
from console.web.core.formatting import DAY
from console.web.search import failure_groups, failure_trends, scan
from console.web.search.filters import ExecutionFilters

if TYPE_CHECKING:
    from console.web.core.scope import Scope
    from console.web.search.failure_trends import TrendingFailure

MOST_GROUPED = 500
"""How many of the newest failures are grouped: the page asks for them again every few seconds."""
MOST_SHOWN = 6


@dataclass(frozen=True, slots=True)
class FailureKinds:
    """The most frequent kinds of failures. ``count``: of kinds there are.

    ``cut``: among how many of the newest failures, where there are more; else 0.
    """

    rows: list[TrendingFailure]
    count: int
    cut: int


NO_FAILURES = FailureKinds([], 0, 0)


def failure_kinds(scope: Scope) -> FailureKinds:
    """Return the kinds of failures of executions that started in 24 hours."""
    now = clock.now_ms()
    filters = ExecutionFilters(statuses=failure_groups.STATUSES, since=now - DAY)
    part = scan.find_keys(scope, None, filters, None, MOST_GROUPED)
    numbers = [number for _, number in part.keys]
    groups = failure_groups.group_failures(failure_groups.list_failures(scope.project, numbers))
    rows = failure_trends.trending_failures(groups[:MOST_SHOWN], DAY, now)
    return FailureKinds(rows, len(groups), MOST_GROUPED if len(numbers) == MOST_GROUPED else 0)
