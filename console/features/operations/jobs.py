"""The leader measures the availability of the server."""

from __future__ import annotations

from console.feature import PeriodicJob
from console.features.operations import readiness_probe

JOBS = (
    PeriodicJob(
        "readiness",
        readiness_probe.measure,
        every_s=readiness_probe.EVERY_S,
        first=readiness_probe.begin,
    ),
)
