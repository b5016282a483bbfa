"""What the leading worker does for metrics."""

from __future__ import annotations

from console.feature import PeriodicJob
from console.features.metrics import rollups

JOBS = (PeriodicJob("metrics", rollups.sum_up),)
