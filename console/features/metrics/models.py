"""Tables of metrics: sums per minute, permanent sums, and prices."""

from __future__ import annotations

from typing import ClassVar

from django.db import models

from console.models.people import Project


class Sums(models.Model):
    """Summary of some values of one metric: count, sum, extremes, distribution.

    ``also``: a second dimension such as ``Version=<arn>``, "" for none. ``spread``: JSON of value
    (rounded to three digits) -> how often it occurred, for percentiles; "" for none.
    """

    project = models.ForeignKey(Project, on_delete=models.CASCADE, db_index=False)
    region = models.CharField(max_length=32)
    metric = models.CharField(max_length=60)
    resource = models.CharField(max_length=512)
    also = models.CharField(max_length=360, default="")
    count = models.BigIntegerField()
    total = models.FloatField()
    least = models.FloatField()
    most = models.FloatField()
    spread = models.TextField(default="")

    class Meta:
        abstract = True


class MetricMinute(Sums):
    """A metric in one finished minute."""

    minute_ms = models.BigIntegerField()

    class Meta:
        constraints: ClassVar = [
            models.UniqueConstraint(
                fields=["project", "region", "metric", "minute_ms", "resource", "also"],
                name="one_sum_per_minute",
            )
        ]


class MetricTotal(Sums):
    """A metric in all finished minutes."""

    class Meta:
        constraints: ClassVar = [
            models.UniqueConstraint(
                fields=["project", "region", "metric", "resource", "also"], name="one_total"
            )
        ]


class Price(models.Model):
    """A price that replaces the built-in one, with its date and source."""

    kept_by_reset = True  # ``reset`` keeps these rows, because people entered them

    name = models.CharField(max_length=40, primary_key=True)
    dollars = models.DecimalField(max_digits=20, decimal_places=12)
    as_of = models.CharField(max_length=10)
    source = models.CharField(max_length=200)

    def __str__(self) -> str:
        return self.name
