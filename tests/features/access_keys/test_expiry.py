"""A key that expires within a week is announced: on the pages, and once by mail."""

from __future__ import annotations

from smtplib import SMTPServerDisconnected
from typing import TYPE_CHECKING, Any

import pytest
from django.core import mail
from django.core.mail import EmailMessage

from console import access
from console.db import clock
from console.db.audit import Actor
from console.features.access_keys import accounts, expiry, rotation
from console.models import AccessKey, Role
from console.store.people import people
from tests.console.store.helpers import PASS, create
from tests.console.web.helpers import text

if TYPE_CHECKING:
    from collections.abc import Callable

    from django.test import Client

    from console.models import Project

    SignIn = Callable[[str], Client]

BY = Actor("owner", "", "test")
DAY = 24 * 3_600_000


@pytest.fixture
def key(project: Project, settings: Any) -> AccessKey:
    """Return the key of a service account that was made for 90 days and has 6 left."""
    settings.STATEYARD_MAIL = "smtp://mail.example.com"
    owner = people.put_member(project, "ana", Role.OWNER, BY).user
    owner.email = "ana@example.com"
    owner.save()
    account = accounts.create_account(project, "ci", "operator", "", BY)
    row, _ = people.new_key(account.user, project, BY, None, "GitHub Actions")
    now_ms = clock.now_ms()
    AccessKey.objects.update(expires_ms=now_ms + 6 * DAY, created_ms=now_ms - 84 * DAY)
    row.refresh_from_db()
    return row


def test_the_owners_get_one_mail(key: AccessKey) -> None:
    """It has what a person needs to rotate the key, and no secret."""
    for _ in range(3):
        expiry.announce_expiries()
    assert len(mail.outbox) == 1
    message = mail.outbox[0]
    assert message.to == ["ana@example.com"]
    assert key.key_id in message.subject
    assert "Owner: ci/123456789012" in message.body
    assert "Used by: GitHub Actions" in message.body
    assert "Last used: never" in message.body
    assert access.secret_for(key.key_id) not in message.body


def test_a_person_gets_the_mail_of_their_own_key(key: AccessKey) -> None:
    """Nobody else does."""
    key.user.email = "ben@example.com"
    key.user.save()
    expiry.announce_expiries()
    assert [message.to for message in mail.outbox] == [["ben@example.com"]]


@pytest.mark.postgres_too
def test_a_mail_that_fails_is_sent_later(key: AccessKey, monkeypatch: pytest.MonkeyPatch) -> None:
    """Until then the pages tell."""

    def fail(_message: EmailMessage) -> int:
        raise SMTPServerDisconnected

    with monkeypatch.context() as broken:
        broken.setattr(EmailMessage, "send", fail)
        expiry.announce_expiries()
    assert mail.outbox == []
    expiry.announce_expiries()
    assert len(mail.outbox) == 1


@pytest.mark.postgres_too
@pytest.mark.parametrize(
    "change",
    [
        {"expires_ms": None},
        {"disabled_ms": 1},
        {"replaced_by": "AKIAOTHER"},
        {"days": 8},
        {"days": -1},
        {"created_days": 1},
    ],
    ids=str,
)
def test_other_keys_are_not_announced(key: AccessKey, change: dict[str, Any]) -> None:
    """No mail for a key that lives on, is disabled or replaced, is over, or is short-lived."""
    now_ms = clock.now_ms()
    if days := change.pop("days", 0):
        change["expires_ms"] = now_ms + days * DAY
    if days := change.pop("created_days", 0):
        change["created_ms"] = now_ms - days * DAY // 2
    AccessKey.objects.filter(pk=key.pk).update(**change)
    expiry.announce_expiries()
    assert mail.outbox == []
    assert not expiry.ending_keys().exists()


def test_without_a_mail_server_nothing_is_marked(key: AccessKey, settings: Any) -> None:
    """The mail goes out when there is one."""
    settings.STATEYARD_MAIL = ""
    expiry.announce_expiries()
    key.refresh_from_db()
    assert key.warned_ms is None


def test_the_pages_tell_until_the_key_is_rotated(
    project: Project, key: AccessKey, signed_in: SignIn
) -> None:
    """The overview tells an owner of every key, others of their own."""
    create(project, PASS)
    owner, viewer = signed_in("owner"), signed_in("viewer")
    assert key.key_id in text(owner.get("/"))
    assert "1 expires within a week" in " ".join(text(owner.get("/keys/")).split())
    assert key.key_id not in text(viewer.get("/"))
    rotation.rotate_key(project, key.key_id, BY)
    assert key.key_id not in text(owner.get("/"))
    assert "within a week" not in text(owner.get("/keys/"))
