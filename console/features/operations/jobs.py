"""The leader measures the availability of the server."""

from __future__ import annotations

from console.feature import PeriodicJob
from console.features.operations import readiness_probe

JOBS = (
    PeriodicJob(
        "readiness",
        readiness_probe.measure,
        every_s=readiness_probe.EVERY_S,
        # a server that is starting has not opened its port yet
        first=readiness_probe.note_start,
    ),
)
