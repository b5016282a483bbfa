"""What must all processes agree on?"""

from __future__ import annotations

from django.db import models


class ServerFact(models.Model):
    """Something all processes on this database must agree on."""

    name = models.CharField(max_length=40, primary_key=True)
    value = models.CharField(max_length=200)

    def __str__(self) -> str:
        return self.name
