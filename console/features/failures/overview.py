"""The kinds of the day's failures, for the overview."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from console.db import clock
from console.features.failures.kinds import group_failures, trending_failures
from console.web.core.formatting import DAY
from console.web.search import failures, scan
from console.web.search.filters import ExecutionFilters

if TYPE_CHECKING:
    from collections.abc import Mapping

    from console.web.core.scope import Scope

MOST_GROUPED = 500
"""The number of latest failures that are grouped: the page asks for them every few seconds."""
MOST_SHOWN = 6


def failure_context(scope: Scope, context: Mapping[str, Any]) -> dict[str, Any]:
    """Return the most frequent kinds of failures of executions started in the last 24 hours.

    ``kind_count``: the number of all kinds; ``kinds_cut``: the number of newest failures examined
    if there are more, else 0. No query without failures.
    """
    if not context["tally"]["failed"]:
        return {"kinds": [], "kind_count": 0, "kinds_cut": 0}
    now = clock.now_ms()
    filters = ExecutionFilters(statuses=failures.STATUSES, since=now - DAY)
    part = scan.find_keys(scope, None, filters, None, MOST_GROUPED)
    numbers = [number for _, number in part.keys]
    groups = group_failures(failures.list_failures(scope.project, numbers))
    return {
        "kinds": trending_failures(groups[:MOST_SHOWN], DAY, now),
        "kind_count": len(groups),
        "kinds_cut": MOST_GROUPED if len(numbers) == MOST_GROUPED else 0,
    }
