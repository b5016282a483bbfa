"""Sums, extremes and percentiles are right."""

from __future__ import annotations

import random

import pytest

from console.features.metrics import tally
from console.features.metrics.tally import Tally


def of(values: list[int]) -> Tally:
    """Return the tally of values."""
    tally = Tally()
    for value in values:
        tally.add(value)
    return tally


def test_statistics_of_known_values() -> None:
    """Sum, average, extremes and count are exact."""
    tally = of([5, 1, 3])
    expected = {"Sum": 9, "Average": 3, "Minimum": 1, "Maximum": 5, "SampleCount": 3, "p50": 3}
    assert {name: tally.statistic(name) for name in expected} == expected


@pytest.mark.parametrize("percent", [0, 1, 10, 50, 90, 99, 99.9, 100])
def test_percentiles_are_right_to_half_a_percent(percent: float) -> None:
    """Compared with the value at the rank, over five orders of magnitude."""
    values = sorted(int(10 ** random.Random(n).uniform(0, 5)) for n in range(2000))
    exact = values[max(-int(-len(values) * percent // 100), 1) - 1]
    got = of(values).statistic(f"p{percent}")
    assert abs(got - exact) <= max(exact * 0.005, 0.5)


def test_merging_is_like_taking_all_values() -> None:
    """Two minutes together are what one span of both would be."""
    first, second = of([1, 2000, 3]), of([40_000, 5])
    first.take(second)
    assert first == of([1, 2000, 3, 40_000, 5])


@pytest.mark.parametrize(
    ("name", "served"),
    [("Sum", True), ("p99.9", True), ("p100", True), ("p101", False), ("sum", False), ("p", False)],
)
def test_names_of_statistics(name: str, served: bool) -> None:
    """AWS's names and percentiles, nothing else."""
    assert tally.is_statistic(name) == served
