"""Projects job of the leading worker: continue deletions."""

from __future__ import annotations

from console.feature import PeriodicJob
from console.features.projects import deletion

JOBS = (
    PeriodicJob(
        "project deletions",
        deletion.continue_deletions,
        every_s=5.0,
        pending="EXISTS (SELECT 1 FROM console_projectdeletion)",
    ),
)
