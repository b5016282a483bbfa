"""Measure how far the audit stream is behind the audit, for the doctor and the metrics.

The stream copies each audit row to a sink outside the server (``STATEYARD_AUDIT_STREAM``).
"""

from __future__ import annotations

from django.conf import settings

from console.db import clock
from console.features.audit.models import AuditChain, AuditSeal, AuditStream

_LATE_MS = 60_000
"""A healthy stream is a few seconds behind."""
_MEND = "Look at STATEYARD_AUDIT_STREAM and at its other end: rows are kept and sent later."
_MEND_LATE = "Set STATEYARD_AUDIT_STREAM for all workers, and look at their logs."


def sent_position() -> int:
    """Return the position of the newest row that the sink has, 0 before the first."""
    return AuditStream.objects.values_list("position", flat=True).first() or 0


def count_waiting() -> tuple[int, int]:
    """Return the number of unsent sealed rows, and the age of the oldest in milliseconds."""
    seals = AuditSeal.objects.filter(position__gt=sent_position()).order_by("position")
    oldest = seals.first()
    if oldest is None:
        return 0, 0
    newest = AuditChain.objects.values_list("position", flat=True).first() or oldest.position
    return newest - oldest.position + 1, max(0, clock.now_ms() - oldest.at_ms)


def measure_stream() -> list[tuple[str, str, float]]:
    """Return the stream's metrics; [] if none is configured."""
    if not settings.STATEYARD_AUDIT_STREAM:
        return []
    count, age_ms = count_waiting()
    return [
        ("stateyard_audit_stream_waiting", "audit rows that the stream has not sent", count),
        (
            "stateyard_audit_stream_oldest_seconds",
            "age of the oldest audit row that the stream has not sent",
            age_ms / 1000,
        ),
    ]


def check_stream() -> list[tuple[str, str, str, str]]:
    """Return the doctor's finding on the stream; [] if none is configured."""
    if not settings.STATEYARD_AUDIT_STREAM:
        return []
    count, age_ms = count_waiting()
    state = AuditStream.objects.first() or AuditStream()
    waiting = f"{count:,} row{'s' * (count != 1)} wait{'s' * (count == 1)}"
    if state.problem:
        minutes = (clock.now_ms() - state.failing_since_ms) // 60_000
        text = f"The sink has failed for {minutes} min ({state.problem}); {waiting}."
        return [("audit", "failed", text, _MEND)]
    if count and age_ms > _LATE_MS:
        text = f"No worker sends the audit: {waiting}, the oldest for {age_ms // 1000} s."
        return [("audit", "warning", text, _MEND_LATE)]
    return [("audit", "ok", f"The sink has the audit up to position {state.position}.", "")]
