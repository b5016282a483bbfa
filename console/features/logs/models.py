"""Table of the output of function calls."""

from __future__ import annotations

from typing import ClassVar

from django.db import models

from console.models.executions import Execution


class FunctionLog(models.Model):
    """The output of one function call, and the figures of Lambda's REPORT line.

    ``task``: the number of the execution's task, which the event ...Scheduled has. PostgreSQL does
    not check the execution: a late row must not make the other rows of its transaction fail. It is
    deleted with the other old rows.
    """

    execution = models.ForeignKey(
        Execution, on_delete=models.CASCADE, db_index=False, db_constraint=False
    )
    task = models.IntegerField()
    function = models.CharField(max_length=140)
    request = models.CharField(max_length=36)
    started_ms = models.BigIntegerField(db_index=True)
    duration_ms = models.FloatField()
    init_ms = models.FloatField(null=True)  # what the import took; NULL: the process was there
    memory_mb = models.IntegerField()  # the most that the process has had; 0: not known
    memory_limit_mb = models.IntegerField()
    error = models.CharField(max_length=256, default="")
    output = models.TextField(default="")

    class Meta:
        indexes: ClassVar = [
            models.Index(fields=["execution", "task"], name="function_log_of_task"),
            models.Index(fields=["function", "started_ms"], name="function_log_by_function"),
        ]

    def __str__(self) -> str:
        return f"{self.function} {self.request}"
