"""Job of the leading worker: warn of access keys that expire soon."""

from __future__ import annotations

from console.feature import PeriodicJob
from console.features.access_keys import expiry

JOBS = (PeriodicJob("key expiries", expiry.announce_expiries, every_s=600.0),)
