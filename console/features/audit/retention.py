"""Delete old audit rows with their seals; the chain keeps the hash of the newest deleted seal."""

from __future__ import annotations

import time
from functools import partial

import structlog
from django.conf import settings

from console.db import audit, clock
from console.db.writer import write
from console.features.audit.chain import lock_chain
from console.features.audit.models import AuditChain, AuditSeal
from console.features.audit.stream_state import sent_position
from console.models import AuditEntry

PRUNE = "PruneAudit"
"""The audit action that announces a deletion up to the position in its target."""
AT_ONCE = 500
"""Number of rows deleted in one transaction."""
_DAY_MS = 24 * 3600 * 1000
_PAUSE_S = 0.05  # between two transactions: steps go first
_ACTOR = audit.Actor("retention")
log = structlog.get_logger(__name__)


def remove_old_rows() -> None:
    """Delete audit rows older than the setting allows, from the beginning of the chain.

    An audit entry announces the deletion first, so ``verify_audit`` can tell it from tampering.
    """
    days = settings.STATEYARD_AUDIT_RETENTION_DAYS
    if days is None:
        return
    last = _find_last(clock.now_ms() - int(days * _DAY_MS))
    if last is None:
        return
    reason = f"rows of more than {days:g} days, hash {last.hash}"
    write(lambda: audit.record(None, _ACTOR, PRUNE, str(last.position), reason))
    while write(partial(_remove_some, last.position)):
        time.sleep(_PAUSE_S)
    log.info("old audit rows were removed", position=last.position)


def _find_last(before_ms: int) -> AuditSeal | None:
    """Return the newest seal to delete, None if no seal is old enough.

    Rows that the stream has not sent are kept.
    """
    seals = AuditSeal.objects.order_by("position")
    if settings.STATEYARD_AUDIT_STREAM:
        seals = seals.filter(position__lte=sent_position())
    first = seals.filter(at_ms__gte=before_ms).first()
    old = seals if first is None else seals.filter(position__lt=first.position)
    return old.last()


def _remove_some(until: int) -> bool:
    """Delete some rows; return whether there may be more (inside a transaction)."""
    chain = lock_chain()
    seals = AuditSeal.objects.filter(position__gt=chain.anchor, position__lte=until)
    batch = list(seals.order_by("position")[:AT_ONCE])
    if not batch:
        return False
    AuditEntry.objects.filter(pk__in=[seal.entry for seal in batch]).delete()
    AuditSeal.objects.filter(pk__in=[seal.position for seal in batch]).delete()
    ends = AuditChain.objects.filter(pk=chain.pk)
    ends.update(anchor=batch[-1].position, anchor_hash=batch[-1].hash)
    return len(batch) == AT_ONCE
