"""Table of projects that are being deleted."""

from __future__ import annotations

from django.db import models

from console.models.people import Project


class ProjectDeletion(models.Model):
    """A deletion in progress; its row is deleted with the project.

    ``total``: the executions of the project when it began; ``removed``: how many of them are gone.
    ``runner``: the process that works on it, which others leave alone until ``lease_until_ms``.
    """

    kept_by_reset = True  # without it the project would stay, without its members

    project = models.OneToOneField(
        Project, on_delete=models.CASCADE, primary_key=True, related_name="deletion"
    )
    actor = models.CharField(max_length=150, default="")
    began_ms = models.BigIntegerField()
    total = models.BigIntegerField()
    removed = models.BigIntegerField(default=0)
    runner = models.CharField(max_length=40, default="")
    lease_until_ms = models.BigIntegerField(default=0)

    def __str__(self) -> str:
        return f"{self.removed} of {self.total}"
