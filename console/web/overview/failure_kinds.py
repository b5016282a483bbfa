"""Group the failures of the last day by kind, with their trend, for the overview."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

from console import clock
from console.models import Execution
from console.web.core.formatting import DAY
from console.web.search import failure_groups, failure_views, scan
from console.web.search.filters import ExecutionFilters

if TYPE_CHECKING:
    from console.web.core.scope import Scope
    from console.web.search.failure_groups import FailureGroup

MOST_GROUPED = 500
"""How many of the newest failures are grouped: the page asks for them again every few seconds."""
MOST_SHOWN = 6
BARS = 12
_BAR_MS = DAY // BARS


@dataclass(frozen=True, slots=True)
class TrendingFailure:
    """Failures of one kind. ``bars``: how many in each two hours of the last day, oldest first.

    ``address``: the query string of the list of them; ``newest``: the last one that failed.
    """

    group: FailureGroup
    address: str
    newest: Execution | None
    bars: tuple[int, ...]

    @property
    def count(self) -> int:
        """Return how many there are."""
        return len(self.group.failures)

    @property
    def rectangles(self) -> list[tuple[int, int, int]]:
        """Return x, y and height of each bar of a picture 60 wide and 20 high."""
        most = max(self.bars) or 1
        heights = [max(round(18 * bar / most), 2) if bar else 1 for bar in self.bars]
        return [(5 * place, 20 - height, height) for place, height in enumerate(heights)]

    @property
    def trend(self) -> str:
        """Say how the last six hours compare with the eighteen before them, a quarter of them."""
        late = sum(self.bars[-3:])
        before = sum(self.bars[:-3]) / 3
        if late == self.count:
            return "New in 6 h"
        if not late:
            return "None in 6 h"
        if late > 1.5 * before:
            return "Rising"
        return "Falling" if late < before / 1.5 else "Steady"


def failure_kinds(scope: Scope) -> tuple[list[TrendingFailure], int]:
    """Return the kinds of failures of executions that started in 24 hours, and how many there are.

    The most frequent kinds come first.
    """
    now = clock.now_ms()
    filters = ExecutionFilters(statuses=failure_groups.STATUSES, since=now - DAY)
    part = scan.find_keys(scope, None, filters, None, MOST_GROUPED)
    numbers = [number for _, number in part.keys]
    groups = failure_groups.group_failures(failure_groups.list_failures(scope.project, numbers))
    shown = groups[:MOST_SHOWN]
    rows = Execution.objects.filter(pk__in=[group.like.number for group in shown])
    newest = rows.defer(*scan.BARE).in_bulk()
    kinds = [
        TrendingFailure(
            group,
            failure_views.group_address(group),
            newest.get(group.like.number),
            _bars(group, now),
        )
        for group in shown
    ]
    return kinds, len(groups)


def _bars(group: FailureGroup, now: int) -> tuple[int, ...]:
    ages = [now - failure.start_ms for failure in group.failures]
    counts = Counter(min(max(age, 0) // _BAR_MS, BARS - 1) for age in ages)
    return tuple(counts[place] for place in reversed(range(BARS)))
