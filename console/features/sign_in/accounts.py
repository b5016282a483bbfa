"""Find or create a person's account, and update their memberships from their groups.

An account belongs to a subject (``sub``) of an issuer at a provider. If two providers know the same
person or e-mail address, the person has two accounts. A provider never signs in to an account of
another provider, because it could claim any e-mail address.

A provider has a table that maps groups to roles in projects. Each sign-in updates the memberships
in the projects of the table. A person without a group for such a project is removed from it,
together with their access keys, even if they were its last owner. Memberships in other projects are
not changed. After the last row of a project is deleted on the page *Sign-in*, the memberships that
its rows granted are removed at the next sign-in or refresh.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import structlog
from allauth.socialaccount.models import SocialAccount
from django.contrib.auth import get_user_model

from console import access
from console.config import logging_setup
from console.db import audit
from console.db.writer import write
from console.errors import ServiceError
from console.features.sign_in import groups
from console.features.sign_in.claims import account_key, read_identity
from console.models import Invitation, Membership, Project, Role
from console.store.people import names, people

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from django.contrib.auth.models import User

    from console.features.sign_in.claims import Identity

_MOST_NAMESAKES = 100
_NO_GROUP, _CLOSED = "no group with access", "the account is closed"
_WORDS = {
    _NO_GROUP: "None of your groups has access to a project of this server.",
    _CLOSED: "Your account on this server is closed.",
}
"""Reason of a refusal in the audit -> message for the person."""
log = structlog.get_logger(__name__)


class NoAccess(Exception):
    """The provider signed the person in, but they have no access to this server."""


class OtherSubject(Exception):
    """The claims do not belong to the account."""


def admit(provider_id: str, claims: Mapping[str, Any]) -> User:
    """Return the account of a person, created at their first sign-in, with current roles.

    ``claims``: verified claims of the ID token and userinfo. Raise ``NoAccess`` for a person
    without a project, for a closed account, and if every name for a new account is taken.
    """

    def store() -> tuple[User | None, str]:
        identity, user, refusal = _settle(provider_id, claims)
        _warn_of_missing(identity)
        if refusal:
            name = user.get_username() if user else identity.names[0]
            words = f"by {provider_id}: {refusal}"
            audit.record(access.default_project(), _actor(identity), "RefuseSignIn", name, words)
        return user, refusal

    user, refusal = write(store)  # a refusal keeps the changes: memberships stay removed
    if user is None or refusal:
        raise NoAccess(_WORDS[refusal])
    user.refresh_from_db()  # a removal may have changed the password's hash, which sessions carry
    return user


def follow(provider_id: str, claims: Mapping[str, Any], user_id: int) -> str:
    """Update the roles of a person from verified claims; return why access ended, else "".

    Runs inside the caller's transaction. Raise ``OtherSubject`` if the claims do not belong to the
    account of ``user_id``.
    """
    account = _find_account(provider_id, account_key(str(claims["iss"]), str(claims["sub"])))
    if account is None or account.user_id != user_id:
        raise OtherSubject
    if _is_settled(provider_id, claims, account):
        return ""
    _, _, refusal = _settle(provider_id, claims)
    return refusal


def _is_settled(provider_id: str, claims: Mapping[str, Any], account: SocialAccount) -> bool:
    """Return whether a person has the roles of their claims already, without a lock.

    Everybody is refreshed three times a minute: locks on all projects would be held all the time.
    """
    user, former = account.user, account.extra_data
    projects = groups.governed_projects(provider_id, former.get("projects", ()), locked=False)
    provider, of_table = groups.effective_provider(provider_id, projects.values())
    identity = read_identity(provider_id, provider, claims)
    memberships = dict(Membership.objects.filter(user=user).values_list("project_id", "role"))
    roles = {project.pk: identity.roles.get(name) for name, project in projects.items()}
    return (
        user.is_active
        and bool(identity.administers) == user.is_superuser
        and (user.is_superuser or bool(memberships))
        and former == _account_data(identity, of_table, projects)
        and all(memberships.get(number) == role for number, role in roles.items())
    )


def _settle(provider_id: str, claims: Mapping[str, Any]) -> tuple[Identity, User | None, str]:
    """Return the identity, its account (or None), and the reason of a refusal or ""."""
    key = account_key(str(claims["iss"]), str(claims["sub"]))
    account = _find_account(provider_id, key)
    former = {} if account is None else account.extra_data
    projects = groups.governed_projects(provider_id, former.get("projects", ()))
    provider, of_table = groups.effective_provider(provider_id, projects.values())
    identity = read_identity(provider_id, provider, claims)
    account = _find_account(provider_id, key)  # again: the lock keeps others from creating it
    if account is None:
        if not identity.administers and not {*identity.roles} & {*projects}:
            return identity, None, _NO_GROUP
        user = get_user_model().objects.create_user(_free_name(identity, projects))
        account = SocialAccount(user=user, provider=provider_id, uid=key)
    user = account.user
    if not user.is_active:
        return identity, user, _CLOSED
    if identity.administers is None and former.get("administers"):
        identity = replace(identity, administers=False)  # the row that appointed them is removed
    account.extra_data = _account_data(identity, of_table, projects)
    account.save()
    _follow_groups(user, identity, projects)  # also in projects of rows that are removed
    if not user.is_superuser and not Membership.objects.filter(user=user).exists():
        return identity, user, _NO_GROUP
    return identity, user, ""


def _find_account(provider_id: str, key: str) -> SocialAccount | None:
    accounts = SocialAccount.objects.select_related("user")
    return accounts.filter(provider=provider_id, uid=key).first()


def _account_data(
    identity: Identity, of_table: frozenset[str], projects: Mapping[str, Project]
) -> dict[str, Any]:
    """Return the data stored with an account: its claims, projects and administrator flag."""
    return {
        "iss": identity.issuer,
        "sub": identity.subject,
        "groups": [*identity.groups],
        "projects": [projects[name].pk for name in identity.roles if name in of_table],
        "administers": bool(identity.administers),
    }


def _warn_of_missing(identity: Identity) -> None:
    projects = Project.objects.filter(name__in=identity.governed)
    missing = sorted(identity.governed - {*projects.values_list("name", flat=True)})
    if missing:
        log.warning("groups name missing projects", provider=identity.provider_id, names=missing)


def _follow_groups(user: User, identity: Identity, projects: dict[str, Project]) -> None:
    """Add, change and remove memberships, so that they match the roles of the identity."""
    name, actor = user.get_username(), _actor(identity)
    if identity.administers is not None and identity.administers != user.is_superuser:
        people.set_administrator(name, administers=identity.administers, actor=actor)
        user.is_superuser = identity.administers
    memberships = {row.project_id: row for row in Membership.objects.filter(user=user)}
    for project_name, project in projects.items():
        role, membership = identity.roles.get(project_name), memberships.get(project.pk)
        if role is None and membership is not None:
            people.remove_member(project, name, actor, needs_owner=False)
        elif role is not None and (membership is None or membership.role != role):
            try:
                people.put_member(project, name, role, actor, needs_owner=False)
            except ServiceError as error:  # the name looks like that of another member
                log.warning("cannot add a member", project=project_name, reason=error.message)


def _free_name(identity: Identity, projects: dict[str, Project]) -> str:
    """Return the first free user name: unused, not in an invitation, unlike other names."""
    target = [project for name, project in projects.items() if name in identity.roles]
    others = set().union(*(people.names_of(project) for project in target))
    for name in _candidates(identity):
        try:
            people.check_name_and_role(name, Role.VIEWER)
            names.check_new_name(name, others)
        except ServiceError:
            continue
        is_taken = get_user_model().objects.filter(username__iexact=name).exists()
        if not is_taken and not Invitation.objects.filter(name__iexact=name, used_ms=None).exists():
            return name
    raise NoAccess("There are too many people of this name.")


def _candidates(identity: Identity) -> Iterator[str]:
    """Yield user names: per claim, the name itself, then ``name@provider``, ``name2@provider``."""
    for name in identity.names:
        yield name
        for number in range(1, _MOST_NAMESAKES):
            suffix = f"{number if number > 1 else ''}@{identity.provider_id}"
            yield f"{name.partition('@')[0][: people.LONGEST_NAME - len(suffix)]}{suffix}"


def _actor(identity: Identity) -> audit.Actor:
    return audit.Actor(f"provider {identity.provider_id}", request_id=logging_setup.request_id())
