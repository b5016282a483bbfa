"""Metrics jobs of the leading worker."""

from __future__ import annotations

from console.feature import PeriodicJob
from console.features.metrics import rollups

JOBS = (PeriodicJob("metrics", rollups.sum_up),)
