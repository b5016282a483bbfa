"""Table of summaries."""

from __future__ import annotations

from django.db import models

from console.models.executions import Execution


class ExecutionSummary(models.Model):
    """The latest summary of an execution; it contains no masked value.

    ``text``: "" if the expression has no value. ``problem``: the error of the evaluation.
    ``masks``: a hash of the masked paths at that time, "" for none. ``stop_ms``: the end of the
    execution that it includes, NULL while it ran.
    """

    execution = models.OneToOneField(
        Execution,
        primary_key=True,
        on_delete=models.CASCADE,
        db_constraint=False,
        related_name="summary",
    )
    text = models.CharField(max_length=200, default="")
    problem = models.CharField(max_length=300, default="")
    masks = models.CharField(max_length=16, default="")
    stop_ms = models.BigIntegerField(null=True)

    def __str__(self) -> str:
        return self.text
