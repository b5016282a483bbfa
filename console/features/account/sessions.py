"""List the sessions of a person, and end them.

A session is a row of Django's table, which is read at each request. So deleting the row ends the
session at once in all web processes. A running request cannot restore it, because Django saves a
session only if its row still exists.

``BrowserSession`` stores the facts that Django does not. Its rows are written at most once a minute
per session and process. A row without a session is ignored, and deleted by a periodic job.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import structlog
from django.contrib.auth import HASH_SESSION_KEY, SESSION_KEY
from django.contrib.sessions.models import Session
from django.db import DatabaseError
from django.db.models import Exists, OuterRef
from django.utils import timezone
from django.utils.crypto import constant_time_compare

from console.db import clock
from console.db.writer import write
from console.features.account import record
from console.features.account.models import BrowserSession
from console.web.people.login_views import SIGNED_IN

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    from django.contrib.auth.models import User
    from django.db.models import QuerySet
    from django.http import HttpRequest

_MINUTE_MS = 60_000
_MOST_NOTED = 10_000
_AT_ONCE = 500
_noted: dict[str, int] = {}
"""Session key -> the minute in which this process last recorded its use."""
log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class OwnSession:
    """A session of a person. ``current``: the session of this request."""

    number: int
    browser: str
    address: str
    since_ms: int
    last_seen_ms: int
    current: bool


def note_request(request: HttpRequest) -> None:
    """Record that a session was used, at most once a minute. Errors do not fail the page.

    A session from before an upgrade has no recorded start: only its own page records it.
    """
    key = request.session.session_key
    match = request.resolver_match
    if SIGNED_IN not in request.session and not (match and match.url_name == "account"):
        return
    now_ms = clock.now_ms()
    minute = now_ms // _MINUTE_MS
    if key is None or _noted.get(key) == minute:
        return
    if len(_noted) > _MOST_NOTED:
        _noted.clear()
    _noted[key] = minute
    row = BrowserSession(
        session_key=key,
        user_id=request.user.pk or 0,
        since_ms=request.session.get(SIGNED_IN, now_ms),
        last_seen_ms=now_ms,
        address=str(request.META.get("REMOTE_ADDR", ""))[:64],
        browser="".join(filter(str.isprintable, request.headers.get("User-Agent", "")))[:256],
    )
    try:
        write(
            lambda: BrowserSession.objects.bulk_create(
                [row],
                update_conflicts=True,
                unique_fields=["session_key"],
                update_fields=["user", "last_seen_ms", "address", "browser"],
            )
        )
    except DatabaseError:
        log.warning("cannot keep when a session was seen")


def list_sessions(user: User, current_key: str | None) -> list[OwnSession]:
    """Return a person's open sessions: the current one, then by last use."""
    rows = BrowserSession.objects.filter(user=user).order_by("-last_seen_ms")
    by_key = {row.session_key: row for row in rows}
    open_keys = {key for key, of in _open_sessions(by_key) if _belongs_to(user, of)}
    sessions = [
        OwnSession(
            *(row.pk, name_browser(row.browser), row.address, row.since_ms, row.last_seen_ms),
            current=key == current_key,
        )
        for key, row in by_key.items()
        if key in open_keys
    ]
    return sorted(sessions, key=lambda session: not session.current)


def end_session(user: User, number: int, actor: record.Actor, current_key: str | None) -> bool:
    """End a session of a person; return False if it has ended or is the current one."""

    def store() -> bool:
        row = BrowserSession.objects.filter(user=user, pk=number).first()
        if row is None or row.session_key == current_key:
            return False
        deleted, _ = Session.objects.filter(session_key=row.session_key).delete()
        row.delete()
        if deleted:
            words = f"{name_browser(row.browser)}, last seen at {row.address or 'no address'}"
            record.record_for(user, actor, "EndSession", words)
        return bool(deleted)

    return write(store)


def end_sessions(user: User, actor: record.Actor, but: str | None = None) -> int:
    """End all sessions of a person; return their number. ``but``: the key of a session to keep.

    Sessions without a ``BrowserSession``, such as from before an upgrade, are included.
    """
    keys = [
        key for key, of in _open_sessions() if key != but and of.get(SESSION_KEY) == str(user.pk)
    ]

    def store() -> int:
        ended = 0
        for at in range(0, len(keys), _AT_ONCE):
            chunk = keys[at : at + _AT_ONCE]
            ended += Session.objects.filter(session_key__in=chunk).delete()[0]
            BrowserSession.objects.filter(session_key__in=chunk).delete()
        if ended:
            record.record_for(user, actor, "EndSessions", f"{ended} sessions")
        return ended

    return write(store)


def _open_sessions(keys: Collection[str] | None = None) -> Iterator[tuple[str, dict[str, str]]]:
    """Yield key and content of unexpired sessions, of some keys or all."""
    rows = Session.objects.filter(expire_date__gt=timezone.now())
    if keys is not None:
        rows = rows.filter(session_key__in=keys)
    for row in rows.iterator():
        yield row.session_key, row.get_decoded()


def _belongs_to(user: User, content: dict[str, str]) -> bool:
    """Return whether a session is valid for a user: it has a hash of their current password."""
    sent = content.get(HASH_SESSION_KEY, "")
    return content.get(SESSION_KEY) == str(user.pk) and constant_time_compare(
        sent, user.get_session_auth_hash()
    )


def remove_expired() -> None:
    """Delete expired sessions, and the stored facts of ended sessions."""
    expired = Session.objects.filter(expire_date__lt=timezone.now())
    _delete_in_batches(expired)
    session = Session.objects.filter(session_key=OuterRef("session_key"))
    _delete_in_batches(BrowserSession.objects.exclude(Exists(session)))


def _delete_in_batches(rows: QuerySet[Any]) -> None:
    while keys := list(rows.values_list("pk", flat=True)[:_AT_ONCE]):
        write(rows.filter(pk__in=keys).delete)


_SYSTEMS = (
    ("Windows", "Windows"),
    ("Android", "Android"),
    ("iPhone", "iPhone"),
    ("iPad", "iPad"),
    ("Mac OS X", "macOS"),
    ("CrOS", "ChromeOS"),
    ("Linux", "Linux"),
)
_BROWSERS = (
    ("Edg", "Edge"),
    ("OPR/", "Opera"),
    ("Firefox/", "Firefox"),
    ("FxiOS/", "Firefox"),
    ("Chrome/", "Chrome"),
    ("CriOS/", "Chrome"),
    ("Safari/", "Safari"),
)


def name_browser(agent: str) -> str:
    """Return browser and system from a ``User-Agent``, else its first word.

    The order matters: Chrome also names Safari, and Edge names both.
    """
    browser = next((name for sign, name in _BROWSERS if sign in agent), "")
    system = next((name for sign, name in _SYSTEMS if sign in agent), "")
    if not browser:
        return agent.split(" ", maxsplit=1)[0][:60] or "Unknown browser"
    return f"{browser} on {system}" if system else browser
