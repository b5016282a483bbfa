"""Jobs of the leading worker: seal audit rows, stream them, and delete old ones."""

from __future__ import annotations

from console.feature import PeriodicJob
from console.features.audit import chain, retention, stream

JOBS = (
    PeriodicJob("audit chain", chain.seal_rows, every_s=1.0, pending=chain.HAS_UNSEALED),
    PeriodicJob("audit stream", stream.send_rows, every_s=1.0),
    PeriodicJob("audit retention", retention.remove_old_rows, every_s=3600.0),
)
