"""Send each sealed audit row to another system, as JSON lines, in order and at least once.

Theory of operation
===================

``AuditStream.position`` is the newest row that the sink has. The leading worker reads the rows
behind it, hands them to the sink, and moves the position only after that:

1. A process that is killed before the position moves leaves rows that were sent. The next leader
   sends them again: rows are repeated, never lost.
2. Two workers that both think they lead for a moment begin behind the same position. A batch may
   repeat rows but never skips one, so rows arrive in order if repeats are ignored. Only one of the
   two workers moves the position.

Retention and the deletion of a project leave rows alone that were not sent. A row that was deleted
all the same, as by hand, is sent as its seal alone, so that the chain in the stream has no gap.
Memory holds one batch, however long the sink is down.
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
"""Rows of one batch."""
_TURN_S = 2.0
_RETRY_S = 15.0
"""How long a sink that failed is left alone."""
_LONGEST_PROBLEM = 300
_retry_at: dict[str, float] = {}
"""Address of a sink that failed -> when this process tries again, by the monotonic clock."""
log = structlog.get_logger(__name__)


def send_rows() -> None:
    """Send the rows that wait, for at most some seconds, or until the sink fails."""
    address = settings.STATEYARD_AUDIT_STREAM
    if not address or time.monotonic() < _retry_at.get(address, 0.0):
        return
    until_s = time.monotonic() + _TURN_S
    while _send_batch() and time.monotonic() < until_s:
        pass


def has_unsent_rows(project_id: int) -> bool:
    """Tell whether rows of a project were not sent yet, so that they may not be deleted."""
    if not settings.STATEYARD_AUDIT_STREAM:
        return False
    ends = AuditChain.objects.first() or AuditChain()
    if find_unsealed(ends.settled).filter(project=project_id).exists():
        return True
    unsent = AuditSeal.objects.filter(position__gt=sent_position(), project=project_id)
    return unsent.exists()


def _send_batch() -> bool:
    """Send a batch and move the position behind it; return whether there may be more."""
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
    """Return the hash of the seal before a batch, "" if somebody removed it by hand."""
    if position == ends.anchor:
        return ends.anchor_hash
    seal = AuditSeal.objects.filter(position=position).first()
    return seal.hash if seal else ""


def _lines_of(seals: list[AuditSeal], previous: str) -> Iterator[str]:
    """Yield the line of each row: its content, and what proves its place in the chain."""
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
    """Keep why the sink fails, for the doctor; the log says it once."""
    text = problem[:_LONGEST_PROBLEM]
    if text == state.problem:
        return
    if not state.problem:
        log.warning("the audit stream fails: rows are kept and sent later", problem=text)
    since_ms = state.failing_since_ms or clock.now_ms()
    _change(state, problem=text, failing_since_ms=since_ms)


def _change(state: AuditStream, **values: object) -> None:
    """Change the row of the stream, unless another worker has moved the position meanwhile."""

    def store() -> None:
        AuditStream.objects.bulk_create([AuditStream(pk=state.pk)], ignore_conflicts=True)
        AuditStream.objects.filter(pk=state.pk, position=state.position).update(**values)

    write(store)
