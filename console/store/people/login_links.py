"""Let a person in by a link that works once; the database has only the hash of its token."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

from console.db import clock
from console.db.writer import write
from console.models import LoginLink

if TYPE_CHECKING:
    from django.contrib.auth.models import User


def find_user(token: str) -> User | None:
    """Return the user whom a link logs in; None if it is unknown, used or too old."""
    links = LoginLink.objects.select_related("user").filter(
        token_hash=_hashed(token), used_ms=None, expires_ms__gt=clock.now_ms()
    )
    link = links.first()
    return link.user if link is not None and link.user.is_active else None


def use_link(token: str) -> User | None:
    """Use a link up and return whom it lets in; None if somebody else was first, as above."""
    user = find_user(token)
    now_ms = clock.now_ms()
    # one statement without a join: of two who come at once, the second one's condition is checked
    # again on the row that the first one has changed
    fresh = LoginLink.objects.filter(token_hash=_hashed(token), used_ms=None, expires_ms__gt=now_ms)
    if user is None or write(lambda: fresh.update(used_ms=now_ms)) != 1:
        return None
    user.refresh_from_db()  # what a removal did meanwhile to the password ends the session, too
    return user


def _hashed(token: str) -> str:
    return hashlib.sha256(token.encode()).hexdigest()
