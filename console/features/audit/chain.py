"""Seal audit rows: give each row a place in a chain of hashes, shortly after its commit.

A *seal* has the hash of a row and of the previous seal, so changed or removed rows are detected
(``verify``).

Theory of operation
===================

A change writes only its audit row. If it also extended the chain, each change of the server would
wait for the commit of the previous one. So the leading worker seals rows once a second, in order,
in its own transactions. A lock on the row of ``AuditChain`` blocks a second leader, but never the
writer of a row.

**Rows that commit late.** PostgreSQL numbers a row before its commit, so a row may appear below
numbers that are already sealed. The sealer looks for rows without a seal above ``settled``. It
raises ``settled`` to a number only after all transactions that could still add a row below it have
ended (``pg_snapshot_xmin``). SQLite has one writer at a time, so each readable row is settled.

**Old rows.** Rows from before the chain have no seal, like new rows, and are sealed in the same
way, in batches.
"""

from __future__ import annotations

import hashlib
import json
import time
from typing import TYPE_CHECKING

from django.db import connection
from django.db.models import Exists, Max, OuterRef

from console.db import clock, rows
from console.db.writer import write
from console.features.audit.models import AuditChain, AuditSeal
from console.models import AuditEntry

if TYPE_CHECKING:
    from django.db.models import QuerySet

AT_ONCE = 500
"""Number of rows sealed in one transaction."""
_TURN_S = 2.0
_PAUSE_S = 0.02  # between two transactions: steps go first
_SETTLE_MS = 5_000
"""Maximum time between a row's number and the number of its transaction."""
_FIELDS = (
    *("id", "at_ms", "project_id", "actor", "key_id", "action", "target"),
    *("reason", "request_id", "execution"),
)


def content_of(entry: AuditEntry) -> dict[str, object]:
    """Return the content covered by a row's digest: all its columns."""
    return {
        name.removesuffix("_id") if name == "project_id" else name: getattr(entry, name)
        for name in _FIELDS
    }


def digest_of(content: dict[str, object]) -> str:
    """Return the SHA-256 of a row's content, as JSON with sorted keys and without blanks."""
    text = json.dumps(content, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


def hash_of(previous: str, seal: AuditSeal) -> str:
    """Return the hash of a seal, from the hash of the previous seal."""
    project = "" if seal.project is None else seal.project
    parts = (previous, seal.position, seal.entry, project, seal.at_ms, seal.digest)
    return hashlib.sha256("\n".join(map(str, parts)).encode()).hexdigest()


def find_unsealed(settled: int) -> QuerySet[AuditEntry]:
    """Return the rows above a number without a seal."""
    seals = AuditSeal.objects.filter(entry=OuterRef("pk"))
    return AuditEntry.objects.filter(~Exists(seals), pk__gt=settled).order_by("pk")


HAS_UNSEALED = (
    "EXISTS (SELECT 1 FROM console_auditentry"
    " WHERE id > COALESCE((SELECT settled FROM console_auditchain LIMIT 1), 0))"
)
"""SQL condition: there are rows above ``settled``. It takes no lock."""


def seal_rows() -> None:
    """Seal unsealed rows, for at most some seconds."""
    until_s = time.monotonic() + _TURN_S
    while write(_seal_some) == AT_ONCE and time.monotonic() < until_s:
        time.sleep(_PAUSE_S)


def lock_chain() -> AuditChain:
    """Return the chain's row, locked (inside a transaction)."""
    AuditChain.objects.bulk_create([AuditChain(pk=1)], ignore_conflicts=True)
    return AuditChain.objects.select_for_update().get(pk=1)


def _seal_some() -> int:
    """Seal up to ``AT_ONCE`` rows; return how many (inside a transaction)."""
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
    """Return the columns of a row's seal, and move the end of the chain to it."""
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
    """Return the number up to which no transaction can add a row any more, 0 if unknown.

    Called before rows are read, so that rows of ended transactions are among them.
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
