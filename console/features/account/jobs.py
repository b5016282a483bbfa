"""Jobs of the leading worker: delete expired sessions, send mails about accounts."""

from __future__ import annotations

from console.feature import PeriodicJob
from console.features.account import mails, sessions

JOBS = (
    PeriodicJob("expired sessions", sessions.remove_expired, every_s=600.0),
    PeriodicJob(
        "account mails",
        mails.send_waiting,
        every_s=5.0,
        pending="EXISTS (SELECT 1 FROM console_accountmail)",
    ),
)
