"""How much time visits cover is kept, and the same as if it were added up anew."""

from __future__ import annotations

import random
from itertools import pairwise

import pytest

from engine import Visits, covered_ms
from engine.history.visits import VisitTable


def test_stays_that_overlap_count_once() -> None:
    """In whatever order they stand, and what none of them covers does not count."""
    assert covered_ms([], []) == 0
    assert covered_ms([0, 5, 30], [10, 20, 31]) == 21
    assert covered_ms([30, 0, 5], [31, 10, 20]) == 21
    assert covered_ms([0, 2], [10, 4]) == 10
    assert covered_ms([7], [7]) == 0


def in_moments(table: VisitTable, visits: Visits, now: int) -> int:
    """Return how many of the moments from 0 to ``now`` some visit covers, one by one."""
    stays = [(table.times[each], table.end_times.get(each, now)) for each in visits.numbers]
    edges = sorted({0, now, *(edge for stay in stays for edge in stay)})
    return sum(
        until - since
        for since, until in pairwise(edges)
        if any(entered <= since and until <= exited for entered, exited in stays)
    )


@pytest.mark.parametrize("seed", range(20))
def test_what_is_kept_is_what_a_new_sum_says(seed: int) -> None:
    """Visits begin, end, open again and end later after all, and are looked at in between."""
    chance, table = random.Random(seed), VisitTable()
    visits, at = Visits(table, "n1"), 0
    for _ in range(60):
        at += chance.choice((0, 1, 10))
        still = [each for each in visits.numbers if each not in table.end_times]
        if not still or chance.random() < 0.5:
            table.times.append(at)
            visits.numbers.append(len(table.times) - 1)
        else:
            table.end_times[chance.choice(still)] = at
        if table.end_times and chance.random() < 0.1:
            again = chance.choice(list(table.end_times))
            del table.end_times[again]
            if chance.random() < 0.5:
                table.end_times[again] = at
            table.revision += 1
        now = at + chance.choice((0, 5))
        assert visits.covered_ms(now) == in_moments(table, visits, now)
        ends = [table.end_times.get(each, now) for each in visits.numbers]
        assert visits.span(now) == (table.times[visits.numbers[0]], max(ends))


@pytest.mark.parametrize("seed", range(20))
def test_what_is_kept_is_a_new_sum_where_times_go_back(seed: int) -> None:
    """As where somebody set the clock back, and in imported histories; visits may end too early."""
    chance, table = random.Random(seed), VisitTable()
    visits, at = Visits(table, "n1"), 1_000
    for _ in range(60):
        at += chance.choice((0, 1, 10, -30 if chance.random() < 0.2 else 10))
        still = [each for each in visits.numbers if each not in table.end_times]
        if not still or chance.random() < 0.5:
            table.times.append(at)
            visits.numbers.append(len(table.times) - 1)
        else:
            table.end_times[chance.choice(still)] = at
        for now in (at, at - 20):
            assert visits.covered_ms(now) == covered_ms(visits.begins(), visits.ends(now))


def test_a_visit_before_a_pause_fills_it() -> None:
    """Two visits have ended with 20 ms between them; the third is of an earlier time."""
    table = VisitTable()
    visits = Visits(table, "n1")
    for number, (entered, exited) in enumerate([(100, 110), (130, 140), (105, 135)], 1):
        table.times.append(entered)
        visits.numbers.append(number)
        table.end_times[number] = exited
        assert visits.covered_ms(0) == (10, 20, 40)[number - 1]


def test_visits_that_have_ended_are_added_up_once() -> None:
    """A look at a long loop goes on where the look before it ended."""
    table = VisitTable()
    visits = Visits(table, "n1")
    for number in range(1, 1_001):
        table.times.append(number * 10)
        visits.numbers.append(number)
        table.end_times[number] = number * 10 + 4
    assert visits.covered_ms(0) == 4_000
    table.times.append(20_000)
    visits.numbers.append(1_001)
    for number in range(1, 1_001):
        del table.end_times[number]  # nobody looks at them again
    table.end_times[1_001] = 20_003
    assert visits.covered_ms(0) == 4_003
    assert visits.span(0) == (10, 20_003)
