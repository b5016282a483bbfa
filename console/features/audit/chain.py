"""Seal audit rows: give each a place in a chain of hashes, shortly after its commit.

Theory of operation
===================

A change writes its audit row and nothing else. If it also had to extend a chain, every change of
the server would wait for the commit of the one before it. So the leading worker seals rows, once a
second and in order, in transactions of its own. A lock on the row of ``AuditChain`` holds up a
second leader, never the writer of a row.

**Rows that commit late.** PostgreSQL gives a row its number before its commit, so a row may appear
below numbers that are sealed already. The sealer looks for rows without a seal above ``settled``,
and moves ``settled`` up to a number only after every transaction has ended that could still add a
row below it (``pg_snapshot_xmin``). In SQLite one transaction writes at a time, so each row
that can be read is settled.

**Old rows.** Rows from before the chain have no seal, as new ones have none, and are sealed in the
same way, some at a time.
"""

from __future__ import annotations

import hashlib
import json
import time
from typing import TYPE_CHECKING

from django.db import connection
from django.db.models import Exists, Max, OuterRef, Subquery
from django.db.models.functions import Coalesce

from console.db import clock, rows
from console.db.writer import write
from console.features.audit.models import AuditChain, AuditSeal
from console.models import AuditEntry

if TYPE_CHECKING:
    from django.db.models import QuerySet

AT_ONCE = 500
"""Rows that are sealed in one transaction."""
_TURN_S = 2.0
_PAUSE_S = 0.02  # between two transactions: steps go first
_SETTLE_MS = 5_000
"""A statement has its transaction's number within this time after its row's number."""
_FIELDS = (
    *("id", "at_ms", "project_id", "actor", "key_id", "action", "target"),
    *("reason", "request_id", "execution"),
)


def content_of(entry: AuditEntry) -> dict[str, object]:
    """Return what a row's digest covers: all of its columns."""
    return {
        name.removesuffix("_id") if name == "project_id" else name: getattr(entry, name)
        for name in _FIELDS
    }


def digest_of(content: dict[str, object]) -> str:
    """Return the SHA-256 of a row's content, as JSON with sorted keys and without blanks."""
    text = json.dumps(content, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


def hash_of(previous: str, seal: AuditSeal) -> str:
    """Return the hash of a seal, given the hash of the seal before it."""
    project = "" if seal.project is None else seal.project
    parts = (previous, seal.position, seal.entry, project, seal.at_ms, seal.digest)
    return hashlib.sha256("\n".join(map(str, parts)).encode()).hexdigest()


def find_unsealed(settled: int) -> QuerySet[AuditEntry]:
    """Return the rows above a number that have no seal."""
    seals = AuditSeal.objects.filter(entry=OuterRef("pk"))
    return AuditEntry.objects.filter(~Exists(seals), pk__gt=settled).order_by("pk")


def seal_rows() -> None:
    """Seal the rows that wait, for at most some seconds."""
    until_s = time.monotonic() + _TURN_S
    while _has_work() and write(_seal_some) == AT_ONCE and time.monotonic() < until_s:
        time.sleep(_PAUSE_S)


def _has_work() -> bool:
    """Tell whether there are rows above ``settled``: one statement, which takes no lock."""
    settled = Coalesce(Subquery(AuditChain.objects.values("settled")[:1]), 0)
    return AuditEntry.objects.filter(pk__gt=settled).exists()


def lock_chain() -> AuditChain:
    """Return the row of the chain, locked (inside a transaction)."""
    AuditChain.objects.bulk_create([AuditChain(pk=1)], ignore_conflicts=True)
    return AuditChain.objects.select_for_update().get(pk=1)


def _seal_some() -> int:
    """Seal up to ``AT_ONCE`` rows, and return how many (inside a transaction)."""
    chain = lock_chain()
    newest = _note_newest(chain)
    entries = list(find_unsealed(chain.settled)[:AT_ONCE])
    rows.insert_rows(AuditSeal, [_extend(chain, entry) for entry in entries])
    if newest:
        full = len(entries) == AT_ONCE
        chain.settled = max(chain.settled, min(newest, entries[-1].pk) if full else newest)
    chain.save()
    return len(entries)


def _extend(chain: AuditChain, entry: AuditEntry) -> dict[str, object]:
    """Return the seal of a row by attribute, and move the end of the chain to it."""
    chain.position += 1
    seal = AuditSeal(
        position=chain.position,
        entry=entry.pk,
        project=entry.project_id,
        at_ms=entry.at_ms,
        digest=digest_of(content_of(entry)),
    )
    chain.hash = seal.hash = hash_of(chain.hash, seal)
    names = ("position", "entry", "project", "at_ms", "digest", "hash")
    return {name: getattr(seal, name) for name in names}


def _note_newest(chain: AuditChain) -> int:
    """Return up to which number no transaction can add a row any more, 0 if that is not known.

    Called before the rows are read: those of a transaction that has ended are among them.
    """
    newest: int = AuditEntry.objects.aggregate(newest=Max("pk"))["newest"] or 0
    if connection.vendor != "postgresql":
        return newest
    sql = "SELECT pg_snapshot_xmin(s)::text, pg_snapshot_xmax(s)::text FROM pg_current_snapshot() s"
    oldest, following = map(int, rows.fetch_row(sql, ()))
    if chain.seen <= chain.settled:
        chain.seen, chain.seen_transaction, chain.seen_ms = newest, following, clock.now_ms()
        return 0
    is_settled = oldest >= chain.seen_transaction and clock.now_ms() >= chain.seen_ms + _SETTLE_MS
    return chain.seen if is_settled else 0
