"""Jobs of the leading worker: end expired branches, and their keys."""

from __future__ import annotations

from console.feature import PeriodicJob
from console.features.branches import store


def end_branches_and_keys() -> None:
    """End what has no parent or no time any more."""
    store.end_branches()
    store.end_keys()


JOBS = (PeriodicJob("branches", end_branches_and_keys, every_s=15.0),)
