"""The model of notes that people write about an execution."""

from __future__ import annotations

from django.db import models

from console.models.executions import Execution


class ExecutionNote(models.Model):
    """The note and the assignee ("" for nobody) of an execution.

    Table and columns keep their first names, because processes of the previous release read them
    during an upgrade.
    """

    execution = models.OneToOneField(
        Execution, on_delete=models.CASCADE, primary_key=True, related_name="note"
    )
    text = models.TextField(default="", db_column="note")
    noted_by = models.CharField(max_length=150, default="")
    noted_ms = models.BigIntegerField(null=True)
    assignee = models.CharField(max_length=150, default="", db_column="looker")
    assigned_ms = models.BigIntegerField(null=True, db_column="looking_ms")

    class Meta:
        db_table = "console_remark"

    def __str__(self) -> str:
        return f"{self.assignee}: {self.text}"

    @property
    def stamp(self) -> str:
        """Return a text that changes with each change."""
        return f"{self.noted_ms or 0}-{self.assigned_ms or 0}"
