"""Measure how much time the stays of visits cover, without going through a long history again."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import islice
from operator import sub
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable


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


@dataclass(frozen=True, slots=True)
class EndedStays:
    """What is known of the first visits of a state, all of which have ended.

    ``revision``: of the ends of visits, see ``VisitTable.revision``; ``places``: how many visits
    they are; ``begin``: of the first one; ``end``: when all had ended; ``pauses``: for how long
    between that none lasted. Times of events never go back: what follows begins after all of them.
    """

    revision: int = 0
    places: int = 0
    begin: int = 0
    end: int = 0
    pauses: int = 0

    def with_more(self, begins: list[int], ends: list[int]) -> EndedStays:
        """Return it with the visits that follow."""
        begin = self.begin if self.places else begins[0]
        end = max((self.end, *ends))
        covered = self.covered_ms(begins, ends)
        places = self.places + len(begins)
        return EndedStays(self.revision, places, begin, end, end - begin - covered)

    def covered_ms(self, begins: list[int], ends: list[int]) -> int:
        """Return how much time they cover together with the visits that follow."""
        if not self.places:
            return covered_ms(begins, ends)
        return covered_ms([self.begin, *begins], [self.end, *ends]) - self.pauses
