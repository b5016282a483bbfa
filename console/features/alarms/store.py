"""Store alarms, and publish changes of their state as events.

The event "CloudWatch Alarm State Change" is written in the transaction of the new state. A change
is only written if the alarm is unchanged since it was read, so that only one of two concurrent
evaluations writes and publishes:

    1. A and B read the alarm, OK since 10:00.    2. A writes ALARM since 10:05, and the event.
    3. B's update asks for an alarm that is OK since 10:00 and changes no row: no second event.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from console import arns
from console.db import audit, clock
from console.db.rows import storable
from console.db.writer import write
from console.errors import ConflictException, ErrorCode, ServiceError
from console.events import body
from console.features.alarms.models import Alarm, AlarmChange
from console.features.metrics.names import NAMESPACE
from console.statuses import AlarmKind, AlarmState
from console.store.events import outbox

if TYPE_CHECKING:
    from collections.abc import Collection

    from django.db.models import QuerySet

    from console.models import Project

MOST_ALARMS = 500
"""The maximum number of alarms of a project in a region."""
MOST_CHANGES = 100
"""The number of latest state changes that are kept per alarm."""
LONGEST_NAME = 255
_REASON = 1_023
_UNCHECKED = "Unchecked: Initial alarm creation"


def alarm_arn(project: Project, region: str, name: str) -> str:
    """Return the ARN of an alarm."""
    place = f"arn:{arns.partition_of(region)}:cloudwatch:{region}:{project.account_id}"
    return f"{place}:alarm:{name}"


def alarms_of(project: Project, region: str) -> QuerySet[Alarm]:
    """Return the alarms of a project in a region."""
    return Alarm.objects.filter(project=project, region=region)


def put_alarm(
    project: Project,
    region: str,
    name: str,
    fields: dict[str, Any],
    *,
    actor: audit.Actor,
    revision: str | None = None,
) -> Alarm:
    """Create or replace an alarm; the state stays.

    ``fields``: checked columns of ``Alarm``. ``revision``: the revision of the alarm that the form
    showed, "" for a new alarm, None for no check. Raise InvalidParameterValue, or LimitExceeded if
    there are too many.
    """
    _check_name(name)
    now_ms = clock.now_ms()

    def store() -> Alarm:
        rows = alarms_of(project, region).select_for_update()
        alarm = rows.filter(name=name).first()
        _check_revision(alarm, name, revision)
        if alarm is None:
            if rows.count() >= MOST_ALARMS:
                raise ServiceError(
                    ErrorCode.LimitExceeded, f"There are {MOST_ALARMS} alarms already"
                )
            alarm = Alarm(
                project=project,
                region=region,
                name=name,
                arn=alarm_arn(project, region, name),
                reason=_UNCHECKED,
                state_ms=now_ms,
                created_ms=now_ms,
                created_by=actor.name,
            )
        elif alarm.kind != fields.get("kind", AlarmKind.METRIC):
            raise ServiceError(
                ErrorCode.InvalidParameterValue,
                f"The alarm {name} is of the kind {alarm.kind}: delete it to change the kind",
            )
        for field, value in fields.items():
            setattr(alarm, field, storable(value) if isinstance(value, str) else value)
        alarm.updated_ms = max(now_ms, (alarm.updated_ms or 0) + 1)
        alarm.save()
        audit.record(project, actor, "monitoring:PutMetricAlarm", alarm.arn)
        return alarm

    return write(store)


def revision_of(alarm: Alarm) -> str:
    """Return a revision that changes with every edit by a person."""
    return str(alarm.updated_ms)


def _check_name(name: str) -> None:
    if not 1 <= len(name) <= LONGEST_NAME or not name.isprintable():
        raise ServiceError(
            ErrorCode.InvalidParameterValue,
            f"AlarmName must have 1 to {LONGEST_NAME} visible characters",
        )


def _check_revision(alarm: Alarm | None, name: str, revision: str | None) -> None:
    """Refuse a change based on another revision of the alarm."""
    if revision is None or revision == ("" if alarm is None else revision_of(alarm)):
        return
    if alarm is not None and revision:
        raise ConflictException(f"The alarm {name} was changed meanwhile")
    problem = "was deleted meanwhile" if alarm is None else "exists already"
    raise ServiceError(ErrorCode.InvalidParameterValue, f"The alarm {name} {problem}")


def delete_alarms(
    project: Project, region: str, names: Collection[str], *, actor: audit.Actor
) -> None:
    """Delete alarms, all or none; raise ResourceNotFound."""

    def store() -> None:
        alarms = list(alarms_of(project, region).select_for_update().filter(name__in=names))
        missing = sorted(set(names) - {alarm.name for alarm in alarms})
        if missing:
            raise ServiceError(ErrorCode.ResourceNotFound, f"There is no alarm {missing[0]}")
        for alarm in alarms:
            audit.record(project, actor, "monitoring:DeleteAlarms", alarm.arn)
            alarm.delete()

    write(store)


def set_alarm_state(
    project: Project,
    region: str,
    name: str,
    state: str,
    reason: str,
    reason_data: str = "",
    *,
    actor: audit.Actor,
) -> None:
    """Set an alarm's state until its next evaluation; raise ResourceNotFound."""

    def store() -> None:
        alarm = alarms_of(project, region).select_for_update().filter(name=name).first()
        if alarm is None:
            raise ServiceError(ErrorCode.ResourceNotFound, f"There is no alarm {name}")
        alarm.project = project
        audit.record(project, actor, "monitoring:SetAlarmState", alarm.arn, f"{state}: {reason}")
        _change(alarm, AlarmState(state), reason, reason_data, actor.name)

    write(store)


def change_state(alarm: Alarm, state: AlarmState, reason: str) -> bool:
    """Store an alarm's new state and publish it; return whether this call changed it.

    ``alarm``: as it was read before it was evaluated. While the state stays the same, the reason
    stays, too. Only an alarm with too little data gets the new reason: otherwise a new alarm would
    seem unchecked until there are data.
    """
    if alarm.state == state:
        if state is AlarmState.INSUFFICIENT_DATA and alarm.reason != storable(reason[:_REASON]):
            write(lambda: _as_read(alarm).update(reason=storable(reason[:_REASON])))
        return False
    return write(lambda: _change(alarm, state, reason, ""))


def _as_read(alarm: Alarm) -> QuerySet[Alarm]:
    """Return the query of the alarm, unless it has changed since it was read."""
    return Alarm.objects.filter(
        pk=alarm.pk, state=alarm.state, state_ms=alarm.state_ms, updated_ms=alarm.updated_ms
    )


def _change(
    alarm: Alarm, state: AlarmState, reason: str, reason_data: str, actor: str = ""
) -> bool:
    now_ms = max(clock.now_ms(), alarm.state_ms + 1)
    reason = storable(reason[:_REASON])
    written = _as_read(alarm).update(
        state=state, reason=reason, reason_data=storable(reason_data), state_ms=now_ms
    )
    if written and alarm.state != state:
        _keep_change(alarm, state, reason, now_ms, actor)
    if written and alarm.enabled and alarm.state != state and outbox.has_rules(alarm.project_id):
        event_id = body.stable_id(alarm.arn, now_ms, state)
        text = _event(alarm, event_id, state, reason, now_ms)
        outbox.put_event(alarm.project_id, event_id, text, region=alarm.region, about=alarm.arn)
    return bool(written)


def _keep_change(alarm: Alarm, state: AlarmState, reason: str, now_ms: int, actor: str) -> None:
    """Add a change to an alarm's history, and drop the oldest beyond the limit."""
    AlarmChange.objects.create(
        alarm=alarm, at_ms=now_ms, before=alarm.state, state=state, reason=reason, actor=actor
    )
    changes = AlarmChange.objects.filter(alarm=alarm)
    oldest = changes.order_by("-pk").values_list("pk", flat=True)[MOST_CHANGES - 1 : MOST_CHANGES]
    for number in oldest:
        changes.filter(pk__lt=number).delete()


def _event(alarm: Alarm, event_id: str, state: str, reason: str, now_ms: int) -> str:
    """Return the event "CloudWatch Alarm State Change", with the state machine in its resources."""
    before = {
        "value": alarm.state,
        "reason": alarm.reason,
        "timestamp": body.time_text(alarm.state_ms),
    }
    detail: dict[str, Any] = {
        "alarmName": alarm.name,
        "state": {"value": state, "reason": reason, "timestamp": body.time_text(now_ms)},
        "previousState": before,
        "configuration": {"description": alarm.description, "metrics": _metrics(alarm)},
    }
    machine = alarm.machine.arn if alarm.machine is not None else ""
    return body.event_text(
        event_id,
        alarm.project.account_id,
        alarm.region,
        source=body.ALARM_SOURCE,
        detail_type=body.ALARM_DETAIL_TYPE,
        at_ms=now_ms,
        resources=[alarm.arn, *([machine] if machine else [])],
        detail=detail,
    )


def _metrics(alarm: Alarm) -> list[dict[str, Any]]:
    if alarm.kind != AlarmKind.METRIC:
        return []
    dimensions = {each["Name"]: each["Value"] for each in json.loads(alarm.dimensions)}
    metric = {"namespace": NAMESPACE, "name": alarm.metric, "dimensions": dimensions}
    stat = {"metric": metric, "period": alarm.period_s, "stat": alarm.statistic}
    return [{"id": "m1", "metricStat": stat, "returnData": True}]
