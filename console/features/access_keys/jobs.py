"""What the leading worker does for access keys: it announces their expiry."""

from __future__ import annotations

from console.feature import PeriodicJob
from console.features.access_keys import expiry

JOBS = (PeriodicJob("key expiries", expiry.announce_expiries, every_s=600.0),)
