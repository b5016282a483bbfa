"""Summarize many values: count, sum, minimum, maximum and an approximate distribution."""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from console.features.metrics.models import Sums

_PERCENTILE = re.compile(r"p(\d{1,2}(?:\.\d{1,10})?|100)")
_DIGITS = 3
_ROUNDED = 10**_DIGITS  # smaller values have no more than _DIGITS digits
STATISTICS = ("Sum", "Average", "Minimum", "Maximum", "SampleCount")


@dataclass(slots=True)
class Tally:
    """Summary of one metric's values in one period.

    ``spread``: values of three digits -> how often, so a percentile is right to half a percent.
    """

    count: int = 0
    total: float = 0.0
    least: float = math.inf
    most: float = -math.inf
    spread: Counter[int] = field(default_factory=Counter)

    def add(self, value: float) -> None:
        """Add one value."""
        self.count += 1
        self.total += value
        self.least, self.most = min(self.least, value), max(self.most, value)
        self.spread[round_digits(value)] += 1

    def take(self, other: Tally) -> None:
        """Add the values of another tally."""
        self.count += other.count
        self.total += other.total
        self.least, self.most = min(self.least, other.least), max(self.most, other.most)
        self.spread.update(other.spread)

    def statistic(self, name: str) -> float:
        """Return a statistic by AWS's name: of ``STATISTICS``, or p0 to p100."""
        match name:
            case "Sum":
                return self.total
            case "Average":
                return self.total / self.count
            case "Minimum":
                return self.least
            case "Maximum":
                return self.most
            case "SampleCount":
                return float(self.count)
        return self._percentile(float(name.removeprefix("p")))

    def _percentile(self, percent: float) -> float:
        """Return a percentile by nearest rank."""
        rank = max(math.ceil(self.count * percent / 100), 1)
        for value in sorted(self.spread):
            rank -= self.spread[value]
            if rank <= 0:
                return min(max(float(value), self.least), self.most)
        return self.most

    def dumps(self) -> str:
        """Return the distribution as text."""
        return json.dumps(self.spread, separators=(",", ":"))


def is_statistic(name: str) -> bool:
    """Whether an AWS statistic is supported."""
    return name in STATISTICS or is_percentile(name)


def is_percentile(name: str) -> bool:
    """Whether a statistic is a percentile."""
    return _PERCENTILE.fullmatch(name) is not None


def round_digits(value: float) -> int:
    """Round to three digits."""
    rounded = round(value)
    if -_ROUNDED < rounded < _ROUNDED:
        return rounded
    step = int("1" + "0" * max(len(str(abs(rounded))) - _DIGITS, 0))
    return round(rounded / step) * step


def tally_of_row(row: Sums) -> Tally:
    """Return the tally stored in a row."""
    spread = {int(value): times for value, times in json.loads(row.spread or "{}").items()}
    return Tally(row.count, row.total, row.least, row.most, Counter(spread))
