"""What the leading worker does for summaries."""

from __future__ import annotations

from console.feature import PeriodicJob
from console.features.summary import store

JOBS = (PeriodicJob("summaries", store.write_summaries, every_s=1.0),)
