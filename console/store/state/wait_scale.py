"""Scale the pauses of executions by ``WAIT_TIME_SCALE``, to speed up tests.

Pauses are Wait states, the delays before retries and the latency of injected faults. Timeouts and
heartbeats stay unscaled, because outside calls do not become faster.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.conf import settings

from console.db import clock
from console.db.writer import write
from console.models import ServerFact

if TYPE_CHECKING:
    import engine

_PAUSES = ("timer-", "backoff-", "delay-")
"""Prefixes of the engine's names of timers for pauses (Wait, backoff of a Retrier)."""
_NAME = "pauses were scaled"


def scaled_due_ms(timer: engine.SetTimer) -> int:
    """Return when a timer fires, in epoch milliseconds."""
    scale = settings.STATEYARD_WAIT_TIME_SCALE
    if not timer.timer.startswith(_PAUSES):
        return timer.due_ms
    now_ms = clock.now_ms()
    return now_ms + round((timer.due_ms - now_ms) * scale)


def note_scale() -> None:
    """Record that pauses of this database may be shorter than in their definitions."""
    if settings.STATEYARD_WAIT_TIME_SCALE != 1:
        write(lambda: ServerFact.objects.get_or_create(name=_NAME, defaults={"value": "yes"}))


def were_scaled() -> bool:
    """Return whether any process on this database has ever scaled pauses."""
    return ServerFact.objects.filter(name=_NAME).exists()
