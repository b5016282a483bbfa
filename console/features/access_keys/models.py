"""Table of service accounts."""

from __future__ import annotations

from typing import ClassVar

from django.conf import settings
from django.db import models

from console.models.people import Project


class ServiceAccount(models.Model):
    """A program as a member of a project, without a sign-in.

    ``user``: the user with its membership and keys; its name is ``name/account id``.
    """

    kept_by_reset = True

    project = models.ForeignKey(Project, on_delete=models.CASCADE)
    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE)
    name = models.CharField(max_length=40)
    description = models.CharField(max_length=200, default="")
    created_by = models.CharField(max_length=150, default="")
    created_ms = models.BigIntegerField()

    class Meta:
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["project", "name"], name="one_service_account_per_name")
        ]

    def __str__(self) -> str:
        return self.name
