"""Tables of bulk jobs: one action on many executions, and the result of each."""

from __future__ import annotations

from typing import ClassVar

from django.db import models

from console.models.people import Project
from console.statuses import BulkItemStatus, BulkJobStatus


class BulkJob(models.Model):
    """One action on many executions. ``status``: RUNNING, PAUSED or DONE.

    ``asked``: the query string of the list from which they were selected. ``error`` and ``cause``:
    for a stop. ``stops_clock`` and ``note``: for a pause.
    """

    project = models.ForeignKey(Project, on_delete=models.CASCADE)
    action = models.CharField(max_length=10)  # stop | redrive | start | pause | resume | replay
    actor = models.CharField(max_length=150, default="")
    status = models.CharField(max_length=8, default=BulkJobStatus.RUNNING)
    asked = models.TextField(default="")
    error = models.CharField(max_length=256, default="", db_default="")
    cause = models.TextField(default="", db_default="")
    stops_clock = models.BooleanField(default=False, db_default=False)
    note = models.TextField(default="", db_default="")
    total = models.IntegerField()
    created_ms = models.BigIntegerField()
    ended_ms = models.BigIntegerField(null=True)

    class Meta:
        indexes: ClassVar = [
            models.Index(
                fields=["id"],
                name="bulk_job_running",
                condition=models.Q(status=BulkJobStatus.RUNNING),
            ),
        ]

    def __str__(self) -> str:
        return f"{self.action} {self.total}"

    @property
    def verb(self) -> str:
        """Return the job's action in words."""
        return {"start": "Start again"}.get(self.action, self.action.capitalize())


class BulkItem(models.Model):
    """One execution of a job; it may have been deleted before its turn.

    ``status``: waiting, acting (begun; after a crash its outcome is looked up first), done,
    refused. ``error`` and ``words``: the name and the reason of a refusal; ``result``: ARN of a
    started execution.
    """

    pk = models.CompositePrimaryKey("job_id", "position")
    job = models.ForeignKey(BulkJob, on_delete=models.CASCADE, db_index=False)
    position = models.IntegerField()
    number = models.BigIntegerField()  # of the execution: not a key, its row may be deleted
    arn = models.CharField(max_length=512)
    started_by = models.CharField(max_length=150, default="")
    status = models.CharField(max_length=8, default=BulkItemStatus.WAITING)
    error = models.CharField(max_length=80, default="")
    words = models.TextField(default="")
    result = models.CharField(max_length=512, default="")
    at_ms = models.BigIntegerField(null=True)

    class Meta:
        indexes: ClassVar = [
            models.Index(fields=["job", "status", "position"], name="bulk_item_by_status"),
        ]

    def __str__(self) -> str:
        return self.arn
