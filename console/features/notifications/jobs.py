"""Notifications jobs of the leading worker, besides the relay."""

from __future__ import annotations

from console.feature import PeriodicJob
from console.features.notifications.store import deliveries

JOBS = (
    PeriodicJob("events", deliveries.remove_old_events),
    PeriodicJob("pauses", deliveries.end_pauses),
)
