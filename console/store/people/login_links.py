"""One-time login links: find the user of a link, and use the link up."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

from console.db import clock
from console.db.writer import write
from console.models import LoginLink

if TYPE_CHECKING:
    from django.contrib.auth.models import User


def find_user(token: str) -> User | None:
    """Return the user of a login link; None if it is unknown, used or expired."""
    links = LoginLink.objects.select_related("user").filter(
        token_hash=_hashed(token), used_ms=None, expires_ms__gt=clock.now_ms()
    )
    link = links.first()
    return link.user if link is not None and link.user.is_active else None


def use_link(token: str) -> User | None:
    """Use up a link and return its user; None if it is invalid or already used."""
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
