"""Models of state machines: definitions, versions, aliases, revisions, drafts; activities, tags."""

from __future__ import annotations

from typing import ClassVar

from django.conf import settings
from django.db import models

from console.models.people import Project
from console.statuses import MachineStatus, MachineType


class Definition(models.Model):
    """The text of a definition, by its SHA-256; immutable, shared by machines and executions."""

    sha256 = models.CharField(max_length=64, primary_key=True)
    text = models.TextField()


class StateMachine(models.Model):
    """A state machine: name, role, and the definition that new executions start with."""

    project = models.ForeignKey(Project, on_delete=models.CASCADE)
    region = models.CharField(max_length=32)
    name = models.CharField(max_length=80)
    arn = models.CharField(max_length=256, unique=True)
    type = models.CharField(max_length=10, default=MachineType.STANDARD)
    status = models.CharField(max_length=10, default=MachineStatus.ACTIVE)
    role_arn = models.CharField(max_length=256)
    definition = models.ForeignKey(Definition, on_delete=models.PROTECT)
    revision_id = models.CharField(max_length=36, default="")  # empty until the first real update
    logging = models.TextField(
        default=""
    )  # JSON text as given, empty for the default; so the next two
    tracing = models.TextField(default="")
    encryption = models.TextField(default="")
    created_ms = models.BigIntegerField()
    updated_ms = models.BigIntegerField()
    next_version = models.IntegerField(default=1)  # numbers are never used again
    # JSON array of user names: whose rights bound what its definition does; "" if unknown
    edited_by = models.TextField(default="", db_default="")
    # JSON text of the breakpoints and faults of the next starts (``store.executions.next_starts``).
    # In this row, which each start reads anyway: without any, a start asks for nothing more.
    next_starts = models.TextField(null=True)  # noqa: DJ001 - NULL adds the column in an instant
    as_read = ""  # no column: the mark of the row that ``kept_machine`` read

    def __str__(self) -> str:
        return self.name


class Version(models.Model):
    """A published version: the immutable state of a machine at a revision."""

    state_machine = models.ForeignKey(StateMachine, on_delete=models.CASCADE)
    number = models.IntegerField()
    revision_id = models.CharField(max_length=36, default="")
    definition = models.ForeignKey(Definition, on_delete=models.PROTECT)
    role_arn = models.CharField(max_length=256)
    description = models.CharField(max_length=256, default="")
    created_ms = models.BigIntegerField()
    edited_by = models.TextField(default="", db_default="")  # the machine's, when it was published
    # the machine's, when it was published; null if an earlier release published it
    logging = models.TextField(null=True)  # noqa: DJ001 - see above
    tracing = models.TextField(null=True)  # noqa: DJ001 - see above
    encryption = models.TextField(null=True)  # noqa: DJ001 - see above

    class Meta:
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["state_machine", "number"], name="one_version_a_number")
        ]

    @property
    def arn(self) -> str:
        """Return the version's ARN."""
        return f"{self.state_machine.arn}:{self.number}"


class MachineRevision(models.Model):
    """The definition and role of a machine after a save, with author and note.

    A revision is never changed. ``revision_id``: the machine's, "" before its first update. The
    first row of a machine that is older than this table is written by its next save.
    """

    state_machine = models.ForeignKey(
        StateMachine, on_delete=models.CASCADE, related_name="revisions", db_constraint=False
    )
    number = models.IntegerField()
    revision_id = models.CharField(max_length=36, default="")
    definition = models.ForeignKey(Definition, on_delete=models.PROTECT)
    role_arn = models.CharField(max_length=256)
    note = models.CharField(max_length=500, default="")
    saved_by = models.CharField(max_length=150, default="")
    saved_ms = models.BigIntegerField()

    class Meta:
        constraints: ClassVar = [
            models.UniqueConstraint(
                fields=["state_machine", "number"], name="one_revision_a_number"
            )
        ]

    def __str__(self) -> str:
        return f"revision {self.number}"


class DefinitionDraft(models.Model):
    """The unsaved text in a person's editor of a machine.

    ``machine_arn``: "" for a machine that is not created yet. ``revision``: the machine's revision
    that the text was made from.
    """

    project = models.ForeignKey(Project, on_delete=models.CASCADE)
    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE)
    machine_arn = models.CharField(max_length=256, default="")
    text = models.TextField()
    revision = models.CharField(max_length=80, default="")
    saved_ms = models.BigIntegerField()

    class Meta:
        constraints: ClassVar = [
            models.UniqueConstraint(
                fields=["project", "user", "machine_arn"], name="one_draft_a_person_and_machine"
            )
        ]

    def __str__(self) -> str:
        return f"draft of {self.machine_arn or 'a new machine'}"


class Alias(models.Model):
    """A name for one or two versions. ``routing``: JSON array of [version number, weight]."""

    state_machine = models.ForeignKey(StateMachine, on_delete=models.CASCADE)
    name = models.CharField(max_length=80)
    arn = models.CharField(max_length=340, unique=True)
    description = models.CharField(max_length=256, default="")
    routing = models.TextField()
    created_ms = models.BigIntegerField()
    updated_ms = models.BigIntegerField()


class Tag(models.Model):
    """A tag of a machine or activity."""

    arn = models.CharField(max_length=256)
    key = models.CharField(max_length=128)
    value = models.CharField(max_length=256)

    class Meta:
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["arn", "key"], name="one_value_per_tag")
        ]


class Activity(models.Model):
    """An activity that workers poll."""

    project = models.ForeignKey(Project, on_delete=models.CASCADE)
    region = models.CharField(max_length=32)
    name = models.CharField(max_length=80)
    arn = models.CharField(max_length=256, unique=True)
    encryption = models.TextField(default="")  # as a machine's
    created_ms = models.BigIntegerField()
