"""Second factors of sign-in: an authenticator app (TOTP) and recovery codes.

django-allauth provides tables, secrets and computation. It remembers used codes in a cache of each
process, so two web processes would accept the same code. Here the row stores the last accepted
period of 30 seconds, and only codes of later periods are accepted; the row's lock lets one of two
requests with the same code through.

Accounts of a sign-in provider have no second factor here: the provider asks for it.
"""

from __future__ import annotations

import base64
from dataclasses import dataclass
from typing import TYPE_CHECKING

from allauth.core.internal.cryptokit import compare_user_code
from allauth.mfa.adapter import get_adapter
from allauth.mfa.models import Authenticator
from allauth.mfa.recovery_codes.internal.auth import RecoveryCodes
from allauth.mfa.totp.internal import auth
from django.conf import settings
from django.contrib.auth import get_user_model
from django.db.models import Exists, OuterRef
from django.utils import timezone

from console.db import audit, signals
from console.db.writer import write
from console.features.account import record
from console.features.account.models import SecondFactorRule
from console.models import Membership
from console.store.people import people

if TYPE_CHECKING:
    from datetime import datetime

    from django.contrib.auth.models import User
    from django.db.models import QuerySet

    from console.models import Project

_TOTP, _RECOVERY = Authenticator.Type.TOTP, Authenticator.Type.RECOVERY_CODES
RECOVERY_CODE = "recovery code"
_LAST = "last_period"
"""Key in an authenticator's data: the period of the last accepted code."""


@dataclass(frozen=True, slots=True)
class SecondFactor:
    """A person's second factor. ``codes``: the number of unused recovery codes."""

    since: datetime
    codes: int


def find_second_factor(user: User) -> SecondFactor | None:
    """Return a person's second factor, None if they have none."""
    rows = {row.type: row for row in Authenticator.objects.filter(user=user)}
    if _TOTP not in rows:
        return None
    totp = rows[_TOTP]
    codes = len(RecoveryCodes(rows[_RECOVERY]).get_unused_codes()) if _RECOVERY in rows else 0
    return SecondFactor(totp.created_at, codes)


def has_second_factor(user: User) -> bool:
    """Return whether a person has a second factor."""
    return bool(Authenticator.objects.filter(user=user, type=_TOTP).exists())


def make_secret() -> str:
    """Return a new secret for an app."""
    return str(auth.generate_totp_secret())


def encrypt(secret: str) -> str:
    """Return an encrypted secret, to keep it in a session until it is confirmed."""
    return str(get_adapter().encrypt(secret))


def decrypt(encrypted: str) -> str:
    """Return the secret that ``encrypt`` encrypted."""
    return str(get_adapter().decrypt(encrypted))


def draw_qr_code(user: User, secret: str) -> str:
    """Return the QR code for an app as a ``data:`` URL."""
    adapter = get_adapter()
    svg = adapter.build_totp_svg(adapter.build_totp_url(user, secret))
    return "data:image/svg+xml;base64," + base64.b64encode(svg.encode()).decode()


def activate(user: User, secret: str, code: str, actor: record.Actor) -> list[str] | None:
    """Set up a person's authenticator app; return their recovery codes.

    Return None if the code does not match the secret, or if another browser has set one up first.
    """

    def store() -> list[str] | None:
        _lock(user)
        period = _period_of(secret, code)
        if period is None or has_second_factor(user):
            return None
        totp = auth.TOTP.activate(user, secret).instance
        totp.data[_LAST] = period
        totp.save(update_fields=["data"])
        Authenticator.objects.filter(user=user, type=_RECOVERY).delete()
        codes = RecoveryCodes.activate(user).generate_codes()
        record.record_for(user, actor, "EnableSecondFactor")
        return list(codes)

    return write(store)


def use_code(user: User, code: str) -> str:
    """Use up a code; return its kind, ``authenticator code`` or ``recovery code``, "" if wrong.

    A used code is wrong.
    """

    def store() -> str:
        _lock(user)
        rows = {row.type: row for row in Authenticator.objects.filter(user=user)}
        totp = rows.get(_TOTP)
        if totp is None:
            return ""
        period = _period_of(decrypt(totp.data["secret"]), code)
        if period is not None and period > totp.data.get(_LAST, -1):
            totp.data[_LAST] = period
            totp.last_used_at = timezone.now()
            totp.save(update_fields=["data", "last_used_at"])
            return "authenticator code"
        if _RECOVERY in rows and RecoveryCodes(rows[_RECOVERY]).validate_code(code):
            return RECOVERY_CODE
        return ""

    return write(store)


def renew_recovery_codes(user: User, actor: record.Actor) -> list[str]:
    """Replace all recovery codes of a person; return the new codes."""

    def store() -> list[str]:
        _lock(user)
        if not has_second_factor(user):
            return []
        Authenticator.objects.filter(user=user, type=_RECOVERY).delete()
        codes = RecoveryCodes.activate(user).generate_codes()
        record.record_for(user, actor, "CreateRecoveryCodes")
        return list(codes)

    return write(store)


def remove(user: User, actor: record.Actor, action: str = "DisableSecondFactor") -> bool:
    """Remove a person's second factor and recovery codes; return False if they had none."""

    def store() -> bool:
        _lock(user)
        removed, _ = Authenticator.objects.filter(user=user).delete()
        if removed:
            record.record_for(user, actor, action)
        return bool(removed)

    return write(store)


def forget_closed_account(user: User) -> None:
    """Delete the second factor of a closed account."""
    Authenticator.objects.filter(user=user).delete()


def _lock(user: User) -> None:
    """Lock a person's second factor for this transaction."""
    get_user_model().objects.select_for_update(no_key=True).get(pk=user.pk)


def _period_of(secret: str, code: str) -> int | None:
    """Return the period of 30 seconds to which a code belongs, None for a wrong code.

    Clocks of phones differ, so the previous and the next period are accepted, too.
    """
    for period in auth.yield_hotp_counters_from_time():
        expected = auth.format_hotp_value(auth.hotp_value(secret, period))
        if compare_user_code(actual=code, expected=expected):
            return int(period)
    return None


# -- who must have one -----------------------------------------------------------------------------


def add_rule(memberships: QuerySet[Membership]) -> QuerySet[Membership]:
    """Return memberships with whether their project requires a second factor."""
    rules = SecondFactorRule.objects.filter(project=OuterRef("project_id"))
    return memberships.annotate(needs_second_factor=Exists(rules))


def must_set_up(user: User, *, required: bool) -> bool:
    """Return whether a person still needs a second factor. ``required``: by a project."""
    if not (required or settings.STATEYARD_REQUIRE_SECOND_FACTOR) or has_second_factor(user):
        return False
    return not people.provider_accounts([user])


def is_required(user: User) -> bool:
    """Return whether the server or a project requires a second factor of a person."""
    if settings.STATEYARD_REQUIRE_SECOND_FACTOR:
        return True
    return SecondFactorRule.objects.filter(project__membership__user=user).exists()


def is_required_in(project: Project) -> bool:
    """Return whether a project's own setting requires a second factor."""
    return SecondFactorRule.objects.filter(project=project).exists()


def require_in(project: Project, *, required: bool, actor: record.Actor, by: User) -> None:
    """Set whether a project requires a second factor of its members.

    ``by``: the requesting owner. Raise AccessDeniedException if they are no longer an owner.
    """

    def store() -> None:
        people.lock_team(project, by)
        rule = SecondFactorRule.objects.filter(project=project)
        if rule.exists() == required:
            return
        if required:
            SecondFactorRule.objects.create(project=project)
        else:
            rule.delete()
        audit.record(project, actor, "RequireSecondFactor", project.name, str(required).lower())
        signals.publish(people.RIGHTS)

    write(store)


def members_without(project: Project) -> list[str]:
    """Return the names of members who sign in here without a second factor."""
    members = Membership.objects.filter(project=project).select_related("user")
    users = [member.user for member in members.order_by("user__username")]
    protected = set(
        Authenticator.objects.filter(user__in=users, type=_TOTP).values_list("user_id", flat=True)
    )
    elsewhere = people.provider_accounts(users)
    return [
        user.get_username()
        for user in users
        if user.has_usable_password() and user.pk not in protected | elsewhere
    ]
