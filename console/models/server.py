"""Models of the server: facts shared by all processes, worker processes, readiness."""

from __future__ import annotations

from typing import ClassVar

from django.db import models


class ServerFact(models.Model):
    """A fact that all processes on this database must agree on."""

    name = models.CharField(max_length=40, primary_key=True)
    value = models.CharField(max_length=200)

    def __str__(self) -> str:
        return self.name


class Worker(models.Model):
    """A process that advances executions; alive while it renews its lease."""

    STOPS: ClassVar = "it stops"
    """The ``problem`` of a worker that is about to give its lease back."""

    name = models.CharField(max_length=40, primary_key=True)
    host = models.CharField(max_length=120)
    pid = models.IntegerField()
    version = models.CharField(max_length=20)
    started_ms = models.BigIntegerField()
    lease_until_ms = models.BigIntegerField()
    steps = models.BigIntegerField(default=0)
    fenced = models.BigIntegerField(default=0)  # steps that came too late and wrote nothing
    problem = models.CharField(max_length=200, default="", db_default="")  # what it lacks

    class Meta:
        indexes: ClassVar = [models.Index(fields=["lease_until_ms"], name="worker_by_lease")]

    def __str__(self) -> str:
        return self.name


class ReadinessMinute(models.Model):
    """The number of readiness checks of a minute, and how many found the server ready.

    ``reason``: why the last failed check found it not ready. A minute without a row had no check.
    """

    minute_ms = models.BigIntegerField(primary_key=True)
    looks = models.IntegerField()
    ready = models.IntegerField()
    reason = models.CharField(max_length=200, default="")

    def __str__(self) -> str:
        return str(self.minute_ms)
