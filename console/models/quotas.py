"""Models of quotas: token buckets of a project's rates, and counts of throttled calls."""

from __future__ import annotations

from typing import ClassVar

from django.db import models

from console.models.people import Project


class TokenBucket(models.Model):
    """A token bucket of a project's rate: its tokens at a moment."""

    project = models.ForeignKey(Project, on_delete=models.CASCADE)
    name = models.CharField(max_length=40)
    tokens = models.FloatField()
    at_ms = models.BigIntegerField()

    class Meta:
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["project", "name"], name="one_bucket_a_rate")
        ]


class ThrottledMinute(models.Model):
    """The number of throttled calls or transitions of a state machine in a minute.

    ``api``: the refused action, "" for delayed state transitions.
    """

    project = models.ForeignKey(Project, on_delete=models.CASCADE)
    state_machine_arn = models.CharField(max_length=256)
    api = models.CharField(max_length=40, default="")
    minute_ms = models.BigIntegerField()
    count = models.IntegerField(default=0)

    class Meta:
        constraints: ClassVar = [
            models.UniqueConstraint(
                fields=["project", "state_machine_arn", "api", "minute_ms"],
                name="one_count_a_minute",
            )
        ]
