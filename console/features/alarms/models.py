"""Tables of alarms and of changes of their states."""

from __future__ import annotations

from typing import ClassVar

from django.db import models

from console.models.machines import StateMachine
from console.models.people import Project
from console.statuses import AlarmComparison, AlarmKind, AlarmState, MissingData


class Alarm(models.Model):
    """An alarm: settings and current state.

    ``machine``: the state machine that it watches; null for metrics of other things. ``period_s``:
    the period of a metric; for other kinds the time that the alarm looks back, or the longest
    allowed time. ``threshold``: for a metric in its unit, for other kinds in percent. ``minimum``:
    the number of executions below which the state is INSUFFICIENT_DATA. ``state_name``: the watched
    state, "" for all.

    ``resource`` and ``also``: the series of a metric, as in ``metrics.samples.Series``;
    ``dimensions``: the same as the request had it, JSON.

    ``state_ms``: the time of the last change of state; a change is written only if the alarm is
    unchanged since it was read.
    """

    project = models.ForeignKey(Project, on_delete=models.CASCADE, db_index=False)
    machine = models.ForeignKey(StateMachine, null=True, on_delete=models.CASCADE)
    region = models.CharField(max_length=32)
    name = models.CharField(max_length=255)
    arn = models.CharField(max_length=400, unique=True)
    description = models.CharField(max_length=1024, default="")
    kind = models.CharField(max_length=16, default=AlarmKind.METRIC)
    period_s = models.IntegerField()
    threshold = models.FloatField(default=0)
    minimum = models.IntegerField(default=1)
    state_name = models.CharField(max_length=80, default="")
    metric = models.CharField(max_length=64, default="")
    resource = models.CharField(max_length=512, default="")
    also = models.CharField(max_length=400, default="")
    dimensions = models.TextField(default="[]")
    statistic = models.CharField(max_length=16, default="")
    unit = models.CharField(max_length=32, default="")
    comparison = models.CharField(max_length=32, default=AlarmComparison.ABOVE)
    periods = models.IntegerField(default=1)
    datapoints = models.IntegerField(default=1)
    missing = models.CharField(max_length=16, default=MissingData.MISSING)
    enabled = models.BooleanField(default=True)  # whether a change of its state is an event
    state = models.CharField(max_length=20, default=AlarmState.INSUFFICIENT_DATA)
    reason = models.TextField(default="")
    reason_data = models.TextField(default="")
    state_ms = models.BigIntegerField()
    created_ms = models.BigIntegerField()
    updated_ms = models.BigIntegerField()
    created_by = models.CharField(max_length=150, default="")

    class Meta:
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["project", "region", "name"], name="one_alarm_a_name")
        ]

    def __str__(self) -> str:
        return self.name


class AlarmChange(models.Model):
    """A change of an alarm's state. ``actor``: the person, "" for an evaluation."""

    alarm = models.ForeignKey(Alarm, on_delete=models.CASCADE)
    at_ms = models.BigIntegerField()
    before = models.CharField(max_length=20)
    state = models.CharField(max_length=20)
    reason = models.TextField(default="")
    actor = models.CharField(max_length=150, default="")

    def __str__(self) -> str:
        return f"{self.before} -> {self.state}"
