"""Models of log groups, and of the periods in which machines log to them; no log lines."""

from __future__ import annotations

from typing import ClassVar

from django.db import models

from console.models.people import Project


class LogGroup(models.Model):
    """A log group; lines from before ``created_ms`` are not in it."""

    project = models.ForeignKey(Project, on_delete=models.CASCADE, db_index=False)
    region = models.CharField(max_length=32)
    name = models.CharField(max_length=512)
    created_ms = models.BigIntegerField()
    deleted_ms = models.BigIntegerField(null=True)

    class Meta:
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["project", "region", "name"], name="one_group_a_name")
        ]

    def __str__(self) -> str:
        return self.name


class LogRoute(models.Model):
    """The log group of a machine's executions that started at ``since_ms`` or later.

    It holds until the machine's next route. By ARN, because logs outlive their machine. ``group``:
    a name, "" for none.
    """

    project = models.ForeignKey(Project, on_delete=models.CASCADE, db_index=False)
    region = models.CharField(max_length=32)
    machine_arn = models.CharField(max_length=256)
    since_ms = models.BigIntegerField()
    level = models.CharField(max_length=5, default="OFF")
    with_data = models.BooleanField(default=False)
    group = models.CharField(max_length=512, default="")

    class Meta:
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["machine_arn", "since_ms"], name="one_route_a_moment")
        ]
        indexes: ClassVar = [models.Index(fields=["project", "group"], name="route_by_group")]
