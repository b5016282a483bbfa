"""Stream sealed audit rows to another system as JSON lines, in order and at least once.

Theory of operation
===================

``AuditStream.position`` is the newest row that the sink has. The leading worker reads the rows
behind it, sends them to the sink (``sinks``), and then moves the position:

1. If a process is killed before the position moves, sent rows are sent again by the next leader:
   rows may repeat but are never lost.
2. If two workers briefly both act as leader, they start at the same position. A batch may repeat
   rows but never skips one, so rows arrive in order, apart from repeats. Only one of the workers
   moves the position.

Retention and the deletion of a project keep unsent rows. A row that was deleted anyway, as by hand,
is sent as its seal alone, so that the streamed chain has no gap. Only one batch is in memory.
"""

from __future__ import annotations

import json
import time
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import structlog
from django.conf import settings

from console.db import clock
from console.db.writer import write
from console.features.audit import sinks
from console.features.audit.chain import content_of, find_unsealed
from console.features.audit.models import AuditChain, AuditSeal, AuditStream
from console.features.audit.stream_state import sent_position
from console.models import AuditEntry, Project

if TYPE_CHECKING:
    from collections.abc import Iterator

AT_ONCE = 200
"""Number of rows in a batch."""
_TURN_S = 2.0
_RETRY_S = 15.0
"""Pause after a failure of the sink."""
_LONGEST_PROBLEM = 300
_retry_at: dict[str, float] = {}
"""Address of a failed sink -> time of this process's next attempt (monotonic clock)."""
log = structlog.get_logger(__name__)


def send_rows() -> None:
    """Send unsent rows, for at most some seconds, or until the sink fails."""
    address = settings.STATEYARD_AUDIT_STREAM
    if not address or time.monotonic() < _retry_at.get(address, 0.0):
        return
    until_s = time.monotonic() + _TURN_S
    while _send_batch() and time.monotonic() < until_s:
        pass


def has_unsent_rows(project_id: int) -> bool:
    """Return whether rows of a project are unsent, so that they must not be deleted yet."""
    if not settings.STATEYARD_AUDIT_STREAM:
        return False
    ends = AuditChain.objects.first() or AuditChain()
    if find_unsealed(ends.settled).filter(project=project_id).exists():
        return True
    unsent = AuditSeal.objects.filter(position__gt=sent_position(), project=project_id)
    return unsent.exists()


def _send_batch() -> bool:
    """Send a batch and move the position; return whether there may be more."""
    state = AuditStream.objects.first() or AuditStream(pk=1)
    ends = AuditChain.objects.first() or AuditChain()
    after = max(state.position, ends.anchor)
    seals = list(AuditSeal.objects.filter(position__gt=after).order_by("position")[:AT_ONCE])
    if not seals:
        return False
    lines = "".join(_lines_of(seals, _hash_at(after, ends)))
    address = settings.STATEYARD_AUDIT_STREAM
    try:
        sinks.send_lines(address, settings.STATEYARD_AUDIT_STREAM_TOKEN, lines.encode())
    except sinks.SinkError as error:
        _retry_at[address] = time.monotonic() + _RETRY_S
        _note_problem(state, str(error))
        return False
    last = seals[-1].position
    _change(state, position=last, problem="", failing_since_ms=0)
    if state.problem:
        log.info("the audit stream is sent again", position=last)
    return len(seals) == AT_ONCE


def _hash_at(position: int, ends: AuditChain) -> str:
    """Return the hash of the seal before a batch, "" if it was deleted by hand."""
    if position == ends.anchor:
        return ends.anchor_hash
    seal = AuditSeal.objects.filter(position=position).first()
    return seal.hash if seal else ""


def _lines_of(seals: list[AuditSeal], previous: str) -> Iterator[str]:
    """Yield the line of each row: its content, and the proof of its place in the chain."""
    entries = AuditEntry.objects.in_bulk([seal.entry for seal in seals])
    projects = Project.objects.in_bulk({seal.project for seal in seals if seal.project})
    for seal in seals:
        entry = entries.get(seal.entry)
        project = projects.get(seal.project or 0)
        moment = datetime.fromtimestamp(seal.at_ms / 1000, UTC)
        line = {
            "time": moment.isoformat(timespec="milliseconds").replace("+00:00", "Z"),
            "project": project.name if project else None,
            "row": content_of(entry) if entry else None,
            "position": seal.position,
            "digest": seal.digest,
            "previous": previous,
            "hash": seal.hash,
        }
        if entry is None:
            line["deleted"] = {"id": seal.entry, "project": seal.project, "at_ms": seal.at_ms}
        previous = seal.hash
        yield json.dumps(line, separators=(",", ":")) + "\n"


def _note_problem(state: AuditStream, problem: str) -> None:
    """Store the sink's error for the doctor; log it once."""
    text = problem[:_LONGEST_PROBLEM]
    if text == state.problem:
        return
    if not state.problem:
        log.warning("the audit stream fails: rows are kept and sent later", problem=text)
    since_ms = state.failing_since_ms or clock.now_ms()
    _change(state, problem=text, failing_since_ms=since_ms)


def _change(state: AuditStream, **values: object) -> None:
    """Update the stream's row, unless another worker has moved the position meanwhile."""

    def store() -> None:
        AuditStream.objects.bulk_create([AuditStream(pk=state.pk)], ignore_conflicts=True)
        AuditStream.objects.filter(pk=state.pk, position=state.position).update(**values)

    write(store)
