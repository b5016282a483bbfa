"""Table of named inputs."""

from __future__ import annotations

from typing import ClassVar

from django.db import models

from console.models.machines import StateMachine


class NamedInput(models.Model):
    """A named input. ``text``: its JSON, unmasked."""

    # the constraint has an index that begins with it
    state_machine = models.ForeignKey(StateMachine, on_delete=models.CASCADE, db_index=False)
    name = models.CharField(max_length=80)
    text = models.TextField()
    saved_by = models.CharField(max_length=150, default="")
    saved_ms = models.BigIntegerField()

    class Meta:
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["state_machine", "name"], name="one_input_a_name")
        ]

    def __str__(self) -> str:
        return self.name
