"""Warn people once, a week ahead, that an access key expires: on the overview and by mail.

A key with a lifetime of a week or less needs no warning: its creator has just chosen that.
"""

from __future__ import annotations

from datetime import UTC, datetime
from smtplib import SMTPException
from typing import TYPE_CHECKING, Any

import structlog
from django.conf import settings
from django.core.mail import EmailMessage
from django.db.models import F

from console.db import clock
from console.db.writer import write
from console.models import AccessKey, Membership, Role
from console.store.people import people

if TYPE_CHECKING:
    from collections.abc import Mapping

    from django.db.models import QuerySet

    from console.web.core.scope import Scope

log = structlog.get_logger(__name__)
_MOST_SHOWN = 100


def ending_keys() -> QuerySet[AccessKey]:
    """Return the usable keys that expire within a week, soonest first."""
    now_ms = clock.now_ms()
    keys = AccessKey.objects.filter(
        expires_ms__gt=now_ms,
        expires_ms__lte=now_ms + people.WARNED_MS,
        created_ms__lt=F("expires_ms") - people.WARNED_MS,
        disabled_ms=None,
        replaced_by="",
        project__archived_ms=None,
    )
    return keys.select_related("user", "project").order_by("expires_ms")


def overview_context(scope: Scope, query: Mapping[str, str]) -> dict[str, Any]:
    """Return the keys to warn of on the overview: the reader's own, all for an owner."""
    del query
    if not scope.may("CreateAccessKey"):
        return {}
    keys = ending_keys().filter(project=scope.project)
    if not scope.may("PutMember"):
        keys = keys.filter(user=scope.principal.user)
    return {"ending_keys": list(keys[:_MOST_SHOWN])}


def announce_expiries() -> None:
    """Send one mail for each key that expires within a week."""
    if not settings.STATEYARD_MAIL:
        return
    for key in ending_keys().filter(warned_ms=None):
        _announce(key)


def _announce(key: AccessKey) -> None:
    """Send the mail for a key; a failed mail is sent by the next run.

    The row is marked first, so that only one of two concurrent leaders sends the notice.
    """
    recipients = _recipients(key)
    unannounced = AccessKey.objects.filter(pk=key.pk, warned_ms=None)
    if not recipients or write(lambda: unannounced.update(warned_ms=clock.now_ms())) != 1:
        return
    try:
        _message(key, recipients).send()
    except (OSError, SMTPException) as error:
        log.warning("cannot announce the expiry of a key", key_id=key.key_id, problem=str(error))
        write(lambda: AccessKey.objects.filter(pk=key.pk).update(warned_ms=None))


def _recipients(key: AccessKey) -> list[str]:
    """Return the mail address of the key's owner; for a program, of the project's owners."""
    if key.user.email:
        return [key.user.email]
    owners = Membership.objects.filter(project=key.project, role=Role.OWNER, user__is_active=True)
    addresses = owners.values_list("user__email", flat=True)
    return sorted({address for address in addresses if address})


def _message(key: AccessKey, recipients: list[str]) -> EmailMessage:
    ends = datetime.fromtimestamp((key.expires_ms or 0) / 1000, UTC)
    last_use = "never"
    if key.last_used_ms is not None:
        moment = datetime.fromtimestamp(key.last_used_ms / 1000, UTC)
        last_use = f"{moment:%Y-%m-%d %H:%M} UTC from {key.last_used_from} {key.last_used_client}"
    lines = [
        f"The access key {key.key_id} expires on {ends:%Y-%m-%d} at {ends:%H:%M} UTC.",
        "",
        f"Project: {key.project.name}",
        f"Owner: {key.user.get_username()}",
        f"Used by: {key.description or '-'}",
        f"Last used: {last_use}",
        "",
        "Rotate the key before that, and replace it wherever it is used:",
        f"{settings.STATEYARD_URL}/keys/",
    ]
    return EmailMessage(
        subject=f"Access key {key.key_id} expires on {ends:%Y-%m-%d}",
        body="\n".join(lines),
        to=recipients,
    )
