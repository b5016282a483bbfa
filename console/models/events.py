"""Models of EventBridge rules and schedules: targets, events, deliveries, start links."""

from __future__ import annotations

from typing import ClassVar

from django.db import models

from console.models.machines import StateMachine
from console.models.people import Project
from console.statuses import AfterCompletion, DeliveryStatus, RuleState


class ScheduleGroup(models.Model):
    """A group of schedules of EventBridge Scheduler; ``default`` is everywhere without a row."""

    project = models.ForeignKey(Project, on_delete=models.CASCADE, db_index=False)
    region = models.CharField(max_length=32)
    name = models.CharField(max_length=64)
    arn = models.CharField(max_length=256, unique=True)
    created_ms = models.BigIntegerField()

    class Meta:
        constraints: ClassVar = [
            models.UniqueConstraint(
                fields=["project", "region", "name"], name="one_schedule_group_a_name"
            )
        ]

    def __str__(self) -> str:
        return self.name


class EventRule(models.Model):
    """A rule of EventBridge: with an event ``pattern``, or with a ``schedule``.

    Or, with a ``schedule_group``, a schedule of EventBridge Scheduler, whose one target is a row of
    ``EventTarget``. The columns after ``schedule_group`` are for such schedules only, and ``name``
    is a digest of group and name that no rule can have: a process of an earlier release neither
    finds nor fires them.

    ``next_ms``: when the schedule is due next; null without one or while the rule is disabled.
    ``due_ms``: the same of a schedule of EventBridge Scheduler.
    ``start_ms``, ``end_ms``: between which moments it is due; null for no such limit.
    ``window_minutes``: how long after its moment a start may come (FlexibleTimeWindow); 0: at once.
    ``client_token``: the token of the request that created it.
    """

    project = models.ForeignKey(Project, on_delete=models.CASCADE, db_index=False)
    region = models.CharField(max_length=32)
    name = models.CharField(max_length=64)
    arn = models.CharField(max_length=256, unique=True)
    description = models.CharField(max_length=512, default="")
    pattern = models.TextField(default="")
    schedule = models.CharField(max_length=256, default="")
    timezone = models.CharField(max_length=64, default="UTC")
    role_arn = models.CharField(max_length=256, default="")
    state = models.CharField(max_length=8, default=RuleState.ENABLED)
    next_ms = models.BigIntegerField(null=True, db_index=True)
    created_by = models.CharField(max_length=150, default="")
    created_ms = models.BigIntegerField()
    # JSON array of user names: who last changed it or its targets, and as whom it starts
    edited_by = models.TextField(default="", db_default="")
    schedule_group = models.CharField(max_length=64, default="", db_default="")
    schedule_name = models.CharField(max_length=64, default="", db_default="")
    due_ms = models.BigIntegerField(null=True, db_index=True)
    start_ms = models.BigIntegerField(null=True)
    end_ms = models.BigIntegerField(null=True)
    window_minutes = models.IntegerField(default=0, db_default=0)
    after_completion = models.CharField(
        max_length=6, default=AfterCompletion.NONE, db_default=AfterCompletion.NONE.value
    )
    kms_key_arn = models.CharField(max_length=2048, default="", db_default="")
    client_token = models.CharField(max_length=64, default="", db_default="")
    updated_ms = models.BigIntegerField(null=True)

    class Meta:
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["project", "region", "name"], name="one_rule_a_name")
        ]
        indexes: ClassVar = [
            models.Index(
                fields=["project", "region", "schedule_group", "schedule_name"],
                name="schedule_by_group",
            )
        ]

    def __str__(self) -> str:
        return self.schedule_name or self.name


class SchedulePause(models.Model):
    """A project whose schedules are paused: none starts anything."""

    project = models.OneToOneField(Project, primary_key=True, on_delete=models.CASCADE)
    since_ms = models.BigIntegerField()
    paused_by = models.CharField(max_length=150, default="")
    note = models.TextField(default="")


class EventTarget(models.Model):
    """A target of a rule: an ARN, an https address, or ``mailto:``.

    ``settings``: JSON, the further members of EventBridge's Target as they were given.
    ``timeouts``: attempts in a row that had no answer in time; ``paused_until_ms``: when the next
    attempt after such a one may begin.
    """

    rule = models.ForeignKey(EventRule, on_delete=models.CASCADE, related_name="targets")
    target_id = models.CharField(max_length=64)
    address = models.CharField(max_length=1600)
    settings = models.TextField(default="{}")
    timeouts = models.IntegerField(default=0, db_default=0)
    paused_until_ms = models.BigIntegerField(null=True)

    class Meta:
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["rule", "target_id"], name="one_target_an_id")
        ]


class OutboxEvent(models.Model):
    """An event, written in the transaction of its cause; deleted after all deliveries.

    ``about``: its first resource, or its source; ``routed``: its deliveries are written.
    ``sent_by``: who put it, "" if this server made it.
    """

    event_id = models.CharField(max_length=36, unique=True)
    project = models.ForeignKey(Project, on_delete=models.CASCADE)
    region = models.CharField(max_length=32)
    about = models.CharField(max_length=512)
    body = models.TextField()
    at_ms = models.BigIntegerField(db_index=True)
    routed = models.BooleanField(default=False)
    sent_by = models.CharField(max_length=150, default="", db_default="")

    class Meta:
        indexes: ClassVar = [
            models.Index(fields=["id"], name="event_to_route", condition=models.Q(routed=False)),
        ]


class Delivery(models.Model):
    """The delivery of one event to one target.

    ``status``: waiting (until ``next_ms``), sending, delivered, dead.
    """

    # the constraint below has an index that begins with it
    event = models.ForeignKey(
        OutboxEvent, on_delete=models.CASCADE, related_name="deliveries", db_index=False
    )
    target = models.ForeignKey(EventTarget, on_delete=models.CASCADE)
    project = models.ForeignKey(Project, on_delete=models.CASCADE, db_index=False)
    status = models.CharField(max_length=9, default=DeliveryStatus.WAITING)
    attempts = models.IntegerField(default=0)
    next_ms = models.BigIntegerField()
    last_error = models.TextField(default="")
    created_ms = models.BigIntegerField()
    ended_ms = models.BigIntegerField(null=True)

    class Meta:
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["event", "target"], name="one_delivery_a_target")
        ]
        indexes: ClassVar = [
            models.Index(fields=["status", "next_ms"], name="delivery_due"),
            models.Index(fields=["project", "status", "-id"], name="delivery_by_project"),
            # what each target has to get, the oldest first
            models.Index(
                fields=["target", "next_ms"],
                name="delivery_of_target",
                condition=models.Q(status=DeliveryStatus.WAITING),
            ),
        ]


class StartLink(models.Model):
    """An address that starts executions by HTTP; the SHA-256 of its secret is stored.

    ``membership``: the id of its maker's membership, null in links of an earlier release.
    """

    machine = models.ForeignKey(StateMachine, on_delete=models.CASCADE, related_name="start_links")
    name = models.CharField(max_length=64)
    secret_hash = models.CharField(max_length=64, unique=True)
    created_by = models.CharField(max_length=150)
    membership = models.BigIntegerField(null=True)
    created_ms = models.BigIntegerField()
    used_ms = models.BigIntegerField(null=True)
    revoked_ms = models.BigIntegerField(null=True)
