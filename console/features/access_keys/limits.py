"""Change the scope and expiry of an access key; its secret stays.

A person may change the limits of keys that they may create: their own keys; owners also the keys of
service accounts. A change applies to the next call of every process, and to waiting calls.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from console import access
from console.db import audit, clock, signals
from console.db.writer import write
from console.errors import ErrorCode, ServiceError, ValidationException
from console.store.people import people

if TYPE_CHECKING:
    from django.contrib.auth.models import User

    from console.models import AccessKey, Project
    from console.models.key_scope import KeyScope

_NO_LIMITS = "no limits"


def change_limits(
    project: Project,
    key_id: str,
    scope: KeyScope,
    expires_ms: int | None,
    actor: audit.Actor,
    by: User | None = None,
) -> AccessKey:
    """Set the scope and expiry of a key; return the key.

    ``by``: the requesting person, None for the operator's commands. Raise ResourceNotFound,
    AccessDeniedException, and ValidationException for an expiry in the past and for a key that has
    expired or was rotated.
    """

    def store() -> AccessKey:
        access.check_not_archived(people.lock_team(project))
        key = people.get_key(project, key_id)
        if by is not None:
            check_may_make(project, key, by)
        check_changeable(key)
        if expires_ms != key.expires_ms:
            people.check_expiry(expires_ms)
            key.warned_ms = None
        before = people.limits_in_words(key)
        key.scope, key.expires_ms = scope.as_text(), expires_ms
        key.save(update_fields=["scope", "expires_ms", "warned_ms"])
        words = (", ".join(each) or _NO_LIMITS for each in (people.limits_in_words(key), before))
        audit.record(project, actor, "LimitAccessKey", key_id, "{}; before: {}".format(*words))
        signals.publish(people.RIGHTS)
        return key

    return write(store)


def check_may_make(project: Project, key: AccessKey, by: User) -> None:
    """Raise AccessDeniedException unless a person may create keys for this key's owner.

    Runs inside a transaction. People create their own keys, owners also the keys of service
    accounts.
    """
    if key.user_id == by.pk:
        return
    people.lock_team(project, by)
    if key.user_id not in {user.pk for user in people.service_accounts(project)}:
        raise foreign_key(key)


def foreign_key(key: AccessKey) -> ServiceError:
    """Return the error for a person who tries to change another person's key."""
    return ServiceError(
        ErrorCode.AccessDeniedException,
        f"{key.key_id} is the key of a person: only {key.user.get_username()} rotates it and"
        " changes its limits",
    )


def check_changeable(key: AccessKey) -> None:
    """Raise ValidationException for a key that has expired or was rotated."""
    if key.replaced_by:
        raise ValidationException(
            f"{key.key_id} was rotated: change {key.replaced_by}, which replaces it"
        )
    if key.expires_ms is not None and key.expires_ms <= clock.now_ms():
        raise ValidationException(f"{key.key_id} has expired: create another key")
