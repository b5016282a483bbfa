"""Tables of sign-in: roles of groups, followed people, and sessions of providers."""

from __future__ import annotations

from typing import ClassVar

from django.conf import settings
from django.db import models

from console.models import Project

ADMINISTRATOR = "administrator"
"""The role of a group without a project: its members administer the server."""


class GroupRole(models.Model):
    """A role of a provider's group in a project, or as administrators of the server.

    ``project``: None for the server. ``group``: as in the claim; ``*`` is everybody.
    """

    kept_by_reset = True  # people set it

    provider_id = models.CharField(max_length=32)
    group = models.CharField(max_length=255)
    project = models.ForeignKey(Project, null=True, on_delete=models.CASCADE)
    role = models.CharField(max_length=16)

    class Meta:
        constraints: ClassVar = [
            models.UniqueConstraint(
                fields=["provider_id", "group", "project"], name="group_role_of_project"
            ),
            models.UniqueConstraint(
                fields=["provider_id", "group"],
                condition=models.Q(project=None),
                name="group_role_of_server",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.group} of {self.provider_id}: {self.role}"


class FollowedPerson(models.Model):
    """A person who signed in at a provider, and until when it has confirmed their groups.

    ``token``: the encrypted refresh token of the last sign-in, "" without one. ``by_userinfo``:
    only the userinfo has the groups. ``due_ms``: the next refresh. ``stopped_ms``: since when
    access is suspended until the next sign-in.
    """

    kept_by_reset = True

    user = models.OneToOneField(
        settings.AUTH_USER_MODEL,
        on_delete=models.CASCADE,
        primary_key=True,
        related_name="followed",
    )
    provider_id = models.CharField(max_length=32)
    token = models.TextField(default="")
    by_userinfo = models.BooleanField(default=False)
    confirmed_ms = models.BigIntegerField()
    due_ms = models.BigIntegerField(db_index=True)
    stopped_ms = models.BigIntegerField(null=True)

    def __str__(self) -> str:
        return f"{self.user_id} of {self.provider_id}"


class ProviderSession(models.Model):
    """A session begun by a provider. ``sid``: the provider's id of the session, or ""."""

    kept_by_reset = True

    session_key = models.CharField(max_length=40, primary_key=True)
    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE)
    provider_id = models.CharField(max_length=32)
    sid = models.CharField(max_length=255, default="")
    began_ms = models.BigIntegerField()

    def __str__(self) -> str:
        return f"session of {self.user_id} at {self.provider_id}"


class SpentLogoutToken(models.Model):
    """A used logout token. ``until_ms``: when it expires."""

    kept_by_reset = True

    digest = models.CharField(max_length=64, primary_key=True)
    until_ms = models.BigIntegerField(db_index=True)

    def __str__(self) -> str:
        return self.digest
