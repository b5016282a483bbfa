"""Tables of quotas: what is left of a project's rates, and how often they were exceeded."""

from __future__ import annotations

from typing import ClassVar

from django.db import models

from console.models.people import Project


class TokenBucket(models.Model):
    """The tokens of a rate that were there at a moment."""

    project = models.ForeignKey(Project, on_delete=models.CASCADE)
    name = models.CharField(max_length=40)
    tokens = models.FloatField()
    at_ms = models.BigIntegerField()

    class Meta:
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["project", "name"], name="one_bucket_a_rate")
        ]


class ThrottledMinute(models.Model):
    """How often something of a state machine was held back in a minute.

    ``api``: the action that was refused, "" for state transitions, which were delayed.
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
