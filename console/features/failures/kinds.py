"""Group failures by kind, and their trends."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING
from urllib.parse import urlencode

from console.web.core.formatting import iso_text, rough_duration
from console.web.search.failures import STATUSES

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from console.web.search.failures import Failure


@dataclass(frozen=True, slots=True)
class FailureGroup:
    """Failures of the same kind, newest first."""

    failures: tuple[Failure, ...]

    @property
    def like(self) -> Failure:
        """Return the latest failure, as the example of the group."""
        return self.failures[0]

    @property
    def first_ms(self) -> int:
        """Return the end of the earliest failure."""
        return min(failure.stop_ms or failure.start_ms for failure in self.failures)

    @property
    def last_ms(self) -> int:
        """Return the end of the latest failure."""
        return max(failure.stop_ms or failure.start_ms for failure in self.failures)

    @property
    def started(self) -> tuple[int, int]:
        """Return the starts of the first and the last execution."""
        return self.failures[-1].start_ms, self.failures[0].start_ms


def group_failures(failures: Iterable[Failure]) -> list[FailureGroup]:
    """Group equal failures, the most frequent first."""
    kinds: dict[str, list[Failure]] = {}
    for failure in failures:
        kinds.setdefault(failure.key, []).append(failure)
    return sorted(
        (FailureGroup(tuple(every)) for every in kinds.values()),
        key=lambda group: (-len(group.failures), -group.last_ms),
    )


BARS = 12
_LATE = 3


@dataclass(frozen=True, slots=True)
class TrendingFailure:
    """Failures of one kind. ``bars``: count in each twelfth of the period, oldest first.

    ``span``: that time in milliseconds; ``address``: the query string of the list of them.
    """

    group: FailureGroup
    address: str
    bars: tuple[int, ...]
    span: int

    @property
    def count(self) -> int:
        """Return the number of failures."""
        return len(self.group.failures)

    @property
    def rectangles(self) -> list[tuple[int, int, int]]:
        """Return x, y and height of each bar in a picture of 60 by 20."""
        most = max(self.bars) or 1
        heights = [max(round(18 * bar / most), 2) if bar else 1 for bar in self.bars]
        return [(5 * place, 20 - height, height) for place, height in enumerate(heights)]

    @property
    def trend(self) -> str:
        """Return the trend in words: the last quarter compared with an earlier one."""
        late = sum(self.bars[-_LATE:])
        before = sum(self.bars[:-_LATE]) * _LATE / (BARS - _LATE)
        quarter = rough_duration(self.span * _LATE // BARS)
        if late == self.count:
            return f"New in the last {quarter}"
        if not late:
            return f"None in the last {quarter}"
        if late > 1.5 * before:
            return "Rising"
        return "Falling" if late < before / 1.5 else "Steady"


def trending_failures(
    groups: Sequence[FailureGroup], span: int, now_ms: int
) -> list[TrendingFailure]:
    """Return the kinds of failures with their trends in a period that ends now."""
    return [
        TrendingFailure(
            group,
            group_address(group),
            _bars(group, span, now_ms),
            span,
        )
        for group in groups
    ]


def _bars(group: FailureGroup, span: int, now_ms: int) -> tuple[int, ...]:
    ages = [now_ms - failure.start_ms for failure in group.failures]
    counts = Counter(min(max(age, 0) * BARS // span, BARS - 1) for age in ages)
    return tuple(counts[place] for place in reversed(range(BARS)))


def group_address(group: FailureGroup) -> str:
    """Return the query string for the executions of a group."""
    first, last = group.started
    pairs = [("status", status) for status in STATUSES]
    if group.like.machine is not None:  # its index makes the list faster
        pairs.append(("machine", group.like.owner_arn.rpartition(":")[2]))
    if group.like.is_child:
        pairs.append(("children", "only"))
    times = [("from", iso_text(first)), ("to", iso_text(last))]
    return urlencode([*pairs, ("failure", group.like.key), *times])
