"""Job of the leading worker: evaluate and store summaries."""

from __future__ import annotations

from console.feature import PeriodicJob
from console.features.summary import store

JOBS = (
    PeriodicJob("summaries", store.write_summaries, every_s=1.0, pending=store.HAS_EXPRESSIONS),
)
