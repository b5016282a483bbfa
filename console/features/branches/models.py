"""Tables of branches, and of the access keys that their callers got."""

from __future__ import annotations

from typing import ClassVar

from django.db import models

from console.models.people import AccessKey, Project


class Branch(models.Model):
    """A project that is a copy of another one, for a branch of a repository.

    ``name``: the branch's, as git has it. ``expires_ms``: when it is archived. The row outlives a
    deleted ``parent``, so that the branch is deleted after it.
    """

    kept_by_reset = True  # without it the project would stay for ever

    project = models.OneToOneField(
        Project, on_delete=models.CASCADE, primary_key=True, related_name="branch"
    )
    parent = models.ForeignKey(
        Project, on_delete=models.DO_NOTHING, db_constraint=False, related_name="branches"
    )
    name = models.CharField(max_length=200)
    made_by = models.CharField(max_length=150)
    made_ms = models.BigIntegerField()
    expires_ms = models.BigIntegerField(db_index=True)

    class Meta:
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["parent", "name"], name="one_project_a_branch")
        ]

    def __str__(self) -> str:
        return self.name


class BranchKey(models.Model):
    """An access key of a branch, and the key of its parent that asked for it.

    The key of a branch ends with the key of the parent.
    """

    kept_by_reset = True  # as the keys are

    key = models.OneToOneField(AccessKey, on_delete=models.CASCADE, primary_key=True)
    project = models.ForeignKey(Project, on_delete=models.CASCADE, db_index=False)
    origin = models.CharField(max_length=32)

    class Meta:
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["project", "origin"], name="one_branch_key_a_key")
        ]

    def __str__(self) -> str:
        return self.origin
