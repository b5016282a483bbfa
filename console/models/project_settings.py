"""The model of project settings, which owners change on pages."""

from __future__ import annotations

from typing import ClassVar

from django.db import models

from console.models.people import Project


class ProjectSetting(models.Model):
    """A setting of a project. Only ``console.db.project_settings`` reads and writes it.

    ``kind``: such as ``target``; ``name``: the setting's name in its kind, "" if there is only one.
    ``value``: JSON. ``sealed``: its secrets, encrypted (``console.db.sealing``); "" without any.
    ``version``: counts its changes.
    """

    project = models.ForeignKey(Project, on_delete=models.CASCADE)
    kind = models.CharField(max_length=40)
    name = models.CharField(max_length=256, default="")
    value = models.TextField()
    sealed = models.TextField(default="")
    version = models.IntegerField(default=1)
    changed_ms = models.BigIntegerField()
    changed_by = models.CharField(max_length=150)

    class Meta:
        constraints: ClassVar = [
            models.UniqueConstraint(
                fields=["project", "kind", "name"], name="one_setting_per_name"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.kind} {self.name}".rstrip()
