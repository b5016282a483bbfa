"""Models of people: projects, members, access keys, login links, invitations, the audit trail."""

from __future__ import annotations

from typing import ClassVar

from django.conf import settings
from django.db import models


class Project(models.Model):
    """A team's project. Its ``account_id`` is the 12-digit account in every ARN.

    ``masked``: the JSONPaths of masked values, one per line. ``archived_ms``: since when it is
    read-only, null for a project at work.
    """

    name = models.CharField(max_length=80, unique=True)
    account_id = models.CharField(max_length=12, unique=True)
    masked = models.TextField(default="", db_default="")
    archived_ms = models.BigIntegerField(null=True)

    def __str__(self) -> str:
        return self.name


class Role(models.TextChoices):
    """The role of a member; each role includes the ones before it."""

    VIEWER = "viewer"
    OPERATOR = "operator"
    EDITOR = "editor"
    OWNER = "owner"


class Membership(models.Model):
    """A person's role in a project.

    ``columns``: JSON text, the columns they chose of each table; "" before they chose any.
    """

    project = models.ForeignKey(Project, on_delete=models.CASCADE)
    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE)
    role = models.CharField(max_length=10, choices=Role)
    columns = models.TextField(default="", db_default="")

    class Meta:
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["project", "user"], name="one_role_per_project")
        ]


class SavedView(models.Model):
    """A named list of executions of a project.

    ``query``: the query string of ``/executions/``. ``default_of``: the name of the machine whose
    page starts with this view, "" for none.
    """

    project = models.ForeignKey(Project, on_delete=models.CASCADE)
    name = models.CharField(max_length=80)
    query = models.TextField()
    default_of = models.CharField(max_length=80, default="")
    saved_by = models.CharField(max_length=150)
    saved_ms = models.BigIntegerField()

    class Meta:
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["project", "name"], name="one_view_per_name"),
            models.UniqueConstraint(
                fields=["project", "default_of"],
                name="one_default_per_machine",
                condition=~models.Q(default_of=""),
            ),
        ]

    def __str__(self) -> str:
        return self.name


class AccessKey(models.Model):
    """An AWS access key. The secret is derived (HMAC of a master key) and stored nowhere.

    ``description``: the program or person that uses it, "" if not stated. ``disabled_by``: the name
    of the person who disabled it; "" if nobody did or it is not known. ``scope``: JSON text of a
    ``KeyScope``, "" for everything that the role of its owner allows. ``expires_ms``: null for a
    key that does not expire. ``replaced_by``: the key that a rotation made in its place.
    ``warned_ms``: when its expiry was announced. ``last_used_from`` and ``last_used_client``:
    address and user agent of the last use.
    """

    key_id = models.CharField(max_length=32, primary_key=True)
    project = models.ForeignKey(Project, on_delete=models.CASCADE)
    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE)
    created_ms = models.BigIntegerField()
    disabled_ms = models.BigIntegerField(null=True)
    disabled_by = models.CharField(max_length=150, default="", db_default="")
    description = models.CharField(max_length=100, default="", db_default="")
    last_used_ms = models.BigIntegerField(null=True)
    last_used_from = models.CharField(max_length=45, default="", db_default="")
    last_used_client = models.CharField(max_length=200, default="", db_default="")
    scope = models.TextField(default="", db_default="")
    expires_ms = models.BigIntegerField(null=True)
    replaced_by = models.CharField(max_length=32, default="", db_default="")
    warned_ms = models.BigIntegerField(null=True)


class LoginLink(models.Model):
    """A one-time login link; only the SHA-256 of its token is stored."""

    token_hash = models.CharField(max_length=64, primary_key=True)
    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE)
    expires_ms = models.BigIntegerField()
    used_ms = models.BigIntegerField(null=True)


class Invitation(models.Model):
    """A one-time link by which a person joins a project; only the SHA-256 of its token is stored.

    ``name``: the future user name. ``made_by``: the owner's name.
    """

    project = models.ForeignKey(Project, on_delete=models.CASCADE)
    token_hash = models.CharField(max_length=64, unique=True)
    name = models.CharField(max_length=150)
    role = models.CharField(max_length=10, choices=Role)
    made_by = models.CharField(max_length=150)
    made_ms = models.BigIntegerField()
    expires_ms = models.BigIntegerField()
    used_ms = models.BigIntegerField(null=True)


class LoginAttempts(models.Model):
    """The number of recent attempts to sign in, for a name or from an address.

    ``key``: HMAC of the account or address. ``until_ms``: the row has no effect afterwards.
    """

    key = models.CharField(max_length=64, primary_key=True)
    count = models.IntegerField()
    until_ms = models.BigIntegerField(db_index=True)


class AuditEntry(models.Model):
    """An audit entry: actor, action and target. Append-only, without payloads."""

    at_ms = models.BigIntegerField()
    project = models.ForeignKey(Project, null=True, on_delete=models.CASCADE, db_constraint=False)
    actor = models.CharField(max_length=150)
    key_id = models.CharField(max_length=32, default="")
    action = models.CharField(max_length=64)
    target = models.CharField(max_length=512)
    reason = models.CharField(max_length=256, default="")
    request_id = models.CharField(max_length=36, default="")
    execution = models.CharField(max_length=512, null=True)  # noqa: DJ001 - whose Task did it

    class Meta:
        # most rows are starts, which the execution's row has, too: the first index leaves them out
        indexes: ClassVar = [
            models.Index(
                fields=["target"], condition=~models.Q(action="StartExecution"), name="audit_target"
            ),
            models.Index(fields=["project", "actor", "id"], name="audit_by_person"),
        ]

    @property
    def who(self) -> str:
        """Return the actor: a person, or an execution and the person who started it."""
        if not self.execution:
            return self.actor
        return f"execution {self.execution}" + (f", started by {self.actor}" if self.actor else "")
