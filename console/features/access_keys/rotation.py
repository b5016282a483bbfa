"""Rotate an access key: create a successor; both keys work for a day.

A secret is derived from its key's id, so a new secret needs a new key. The successor has the same
owner, description, scope and lifetime.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from console import access
from console.db import audit, clock, signals
from console.db.writer import write
from console.errors import ValidationException
from console.features.access_keys import limits
from console.models.key_scope import KeyScope
from console.store.people import people

if TYPE_CHECKING:
    from django.contrib.auth.models import User

    from console.models import AccessKey, Project

OVERLAP_MS = 24 * 3_600_000
"""The time for which the old key continues to work."""


def rotate_key(
    project: Project, key_id: str, actor: audit.Actor, by: User | None = None
) -> tuple[AccessKey, str]:
    """Rotate a key; return the new key and its secret, which is shown only once.

    ``by``: the requesting person, None for the operator's commands. People rotate their own keys,
    owners also the keys of service accounts. Raise ResourceNotFound, AccessDeniedException, and
    ValidationException for a key that is disabled or was rotated.
    """

    def store() -> AccessKey:
        access.check_not_archived(people.lock_team(project))
        old = people.get_key(project, key_id)
        if by is not None:
            limits.check_may_make(project, old, by)
        _check_rotatable(old)
        now_ms = clock.now_ms()
        ends_ms = old.expires_ms
        new = access.create_access_key(
            old.user,
            project,
            old.description,
            scope=KeyScope.of_text(old.scope),
            expires_ms=None if ends_ms is None else now_ms + ends_ms - old.created_ms,
        )
        overlap_ms = now_ms + OVERLAP_MS
        old.expires_ms = overlap_ms if ends_ms is None else min(ends_ms, overlap_ms)
        old.replaced_by = new.key_id
        old.save(update_fields=["expires_ms", "replaced_by"])
        audit.record(project, actor, "RotateAccessKey", key_id, f"replaced by {new.key_id}")
        signals.publish(people.RIGHTS)
        return new

    new = write(store)
    return new, access.secret_for(new.key_id)


def _check_rotatable(key: AccessKey) -> None:
    if key.replaced_by:
        raise ValidationException(
            f"{key.key_id} was rotated already: {key.replaced_by} replaces it"
        )
    if key.disabled_ms is not None:
        raise ValidationException(f"{key.key_id} is disabled: enable it, or create another key")
