"""Tables of branches and of their access keys."""

from __future__ import annotations

from typing import ClassVar

from django.db import models

from console.models.people import AccessKey, Project


class Branch(models.Model):
    """A project that is a copy of another project, for a branch of a repository.

    ``name``: the name of the branch in git. ``expires_ms``: when the project is archived. The row
    outlives a deleted ``parent``, so that the branch is deleted after it.
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
    """An access key of a branch, created for a caller with a key of the parent.

    It ends with the parent's key.
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
