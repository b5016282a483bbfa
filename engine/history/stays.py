"""Measure how much time the stays of visits cover, without going through a long history again."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import islice
from operator import gt, sub
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator


def covered_ms(begins: Iterable[int], ends: Iterable[int]) -> int:
    """Return how much time some stays cover: what they have in common counts once.

    ``begins`` and ``ends``: of the same stays, each in any order.
    """
    ordered = sorted(ends)
    if not ordered:
        return 0
    entered = sorted(begins)
    # Nothing is covered where as many stays have ended as have begun: between the end that comes
    # as number n and the beginning that comes as number n + 1.
    pauses: Iterable[int] = map(sub, islice(entered, 1, None), ordered)
    return ordered[-1] - entered[0] - sum([pause for pause in pauses if pause > 0])


def without_gap(
    stays: Iterable[tuple[int, int]], begin: int, end: int
) -> Iterator[tuple[int, int]]:
    """Yield stays without what lies between ``begin`` and ``end``."""
    for since, until in stays:
        if until <= begin or since >= end:
            yield since, until
            continue
        if since < begin:
            yield since, begin
        if until >= end:
            yield end, until


@dataclass(frozen=True, slots=True)
class EndedStays:
    """What is known of the first visits of a state, all of which have ended.

    ``revision``: of the ends of visits, see ``VisitTable.revision``; ``visits``: how many they are;
    ``begin``: of the earliest; ``latest``: when the latest began; ``end``: when all had ended;
    ``pauses``: for how long between that none lasted.

    The visits that follow can be added if they begin after all of these, as they do while times do
    not go back: no pause falls into them then. Times go back where somebody sets a clock back, and
    in imported histories. ``can_add`` finds that, and the sum is made anew from all visits.
    """

    revision: int = 0
    visits: int = 0
    begin: int = 0
    latest: int = 0
    end: int = 0
    pauses: int = 0

    def can_add(self, begins: list[int], ends: list[int]) -> bool:
        """Tell whether visits that follow begin after these, and none ends before it begins."""
        if not self.visits or not begins:
            return True
        return min(begins) >= self.latest and not any(map(gt, begins, ends))

    def with_more(self, begins: list[int], ends: list[int]) -> EndedStays:
        """Return it with visits that follow and can be added."""
        begin = self.begin if self.visits else min(begins)
        end = max(self.end, *ends) if self.visits else max(ends)
        pauses = end - begin - self.covered_ms(begins, ends)
        visits = self.visits + len(begins)
        return EndedStays(self.revision, visits, begin, max(begins), end, pauses)

    def covered_ms(self, begins: list[int], ends: list[int]) -> int:
        """Return how much time they cover together with visits that follow and can be added."""
        if not self.visits:
            return covered_ms(begins, ends)
        return covered_ms([self.begin, *begins], [self.end, *ends]) - self.pauses
