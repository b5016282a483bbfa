"""The tables of the sign-in: roles of groups, followed people, and sessions of providers."""

from __future__ import annotations

from typing import ClassVar

from django.conf import settings
from django.db import models

from console.models import Project

ADMINISTRATOR = "administrator"
"""The role of a group without a project: its people administer the server."""


class GroupRole(models.Model):
    """A group of a provider has a role in a project, or administers the server.

    ``project``: None for the server. ``group``: as the claim names it; ``*`` is everybody.
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

    ``token``: the sealed refresh token of the last sign-in, "" if there is none: nobody is asked.
    ``by_userinfo``: the userinfo alone names the groups. ``due_ms``: when to ask next.
    ``stopped_ms``: since when the access of the person waits for their next sign-in.
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
    """A session from a provider. ``sid``: the provider's id of the session, or ""."""

    kept_by_reset = True

    session_key = models.CharField(max_length=40, primary_key=True)
    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE)
    provider_id = models.CharField(max_length=32)
    sid = models.CharField(max_length=255, default="")
    began_ms = models.BigIntegerField()

    def __str__(self) -> str:
        return f"session of {self.user_id} at {self.provider_id}"


class SpentLogoutToken(models.Model):
    """A logout token that counts no more. ``until_ms``: when it is too old anyway."""

    kept_by_reset = True

    digest = models.CharField(max_length=64, primary_key=True)
    until_ms = models.BigIntegerField(db_index=True)

    def __str__(self) -> str:
        return self.digest
