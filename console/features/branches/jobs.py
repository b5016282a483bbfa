"""Job of the leading worker: end expired branches and their access keys."""

from __future__ import annotations

from console.feature import PeriodicJob
from console.features.branches import store


def end_branches_and_keys() -> None:
    """End branches that have expired or lost their parent, and their keys."""
    store.end_branches()
    store.end_keys()


JOBS = (PeriodicJob("branches", end_branches_and_keys, every_s=15.0),)
