"""Logs jobs of the leading worker."""

from __future__ import annotations

from console.feature import PeriodicJob
from console.features.logs import function_log_store as function_logs

JOBS = (PeriodicJob("function logs", function_logs.remove_old_logs),)
