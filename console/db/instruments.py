"""Counters and histograms of this process, for its Prometheus metrics.

The numbers start at zero with the process; ``console.features.metrics`` reads them. An update takes
about a microsecond and no database. Label values come from the program: never from a request, a
project or an execution.
"""

from __future__ import annotations

import threading
from bisect import bisect_left
from dataclasses import dataclass

INSTRUMENTS: list[LabelledCounter | DurationHistogram] = []
"""All counters and histograms of the process."""
_BOUNDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)


@dataclass(frozen=True, slots=True)
class Spread:
    """A histogram of one set of labels: the count below each bound, the total, and the sum."""

    buckets: tuple[tuple[float, int], ...]
    count: int
    sum_s: float


class LabelledCounter:
    """A counter for each set of label values."""

    def __init__(self, name: str, meaning: str, labels: tuple[str, ...] = ()) -> None:
        """``name``: the name in Prometheus, without ``_total``."""
        self.name, self.meaning, self.labels = name, meaning, labels
        self._values: dict[tuple[str, ...], float] = {} if labels else {(): 0}
        self._lock = threading.Lock()
        INSTRUMENTS.append(self)

    def add(self, *values: str, amount: float = 1) -> None:
        """Add an amount to the counter of these label values."""
        with self._lock:
            self._values[values] = self._values.get(values, 0) + amount

    def read(self) -> dict[tuple[str, ...], float]:
        """Return label values -> count."""
        with self._lock:
            return dict(self._values)


class DurationHistogram:
    """A histogram of seconds for each set of label values."""

    def __init__(self, name: str, meaning: str, labels: tuple[str, ...] = ()) -> None:
        """``name``: the name in Prometheus, ending with ``_seconds``."""
        self.name, self.meaning, self.labels = name, meaning, labels
        self._spreads: dict[tuple[str, ...], list[float]] = {} if labels else {(): _empty()}
        self._lock = threading.Lock()
        INSTRUMENTS.append(self)

    def add(self, seconds: float, *values: str) -> None:
        """Add a duration to the histogram of these label values."""
        place = bisect_left(_BOUNDS, seconds)
        with self._lock:
            spread = self._spreads.get(values)
            if spread is None:
                spread = self._spreads[values] = _empty()
            spread[place] += 1
            spread[-1] += seconds

    def read(self) -> dict[tuple[str, ...], Spread]:
        """Return label values -> durations so far."""
        with self._lock:
            spreads = {values: list(spread) for values, spread in self._spreads.items()}
        return {values: _summed(spread) for values, spread in spreads.items()}


def _empty() -> list[float]:
    """Return zeros for the count of each bucket and for the sum."""
    return [0] * (len(_BOUNDS) + 1) + [0.0]


def _summed(spread: list[float]) -> Spread:
    buckets, count = [], 0
    for bound, number in zip(_BOUNDS, spread, strict=False):
        count += int(number)
        buckets.append((bound, count))
    return Spread(tuple(buckets), count + int(spread[-2]), spread[-1])


STEPS = DurationHistogram(
    "stateyard_step_seconds", "steps of executions, from their begin on a thread to their commit"
)
COMMITS = DurationHistogram(
    "stateyard_commit_seconds",
    "transactions that write: grouped, with the changes of many threads, or alone",
    ("way",),
)
REQUESTS = LabelledCounter(
    "stateyard_http_requests", "requests over HTTP by kind and status code", ("kind", "code")
)
ANSWERS = DurationHistogram(
    "stateyard_http_request_seconds", "requests over HTTP until the end of the answer", ("kind",)
)
OUTAGES = LabelledCounter(
    "stateyard_database_outages", "outages of the database that this process met"
)
OUTAGE_S = LabelledCounter(
    "stateyard_database_outage_seconds", "seconds of outages of the database that are over"
)
