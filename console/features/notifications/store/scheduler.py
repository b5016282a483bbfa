"""Store EventBridge Scheduler's schedules and schedule groups.

A schedule is an ``EventRule`` with a group and one ``EventTarget``, so that it fires, is delivered
and retried by the same code as a rule of the event bus.
"""

from __future__ import annotations

import hashlib
import json
import re
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Any

from django.db.models import Q

import engine
from console import arns, execution_rights
from console.db import audit, clock
from console.db.writer import write
from console.errors import ConflictException, ErrorCode, ServiceError, ValidationException
from console.events import addresses
from console.features.notifications import schedules
from console.features.notifications.store import rules
from console.features.notifications.store.resource_tags import (
    TaggedResources,
    insert_tags,
    missing_resource,
)
from console.models import EventRule, EventTarget, ScheduleGroup, Tag
from console.statuses import AfterCompletion, RuleState

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from django.db.models import QuerySet

    from console.models import Project

DEFAULT_GROUP = "default"
MOST_SCHEDULES = 100_000
MOST_GROUPS = 500
_TARGET_ID = "target"
_CHUNK = 200
_EARLIEST_START_MS = 5 * 60_000
_UNSERVED = (
    "EcsParameters",
    "EventBridgePutEventsV2Parameters",
    "EventBridgePutRawEventsParameters",
    "KinesisParameters",
    "SageMakerPipelineParameters",
)
_START_PARAMETERS = ("StateMachineArn", "Name", "Input", "TraceHeader")
_LONGEST_TRACE_HEADER = 256
_JSON_KINDS = ("machine", "lambda", "events")


@dataclass(frozen=True, slots=True)
class ScheduleKey:
    """Key of a schedule."""

    project: Project
    region: str
    group: str
    name: str

    @property
    def arn(self) -> str:
        """Return the schedule's ARN."""
        place = f"{self.region}:{self.project.account_id}"
        partition = arns.partition_of(self.region)
        return f"arn:{partition}:scheduler:{place}:schedule/{self.group}/{self.name}"

    @property
    def row_name(self) -> str:
        """Return the row's ``name``, which begins with a slash, unlike that of any rule."""
        digest = hashlib.sha256(f"{self.group}/{self.name}".encode()).hexdigest()
        return f"/{digest[:40]}"

    def find(self) -> QuerySet[EventRule]:
        """Return the query of the schedule."""
        rows = EventRule.objects.filter(project=self.project, region=self.region)
        return rows.filter(name=self.row_name)


@dataclass(frozen=True, slots=True)
class ScheduleSettings:
    """The settings of a schedule. ``target``: as in the API; times are epoch milliseconds."""

    schedule: str
    target: Mapping[str, Any]
    timezone: str = "UTC"
    state: str = RuleState.ENABLED
    description: str = ""
    start_ms: int | None = None
    end_ms: int | None = None
    window_minutes: int = 0
    after_completion: str = AfterCompletion.NONE
    kms_key_arn: str = ""

    @property
    def columns(self) -> dict[str, Any]:
        """Return the settings as columns of the row."""
        return {
            "schedule": self.schedule,
            "timezone": self.timezone,
            "state": self.state,
            "description": self.description,
            "start_ms": self.start_ms,
            "end_ms": self.end_ms,
            "window_minutes": self.window_minutes,
            "after_completion": self.after_completion,
            "kms_key_arn": self.kms_key_arn,
        }


# -- schedules -------------------------------------------------------------------------------------


def create_schedule(
    key: ScheduleKey, settings: ScheduleSettings, token: str = "", actor: audit.Actor = audit.NOBODY
) -> EventRule:
    """Create a schedule; a repeated ``token`` returns the earlier schedule.

    Raise ValidationException, ConflictException, ServiceQuotaExceededException, and
    ResourceNotFoundException for a missing group.
    """

    def store() -> EventRule:
        _lock_group(key)
        existing = key.find().first()
        if existing is not None and token and existing.client_token == token:
            return existing
        if existing is not None:
            raise ConflictException(f"Schedule {key.name} already exists.")
        _check_settings(key, settings, clock.now_ms())
        of_region = EventRule.objects.filter(project=key.project, region=key.region)
        if of_region.exclude(schedule_group="").count() >= MOST_SCHEDULES:
            raise ServiceError(
                ErrorCode.ServiceQuotaExceededException,
                f"There are {MOST_SCHEDULES} schedules already.",
            )
        row = EventRule(
            project=key.project,
            region=key.region,
            name=key.row_name,
            schedule_group=key.group,
            schedule_name=key.name,
            arn=key.arn,
            created_by=actor.name,
            created_ms=clock.now_ms(),
            client_token=token,
        )
        # A rate without a start date is due for the first time when it is made.
        _save(row, settings, actor, after_ms=row.created_ms - 1)
        audit.record(key.project, actor, "scheduler:CreateSchedule", row.arn)
        return row

    return write(store)


def update_schedule(
    key: ScheduleKey,
    settings: ScheduleSettings,
    actor: audit.Actor = audit.NOBODY,
    *,
    revision: str | None = None,
) -> EventRule:
    """Replace a schedule's settings; missing settings return to their defaults.

    ``revision``: the revision that was edited, None to skip the check for concurrent changes. Raise
    ValidationException, ResourceNotFoundException and ConflictException.
    """

    def store() -> EventRule:
        row = key.find().select_for_update().first()
        if row is None:
            raise _missing_schedule(key)
        if revision is not None and revision != revision_of(row):
            raise ConflictException(f"The schedule {key.name} was changed meanwhile.")
        _check_settings(key, settings, clock.now_ms(), known_start_ms=row.start_ms)
        _save(row, settings, actor, after_ms=clock.now_ms())
        audit.record(key.project, actor, "scheduler:UpdateSchedule", row.arn)
        return row

    return write(store)


def revision_of(row: EventRule) -> str:
    """Return a revision that changes with every change of a schedule."""
    return str(row.updated_ms)


def _save(row: EventRule, settings: ScheduleSettings, actor: audit.Actor, *, after_ms: int) -> None:
    for column, value in settings.columns.items():
        setattr(row, column, value)
    row.updated_ms = clock.now_ms()
    row.edited_by = execution_rights.names_behind(actor)
    enabled = row.state == RuleState.ENABLED
    row.due_ms = rules.moment_after(row, after_ms) if enabled else None
    row.save()
    more = {
        name: value for name, value in settings.target.items() if name not in ("Arn", "RoleArn")
    }
    EventTarget.objects.update_or_create(
        rule=row,
        target_id=_TARGET_ID,
        defaults={
            "address": settings.target["Arn"],
            "settings": json.dumps({**more, "RoleArn": settings.target["RoleArn"]}),
            **rules.UNTRIED,
        },
    )


def get_schedule(key: ScheduleKey) -> EventRule:
    """Return a schedule with its target; raise ResourceNotFoundException."""
    row = key.find().prefetch_related("targets").first()
    if row is None or not row.targets.all():  # deleted between the two reads
        raise _missing_schedule(key)
    return row


def target_of(row: EventRule) -> EventTarget:
    """Return the only target of a schedule."""
    return row.targets.all()[0]


def list_schedules(
    project: Project,
    region: str,
    *,
    group: str = "",
    prefix: str = "",
    state: str = "",
    after: Sequence[str] | None = None,
    limit: int = 100,
) -> list[EventRule]:
    """Return schedules by group and name; ``after``: group and name of the previous one.

    Raise ResourceNotFoundException for a missing group.
    """
    rows = EventRule.objects.filter(project=project, region=region).exclude(schedule_group="")
    if group:
        get_group(project, region, group)
        rows = rows.filter(schedule_group=group)
    if state:
        rows = rows.filter(state=state)
    if prefix:
        rows = rows.filter(schedule_name__startswith=prefix)
    if after is not None:
        place = Q(schedule_group__gt=after[0]) | Q(
            schedule_group=after[0], schedule_name__gt=after[1]
        )
        rows = rows.filter(place)
    rows = rows.prefetch_related("targets").order_by("schedule_group", "schedule_name")
    # The name is compared once more, because SQLite's LIKE takes no account of case. A schedule
    # without a target was deleted between the two reads.
    live_rows = (
        row
        for row in rows.iterator(_CHUNK)
        if row.schedule_name.startswith(prefix) and row.targets.all()
    )
    return list(islice(live_rows, limit))


def set_schedule_state(
    key: ScheduleKey, *, on: bool, actor: audit.Actor = audit.NOBODY
) -> EventRule:
    """Enable or disable a schedule; raise ResourceNotFoundException."""

    def store() -> EventRule:
        row = key.find().select_for_update().first()
        if row is None:
            raise _missing_schedule(key)
        row.state = RuleState.ENABLED if on else RuleState.DISABLED
        row.due_ms = rules.next_ms(row)
        row.updated_ms = clock.now_ms()
        row.save(update_fields=["state", "due_ms", "updated_ms"])
        audit.record(key.project, actor, "scheduler:UpdateSchedule", row.arn, row.state)
        return row

    return write(store)


def delete_schedule(key: ScheduleKey, actor: audit.Actor = audit.NOBODY) -> None:
    """Delete a schedule and its pending deliveries; raise ResourceNotFoundException."""

    def store() -> None:
        row = key.find().first()
        if row is None:
            raise _missing_schedule(key)
        row.delete()
        audit.record(key.project, actor, "scheduler:DeleteSchedule", row.arn)

    write(store)


def _missing_schedule(key: ScheduleKey) -> ServiceError:
    return ServiceError(ErrorCode.ResourceNotFoundException, f"Schedule {key.name} does not exist.")


# -- what is checked -------------------------------------------------------------------------------


def _check_settings(
    key: ScheduleKey, settings: ScheduleSettings, now_ms: int, known_start_ms: int | None = None
) -> None:
    """Raise ValidationException for invalid settings."""
    try:
        schedules.parse_schedule(settings.schedule, settings.timezone, with_once=True)
    except schedules.ScheduleError as error:
        raise ValidationException(
            f"Invalid Schedule Expression {settings.schedule}. Reason: {error}"
        ) from None
    start_ms, end_ms = settings.start_ms, settings.end_ms
    fresh = start_ms is not None and start_ms != known_start_ms
    if start_ms is not None and fresh and start_ms < now_ms - _EARLIEST_START_MS:
        raise ValidationException("The StartDate you specify cannot be earlier than 5 minutes ago.")
    if start_ms is not None and end_ms is not None and end_ms <= start_ms:
        raise ValidationException("The EndDate you specify must be later than the StartDate.")
    problem = _target_problem(key, settings.target)
    if problem:
        raise ValidationException(f"Target: {problem}")


def _target_problem(key: ScheduleKey, target: Mapping[str, Any]) -> str:
    """Return the error in a target, "" if it is valid."""
    unserved = [name for name in _UNSERVED if target.get(name) is not None]
    if unserved:
        return f"{unserved[0]}: this server has no such target"
    try:
        kind = addresses.address_kind(target["Arn"], universal=True)
    except addresses.AddressError as error:
        return str(error)
    if not target["Arn"].startswith("arn:"):
        return f"Arn: '{target['Arn'][:100]}' is not an ARN"
    text = target.get("Input")
    value = _as_json(text) if text is not None and kind in _JSON_KINDS else None
    if value is _NO_JSON:
        return "Input: must be well-formed JSON for this target"
    if addresses.is_universal(target["Arn"]):
        return _universal_problem(value)
    plain = {name: value for name, value in target.items() if name != "Input"}
    return rules.target_problem(key.project, key.region, plain)


_NO_JSON = object()


def _as_json(text: str) -> Any:
    try:
        return engine.loads(text)
    except engine.JsonTextError:
        return _NO_JSON


def _universal_problem(value: Any) -> str:
    machine = value.get("StateMachineArn") if isinstance(value, dict) else None
    if not isinstance(machine, str) or not re.match(r"arn:aws[a-z-]*:states:", machine):
        return "Input must be the parameters of StartExecution, with StateMachineArn"
    unknown = sorted(set(value) - set(_START_PARAMETERS))
    if unknown:
        return f"Input: StartExecution has no parameter {unknown[0][:100]!r}"
    for name, text in value.items():
        if not isinstance(text, str):
            return f"Input: {name} of StartExecution is a string"
    if len(value.get("TraceHeader", "")) > _LONGEST_TRACE_HEADER:
        return f"Input: TraceHeader has more than {_LONGEST_TRACE_HEADER} characters"
    return ""


# -- groups ----------------------------------------------------------------------------------------


def group_arn(project: Project, region: str, name: str) -> str:
    """Return the ARN of a group."""
    place = f"{region}:{project.account_id}"
    return f"arn:{arns.partition_of(region)}:scheduler:{place}:schedule-group/{name}"


def _default_group(project: Project, region: str) -> ScheduleGroup:
    """Return the group ``default``, which has no row."""
    arn = group_arn(project, region, DEFAULT_GROUP)
    return ScheduleGroup(project=project, region=region, name=DEFAULT_GROUP, arn=arn, created_ms=0)


def _lock_group(key: ScheduleKey) -> None:
    """Keep a group from being deleted in this transaction; raise if it does not exist."""
    if key.group == DEFAULT_GROUP:
        return
    rows = ScheduleGroup.objects.select_for_update()
    if not list(rows.filter(project=key.project, region=key.region, name=key.group)):
        raise _missing_group(key.group)


def _missing_group(name: str) -> ServiceError:
    return ServiceError(
        ErrorCode.ResourceNotFoundException, f"Schedule group {name} does not exist."
    )


def create_group(
    project: Project,
    region: str,
    name: str,
    tags: Mapping[str, str],
    actor: audit.Actor = audit.NOBODY,
) -> ScheduleGroup:
    """Create a schedule group; raise ConflictException, ServiceQuotaExceededException."""

    def store() -> ScheduleGroup:
        of_region = ScheduleGroup.objects.filter(project=project, region=region)
        if name == DEFAULT_GROUP or of_region.filter(name=name).exists():
            raise ConflictException(f"Schedule group {name} already exists.")
        if of_region.count() >= MOST_GROUPS:
            raise ServiceError(
                ErrorCode.ServiceQuotaExceededException,
                f"There are {MOST_GROUPS} schedule groups already.",
            )
        group = ScheduleGroup.objects.create(
            project=project,
            region=region,
            name=name,
            arn=group_arn(project, region, name),
            created_ms=clock.now_ms(),
        )
        insert_tags(group.arn, tags, GROUP_TAGS.too_many)
        audit.record(project, actor, "scheduler:CreateScheduleGroup", group.arn)
        return group

    return write(store)


def get_group(project: Project, region: str, name: str) -> ScheduleGroup:
    """Return a group; raise ResourceNotFoundException."""
    if name == DEFAULT_GROUP:
        return _default_group(project, region)
    group = ScheduleGroup.objects.filter(project=project, region=region, name=name).first()
    if group is None:
        raise _missing_group(name)
    return group


def list_groups(
    project: Project, region: str, *, prefix: str = "", after: str = "", limit: int = 100
) -> list[ScheduleGroup]:
    """Return groups by name, ``default`` among them."""
    rows = ScheduleGroup.objects.filter(project=project, region=region)
    groups = [*rows, _default_group(project, region)]
    page = [group for group in groups if group.name > after and group.name.startswith(prefix)]
    return sorted(page, key=lambda group: group.name)[:limit]


def delete_group(
    project: Project, region: str, name: str, actor: audit.Actor = audit.NOBODY
) -> None:
    """Delete a group with its schedules; raise ValidationException for ``default``."""

    def store() -> None:
        if name == DEFAULT_GROUP:
            raise ValidationException("Deleting default schedule group is not allowed.")
        rows = ScheduleGroup.objects.select_for_update()
        group = rows.filter(project=project, region=region, name=name).first()
        if group is None:
            raise _missing_group(name)
        EventRule.objects.filter(project=project, region=region, schedule_group=name).delete()
        Tag.objects.filter(arn=group.arn).delete()
        group.delete()
        audit.record(project, actor, "scheduler:DeleteScheduleGroup", group.arn)

    write(store)


# -- tags of groups --------------------------------------------------------------------------------


def _group_of_arn(project: Project, region: str, arn: str) -> ScheduleGroup:
    name = arn.rpartition("/")[2]
    if arn != group_arn(project, region, name):
        raise missing_resource(arn)
    return get_group(project, region, name)


GROUP_TAGS = TaggedResources("scheduler", _group_of_arn, ErrorCode.ServiceQuotaExceededException)
