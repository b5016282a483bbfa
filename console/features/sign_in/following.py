"""Store whose roles are refreshed from their provider, and which sessions the provider began.

A person who has signed in is *followed*: every ``FRESH_MS`` the leading worker (``refresh``) asks
their provider for current groups, with the refresh token of their last sign-in. Access ends:

* if the provider rejects the token: their sessions end, and their keys are refused until the next
  sign-in, because nothing is known about them meanwhile;
* while the provider does not answer for longer than ``SILENT_MS``: pages and keys are refused;
* in sessions named by a logout token of the provider.

Without a refresh token a person is not followed: their roles change only at sign-in.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

import structlog
from django.contrib.sessions.models import Session
from django.db.models import Count, Exists, OuterRef, Q

from console import access
from console.config import logging_setup
from console.db import audit, clock, sealing, signals
from console.db.writer import write
from console.features.sign_in.models import FollowedPerson, ProviderSession, SpentLogoutToken
from console.models import AccessKey
from console.store.people import people

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    from django.contrib.auth.models import User
    from django.db.models import QuerySet

FRESH_MS = 20_000
RETRY_MS = 10_000
SILENT_MS = 15 * 60_000
SESSION_MS = 15 * 24 * 3600 * 1000
"""Longer than any session lasts."""
_LEASE_MS = 30_000
_TOKEN = "token"
log = structlog.get_logger(__name__)


def begin(session: ProviderSession, token: str, *, by_userinfo: bool) -> None:
    """Store the session of a sign-in, and follow the person if there is a refresh token.

    ``by_userinfo``: only the userinfo has the person's groups.
    """
    now_ms = clock.now_ms()
    row = {
        "provider_id": session.provider_id,
        "token": _seal(session.user_id, token),
        "by_userinfo": by_userinfo,
        "confirmed_ms": now_ms,
        "due_ms": now_ms + FRESH_MS,
        "stopped_ms": None,
    }

    def store() -> None:
        FollowedPerson.objects.update_or_create(user_id=session.user_id, defaults=row)
        session.began_ms = now_ms
        session.save()
        signals.publish(people.RIGHTS)

    write(store)


def refused_because(user_id: int) -> str:
    """Return "stopped" or "silent" if a person's access is suspended, else ""."""
    rows = FollowedPerson.objects.filter(user_id=user_id)
    row = rows.values_list("token", "confirmed_ms", "stopped_ms").first()
    if row is None:
        return ""
    token, confirmed_ms, stopped_ms = row
    if stopped_ms is not None:
        return "stopped"
    return "silent" if token and clock.now_ms() - confirmed_ms > SILENT_MS else ""


def is_paused(user_id: int) -> bool:
    """Return whether a person's access is suspended until their provider confirms it."""
    return bool(refused_because(user_id))


def take_due(
    most: int, provider_ids: Collection[str], by_ms: int | None = None
) -> list[FollowedPerson]:
    """Return due people to refresh at these providers, reserved for this process.

    ``by_ms``: omit people who became due later.
    """
    now_ms = clock.now_ms()

    def store() -> list[FollowedPerson]:
        due = FollowedPerson.objects.select_related("user").exclude(token="")
        due = due.filter(due_ms__lte=by_ms or now_ms, provider_id__in=provider_ids).order_by(
            "due_ms"
        )
        return [
            person
            for person in due[:most]
            if FollowedPerson.objects.filter(pk=person.pk, due_ms=person.due_ms).update(
                due_ms=now_ms + _LEASE_MS
            )
        ]

    return write(store)


def open_token(person: FollowedPerson) -> str:
    """Return a person's refresh token; raise ``SealError`` under another master secret."""
    return sealing.open_secrets(person.token, _place(person.pk))[_TOKEN]


def confirm(person: FollowedPerson, token: str, asked_ms: int, follow: Callable[[], str]) -> None:
    """Update a person's roles from their provider's answer.

    ``token``: the next refresh token. ``follow``: sets the roles in this transaction and returns
    why access ended, "" if it continues.
    """

    def store() -> None:
        row = _rows_as_asked(person).select_for_update().first()
        if row is None:
            return  # the person has signed in again, which counts more
        refusal = follow()
        if refusal:
            _stop(person, refusal)
        else:
            due_ms = clock.now_ms() + FRESH_MS
            sealed = _seal(person.pk, token)
            _rows_as_asked(person).update(token=sealed, confirmed_ms=asked_ms, due_ms=due_ms)

    write(store)


def postpone(person: FollowedPerson) -> None:
    """Retry soon: the provider gave no valid answer."""
    due_ms = clock.now_ms() + RETRY_MS
    write(lambda: _rows_as_asked(person).update(due_ms=due_ms))


def stop(person: FollowedPerson, reason: str) -> None:
    """End a person's sessions, and refuse their keys until they sign in again."""

    def store() -> None:
        if _rows_as_asked(person).select_for_update().exists():
            _stop(person, reason)

    write(store)


def unfollow(person: FollowedPerson) -> None:
    """Stop refreshing a person until they sign in again; their access continues."""
    write(lambda: _rows_as_asked(person).update(token=""))


def end_sessions(provider_id: str, sid: str, user_id: int | None, jti: str, until_ms: int) -> bool:
    """End the sessions named by a logout token; return False if the token was used before.

    ``sid``: the provider's id of a session, "" for all sessions of the person. ``user_id``: None if
    the token names no person. ``until_ms``: when the token expires.
    """
    digest = hashlib.sha256(f"{provider_id} {jti}".encode()).hexdigest()

    def store() -> bool:
        _, is_new = SpentLogoutToken.objects.get_or_create(
            pk=digest, defaults={"until_ms": until_ms}
        )
        if not is_new:
            return False
        sessions = ProviderSession.objects.filter(provider_id=provider_id)
        if sid:
            sessions = sessions.filter(sid=sid)
        if user_id is not None:
            sessions = sessions.filter(user_id=user_id)
        users = {session.user for session in sessions.select_related("user")}
        _end_all(sessions)
        for user in users:
            _record(user, provider_id, "signed out at the provider")
        # the provider may have ended more than the session
        FollowedPerson.objects.filter(user__in=users).update(due_ms=0)
        return True

    return write(store)


def prune() -> None:
    """Delete expired sessions and tokens; unfollow people with neither session nor key."""
    now_ms = clock.now_ms()
    expired = ProviderSession.objects.filter(began_ms__lt=now_ms - SESSION_MS)
    spent = SpentLogoutToken.objects.filter(until_ms__lt=now_ms)
    idle = FollowedPerson.objects.exclude(token="").exclude(
        Exists(ProviderSession.objects.filter(user_id=OuterRef("pk")))
    )
    idle = idle.exclude(Exists(AccessKey.objects.filter(user_id=OuterRef("pk"))))
    if expired.exists() or spent.exists() or idle.exists():
        write(lambda: (expired.delete(), spent.delete(), idle.update(token="")))


def count_people() -> dict[str, tuple[int, int]]:
    """Return provider -> numbers of people who are followed, and who are not."""
    rows = FollowedPerson.objects.filter(stopped_ms=None).values("provider_id")
    counts = rows.annotate(
        followed=Count("pk", filter=~Q(token="")), others=Count("pk", filter=Q(token=""))
    )
    return {row["provider_id"]: (row["followed"], row["others"]) for row in counts}


def _rows_as_asked(person: FollowedPerson) -> QuerySet[FollowedPerson]:
    """Return the query of a person's row, unless they have signed in again meanwhile."""
    return FollowedPerson.objects.filter(pk=person.pk, token=person.token)


def _stop(person: FollowedPerson, reason: str) -> None:
    FollowedPerson.objects.filter(pk=person.pk).update(token="", stopped_ms=clock.now_ms())
    _end_all(ProviderSession.objects.filter(user_id=person.pk))
    _record(person.user, person.provider_id, reason)
    signals.publish(people.RIGHTS)


def _end_all(sessions: QuerySet[ProviderSession]) -> None:
    keys = list(sessions.values_list("session_key", flat=True))
    Session.objects.filter(session_key__in=keys).delete()
    ProviderSession.objects.filter(session_key__in=keys).delete()


def _record(user: User, provider_id: str, reason: str) -> None:
    actor = audit.Actor(f"provider {provider_id}", request_id=logging_setup.request_id())
    audit.record(access.default_project(), actor, "EndSignIn", user.get_username(), reason)


def _seal(user_id: int, token: str) -> str:
    return sealing.seal_secrets({_TOKEN: token}, _place(user_id)) if token else ""


def _place(user_id: int) -> str:
    return f"refresh token of {user_id}"
