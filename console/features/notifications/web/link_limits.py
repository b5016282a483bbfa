"""Limit what the holders of one start link may do to everybody else, in each process.

The secret of a link is handed to programs outside of the project. One of them may be broken, or may
pass the link on: it gets 429 then, and the links of other machines and projects go on.
"""

from __future__ import annotations

import threading
import time
from collections import Counter
from contextlib import contextmanager
from typing import TYPE_CHECKING

from console.config import quotas
from console.errors import ThrottlingException

if TYPE_CHECKING:
    from collections.abc import Iterator

    from console.models import StartLink

_lock = threading.Lock()
_buckets: dict[int, tuple[float, float]] = {}
"""Link -> tokens, and when they were counted (seconds of the monotonic clock)."""
_waiting: Counter[int] = Counter()


def take_token(link: StartLink) -> None:
    """Count a request of a link; raise ``ThrottlingException`` beyond its rate."""
    rate = quotas.quotas_of(link.machine.project.name).start_link
    if rate is None:
        return
    now = time.monotonic()
    with _lock:
        tokens, at = _buckets.get(link.pk, (rate.bucket, now))
        tokens = min(rate.bucket, tokens + (now - at) * rate.refill)
        _buckets[link.pk] = (tokens - 1 if tokens >= 1 else tokens, now)
    if tokens < 1:
        raise ThrottlingException(f"Rate exceeded: {rate.refill:g} requests a second of this link")


@contextmanager
def waiting(link: StartLink) -> Iterator[None]:
    """Count a caller who waits for the end of an execution; raise ``ThrottlingException``."""
    most = quotas.quotas_of(link.machine.project.name).start_link_waits
    with _lock:
        if _waiting[link.pk] >= most:
            raise ThrottlingException(f"Rate exceeded: {most} callers of this link wait already")
        _waiting[link.pk] += 1
    try:
        yield
    finally:
        with _lock:
            _waiting[link.pk] -= 1
