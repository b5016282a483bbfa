"""Read the claims of an OpenID Connect provider: a person's identity, groups and roles."""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from console.models import Role
from console.store.people import people

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

EVERYBODY = "*"
"""The group, in tables of groups, of everybody who signs in at the provider."""
_RANK = {role.value: rank for rank, role in enumerate(Role)}
_NOT_IN_NAMES = re.compile(r"[^\w.@+-]+")


@dataclass(frozen=True, slots=True)
class Identity:
    """A person as described by a provider.

    ``subject``: their permanent id at the provider. ``names``: candidates for the user name, best
    first. ``roles``: project -> role. ``governed``: the projects whose members the provider
    determines. ``administers``: None if the provider does not determine administrators.
    """

    provider_id: str
    subject: str
    issuer: str
    names: tuple[str, ...]
    groups: tuple[str, ...]
    roles: Mapping[str, str]
    governed: frozenset[str]
    administers: bool | None

    @property
    def key(self) -> str:
        """Return the key of the account: a digest, because ids vary in length."""
        return account_key(self.issuer, self.subject)


def account_key(issuer: str, subject: str) -> str:
    """Return the key of the account for a subject of an issuer."""
    return hashlib.sha256(f"{issuer} {subject}".encode()).hexdigest()


def read_identity(
    provider_id: str, provider: Mapping[str, Any], claims: Mapping[str, Any]
) -> Identity:
    """Return the identity in verified claims. ``provider``: its settings."""
    groups = tuple(_read_groups(claims, provider.get("groups_claim", "groups")))
    table: Mapping[str, Mapping[str, str]] = provider.get("groups", {})
    administrators = provider.get("administrators", ())
    return Identity(
        provider_id,
        str(claims["sub"]),
        str(claims["iss"]),
        tuple(_list_names(claims, provider.get("name_claim", "preferred_username")))
        or (provider_id,),
        groups,
        _highest_roles(table, (EVERYBODY, *groups)),
        frozenset(project for roles in table.values() for project in roles),
        not set(administrators).isdisjoint(groups) if administrators else None,
    )


def same_groups(
    provider: Mapping[str, Any], partial: Mapping[str, Any], claims: Mapping[str, Any]
) -> bool:
    """Return whether the partial claims name the same groups as the whole claims; no if empty."""
    claim = provider.get("groups_claim", "groups")
    return bool(partial) and set(_read_groups(partial, claim)) == set(_read_groups(claims, claim))


def _read_groups(claims: Mapping[str, Any], claim: str) -> list[str]:
    """Return the groups in a claim: a list of texts, or one text.

    Dots lead into nested claims, as ``realm_access.roles``, unless a claim has the whole name. A
    provider's own group named ``*`` is ignored, because it would mean everybody.
    """
    value: Any = claims.get(claim)
    if value is None:
        value = claims
        for part in claim.split("."):
            value = value.get(part) if isinstance(value, dict) else None
    values = [value] if isinstance(value, str) else value
    if not isinstance(values, list):
        return []
    return [group for group in values if isinstance(group, str) and group != EVERYBODY]


def _highest_roles(
    table: Mapping[str, Mapping[str, str]], groups: tuple[str, ...]
) -> dict[str, str]:
    """Return project -> the highest role of the groups there."""
    roles: dict[str, str] = {}
    for group in groups:
        for project, role in table.get(group, {}).items():
            if project not in roles or _RANK[role] > _RANK[roles[project]]:
                roles[project] = role
    return roles


def _list_names(claims: Mapping[str, Any], name_claim: str) -> Iterator[str]:
    for claim in (name_claim, "preferred_username", "email", "name", "sub"):
        value = claims.get(claim)
        if isinstance(value, str):
            name = _NOT_IN_NAMES.sub("-", value.strip())[: people.LONGEST_NAME].strip("-")
            if name:
                yield name
