"""Check that each task belongs to a worker that is still alive."""

from __future__ import annotations

from console.db import clock
from console.models import Worker
from console.store.tasks.claim import BUILTIN_WORKER, OWN

GRACE = 2
"""A lease may have ended for so many times its length before the others must have taken over."""


def alive(worker: str) -> bool:
    """Tell whether a worker lives.

    The one of a database's single process always does, as far as the rows can tell: it takes its
    tasks up again when it starts. An activity's worker is held to its task's own clocks.
    """
    if not worker.startswith(OWN) or worker == OWN + BUILTIN_WORKER:
        return True
    lease = Worker.objects.filter(name=worker.removeprefix(OWN)).first()
    if lease is None:
        return False
    grace_ms = GRACE * (lease.lease_until_ms - lease.started_ms)
    return lease.lease_until_ms + min(grace_ms, 20_000) > clock.now_ms()
