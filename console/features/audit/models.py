"""Tables of the audit chain and of the stream to another system."""

from __future__ import annotations

from django.db import models

NO_HASH = "0" * 64
"""The hash before the first row."""


class AuditSeal(models.Model):
    """The place of an audit row in the chain; it outlives a row deleted with its project.

    ``entry`` and ``project``: the ids of the row and its project, null for the server. ``digest``:
    the SHA-256 of the row's content. ``hash``: of this seal and the previous hash
    (``chain.hash_of``).
    """

    kept_by_reset = True

    position = models.BigIntegerField(primary_key=True)
    entry = models.BigIntegerField(unique=True)
    project = models.BigIntegerField(null=True)
    at_ms = models.BigIntegerField()
    digest = models.CharField(max_length=64)
    hash = models.CharField(max_length=64)

    def __str__(self) -> str:
        return f"{self.position}: {self.hash}"


class AuditStream(models.Model):
    """The progress of the stream to another system: one row per server.

    ``position``: the position of the newest seal that the other system has accepted. ``problem``:
    that system's error, "" if it works; ``failing_since_ms``: the first failure, 0 if it works.
    """

    kept_by_reset = True

    position = models.BigIntegerField(default=0)
    problem = models.CharField(max_length=300, default="")
    failing_since_ms = models.BigIntegerField(default=0)

    def __str__(self) -> str:
        return f"{self.position}: {self.problem or 'no problem'}"


class AuditChain(models.Model):
    """The ends of the chain: one row per server.

    ``position`` and ``hash`` describe the newest seal, ``anchor`` and ``anchor_hash`` the newest
    seal that retention deleted. ``settled``: all rows up to this number have a seal, and no
    transaction can add one below it. ``seen``, ``seen_transaction`` and ``seen_ms``: the newest row
    at a time, the next transaction then, and that time; when all earlier transactions have ended,
    the rows up to ``seen`` are settled.
    """

    kept_by_reset = True

    position = models.BigIntegerField(default=0)
    hash = models.CharField(max_length=64, default=NO_HASH)
    anchor = models.BigIntegerField(default=0)
    anchor_hash = models.CharField(max_length=64, default=NO_HASH)
    settled = models.BigIntegerField(default=0)
    seen = models.BigIntegerField(default=0)
    seen_transaction = models.BigIntegerField(default=0)
    seen_ms = models.BigIntegerField(default=0)

    def __str__(self) -> str:
        return f"{self.position}: {self.hash}"
