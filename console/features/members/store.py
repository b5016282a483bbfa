"""Invite people to a project by a one-time link with a role and an expiry.

The address of the link contains a token; the database has its hash. The link shows a form, and
sending the form makes the person a member, with a password of their own.

An invitation is void once its maker is not an owner any more, the person has become a member by
other means, or another invitation for the same name replaces it. Nobody can take over an account by
it: a name of a person in another project joins only while that person is signed in, and keeps the
password.
"""

from __future__ import annotations

import hashlib
import secrets
from typing import TYPE_CHECKING

from django.conf import settings
from django.contrib.auth import get_user_model

from console import access
from console.db import audit, clock, signals
from console.db.writer import write
from console.errors import ErrorCode, ServiceError, ValidationException
from console.models import Invitation, Membership
from console.store.people import names, people

if TYPE_CHECKING:
    from django.contrib.auth.models import User
    from django.db.models import QuerySet

    from console.models import Project

HOURS = (1, 24, 168)
"""The choices of an invitation's duration, in hours."""
_MOST = 100
_HOUR_MS = 3_600_000


class InvitationClosed(Exception):
    """The link is not valid (any more)."""


class OtherAccount(Exception):
    """The invitation belongs to another account than the signed-in user's."""


def create_invitation(
    project: Project, name: str, role: str, hours: int, actor: audit.Actor, by: User | None = None
) -> tuple[Invitation, str]:
    """Invite a person; return the invitation and its token, which is not stored.

    An open invitation for the same name ends. ``hours``: one of ``HOURS``. ``by``: the owner who
    asks, as for ``people.put_member``. Raise ValidationException for an invalid name, role or time,
    for a member or a branch, and if there are too many; AccessDeniedException if ``by`` is no
    owner.
    """
    if not settings.STATEYARD_PASSWORDS:
        raise ValidationException("This server has no passwords: add a person by name instead.")
    people.check_name_and_role(name, role)
    people.check_own_members(project)
    if hours not in HOURS:
        raise ValidationException(f"hours must be one of {HOURS}, not {hours!r}")
    token = secrets.token_urlsafe(32)

    def store() -> Invitation:
        people.lock_team(project, by)
        now_ms = clock.now_ms()
        if Membership.objects.filter(project=project, user__username=name).exists():
            raise ValidationException(f"{name} is a member already.")
        names.check_new_name(name, people.names_of(project))
        Invitation.objects.filter(project=project, expires_ms__lte=now_ms).delete()
        Invitation.objects.filter(project=project, name=name, used_ms=None).delete()
        if open_ones(project).count() >= _MOST:
            raise ValidationException(f"At most {_MOST} open invitations: revoke one.")
        audit.record(project, actor, "CreateInvitation", name, f"role {role}, for {hours} h")
        return Invitation.objects.create(
            project=project,
            token_hash=_hashed(token),
            name=name,
            role=role,
            made_by=actor.name,
            made_ms=now_ms,
            expires_ms=now_ms + hours * _HOUR_MS,
        )

    return write(store), token


def revoke_invitation(
    project: Project, number: int, actor: audit.Actor, by: User | None = None
) -> Invitation:
    """End an open invitation; raise ResourceNotFound or AccessDeniedException."""

    def store() -> Invitation:
        people.lock_team(project, by)
        invitation = open_ones(project).filter(pk=number).first()
        if invitation is None:
            raise ServiceError(
                ErrorCode.ResourceNotFound, "There is no such open invitation any more."
            )
        Invitation.objects.filter(pk=invitation.pk).delete()
        audit.record(project, actor, "RevokeInvitation", invitation.name, f"role {invitation.role}")
        return invitation

    return write(store)


def open_ones(project: Project) -> QuerySet[Invitation]:
    """Return the invitations that can be accepted, by name."""
    invitations = Invitation.objects.filter(project=project, used_ms=None)
    return invitations.filter(expires_ms__gt=clock.now_ms()).order_by("name")


def find_invitation(token: str) -> Invitation:
    """Return the open invitation of a token; raise ``InvitationClosed``."""
    invitation = (
        Invitation.objects.select_related("project")
        .filter(token_hash=_hashed(token), used_ms=None, expires_ms__gt=clock.now_ms())
        .first()
    )
    if invitation is None or not access.is_still_allowed(
        invitation.made_by, invitation.project, "CreateInvitation"
    ):
        raise InvitationClosed
    return invitation


def has_account(invitation: Invitation) -> bool:
    """Return whether the invited person has an account already; nobody else may accept then.

    A person has an account if they belong to a project or sign in at a provider.
    """
    if Membership.objects.filter(user__username=invitation.name).exists():
        return True
    users = get_user_model().objects.filter(username=invitation.name)
    return bool(people.provider_accounts(users))


def accept_invitation(token: str, encoded: str, me: User | None, request_id: str = "") -> User:
    """Make the invited person a member, once, and return the user.

    ``encoded``: the new password, from ``make_password``; "" for a person with an account, who must
    be signed in as ``me``. Raise InvitationClosed or OtherAccount.
    """
    project = find_invitation(token).project

    def store() -> User:
        people.lock_team(project)
        # Read again, under the locks: somebody may have used or revoked the invitation, and another
        # project may have added the person, whose account it would open to whoever has the link.
        invitation = find_invitation(token)
        user = people.locked_user(invitation.name)
        with_account = has_account(invitation)
        if with_account and (me is None or me.pk != user.pk):
            raise OtherAccount
        fresh = Invitation.objects.filter(pk=invitation.pk, used_ms=None)
        if not (with_account or (encoded and settings.STATEYARD_PASSWORDS)) or not user.is_active:
            raise InvitationClosed
        if fresh.update(used_ms=clock.now_ms()) != 1:
            raise InvitationClosed
        actor = audit.Actor(invitation.name, request_id=request_id)
        people.clear_former_membership(project, user, actor)
        if not with_account:
            user.password = encoded
            user.save(update_fields=["password"])
        Membership.objects.create(project=project, user=user, role=invitation.role)
        people.put_into_branches(project, user, invitation.role)
        reason = f"role {invitation.role}, invited by {invitation.made_by}"
        audit.record(project, actor, "AcceptInvitation", invitation.name, reason)
        signals.publish(people.RIGHTS)
        return user

    return write(store)


def unsaved_user(invitation: Invitation) -> User:
    """Return the future user, to check a new password against."""
    return get_user_model()(username=invitation.name)


def _hashed(token: str) -> str:
    return hashlib.sha256(token.encode()).hexdigest()
