"""Tables of what people write about an execution."""

from __future__ import annotations

from django.db import models

from console.models.executions import Execution


class Remark(models.Model):
    """The note of an execution, and who looks into it just now; "" for nobody."""

    execution = models.OneToOneField(
        Execution, on_delete=models.CASCADE, primary_key=True, related_name="remark"
    )
    note = models.TextField(default="")
    noted_by = models.CharField(max_length=150, default="")
    noted_ms = models.BigIntegerField(null=True)
    looker = models.CharField(max_length=150, default="")
    looking_ms = models.BigIntegerField(null=True)

    def __str__(self) -> str:
        return f"{self.looker}: {self.note}"

    @property
    def stamp(self) -> str:
        """Return what is another text whenever something changed."""
        return f"{self.noted_ms or 0}-{self.looking_ms or 0}"
