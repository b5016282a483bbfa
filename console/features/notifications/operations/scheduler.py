"""EventBridge Scheduler actions (service ``scheduler``) on schedules and schedule groups."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from console import access
from console.awsapi import paging
from console.awsapi.members import reads
from console.awsapi.operations.call import present, seconds
from console.errors import InvalidToken, ValidationException
from console.features.notifications.operations.resource_tags import requested_tags, tag_handlers
from console.features.notifications.store import scheduler
from console.features.notifications.target_inputs import mask_target_settings
from console.integrations.redaction import without_secrets
from console.statuses import AfterCompletion, RuleState

if TYPE_CHECKING:
    from collections.abc import Callable

    from console.awsapi.operations.call import Call
    from console.models import EventRule, EventTarget, ScheduleGroup

_PAGE = 100
_SCHEDULE_MEMBERS = (
    "Name GroupName ScheduleExpression ScheduleExpressionTimezone StartDate EndDate "
    "Description State KmsKeyArn ActionAfterCompletion FlexibleTimeWindow.Mode "
    "FlexibleTimeWindow.MaximumWindowInMinutes Target.Arn Target.RoleArn Target.Input "
    "Target.DeadLetterConfig.Arn Target.RetryPolicy.MaximumEventAgeInSeconds "
    "Target.RetryPolicy.MaximumRetryAttempts Target.EventBridgeParameters.DetailType "
    "Target.EventBridgeParameters.Source Target.SqsParameters.MessageGroupId "
    # these are refused where pages and deployments refuse them, too
    "Target.EcsParameters Target.KinesisParameters Target.SageMakerPipelineParameters "
    "Target.EventBridgePutEventsV2Parameters Target.EventBridgePutRawEventsParameters"
)
_RETRY_POLICY = {"MaximumEventAgeInSeconds": 86_400, "MaximumRetryAttempts": 185}
_WINDOW_PROBLEM = (
    "FlexibleTimeWindow: MaximumWindowInMinutes is for the Mode FLEXIBLE, and required there."
)


# -- schedules -------------------------------------------------------------------------------------


@reads(f"{_SCHEDULE_MEMBERS} ClientToken")
def create_schedule(call: Call) -> dict[str, Any]:
    """CreateSchedule."""
    token = call.params.get("ClientToken") or ""
    row = scheduler.create_schedule(_schedule_key(call), _settings(call), token, call.actor)
    return {"ScheduleArn": row.arn}


@reads(_SCHEDULE_MEMBERS, {"ClientToken": "the same update again changes nothing"})
def update_schedule(call: Call) -> dict[str, Any]:
    """UpdateSchedule: missing settings return to their defaults."""
    return {
        "ScheduleArn": scheduler.update_schedule(
            _schedule_key(call), _settings(call), call.actor
        ).arn
    }


@reads("Name GroupName", {"ClientToken": "the same deletion again finds no schedule"})
def delete_schedule(call: Call) -> dict[str, Any]:
    """DeleteSchedule."""
    scheduler.delete_schedule(_schedule_key(call), call.actor)
    return {}


def _schedule_key(call: Call) -> scheduler.ScheduleKey:
    group = call.params.get("GroupName") or scheduler.DEFAULT_GROUP
    return scheduler.ScheduleKey(call.project, call.region, group, call.params["Name"])


def _settings(call: Call) -> scheduler.ScheduleSettings:
    params = call.params
    return scheduler.ScheduleSettings(
        schedule=params["ScheduleExpression"],
        target=params["Target"],
        timezone=params.get("ScheduleExpressionTimezone") or "UTC",
        state=params.get("State") or RuleState.ENABLED,
        description=params.get("Description") or "",
        start_ms=_epoch_ms(params, "StartDate"),
        end_ms=_epoch_ms(params, "EndDate"),
        window_minutes=_window_minutes(params["FlexibleTimeWindow"]),
        after_completion=params.get("ActionAfterCompletion") or AfterCompletion.NONE,
        kms_key_arn=params.get("KmsKeyArn") or "",
    )


def _epoch_ms(params: dict[str, Any], name: str) -> int | None:
    value = params.get(name)
    return None if value is None else int(value * 1000)


def _window_minutes(window: dict[str, Any]) -> int:
    minutes = window.get("MaximumWindowInMinutes")
    if (window["Mode"] == "FLEXIBLE") != (minutes is not None):
        raise ValidationException(_WINDOW_PROBLEM)
    return minutes or 0


@reads("Name GroupName")
def get_schedule(call: Call) -> dict[str, Any]:
    """GetSchedule."""
    row = scheduler.get_schedule(_schedule_key(call))
    window: dict[str, Any] = {"Mode": "OFF"}
    if row.window_minutes:
        window = {"Mode": "FLEXIBLE", "MaximumWindowInMinutes": row.window_minutes}
    return {
        **_item(call, row),
        **present(
            Description=row.description or None,
            StartDate=None if row.start_ms is None else seconds(row.start_ms),
            EndDate=None if row.end_ms is None else seconds(row.end_ms),
            KmsKeyArn=row.kms_key_arn or None,
        ),
        "ScheduleExpression": row.schedule,
        "ScheduleExpressionTimezone": row.timezone,
        "FlexibleTimeWindow": window,
        "ActionAfterCompletion": row.after_completion,
        "Target": _target(call, scheduler.target_of(row)),
    }


def _target(call: Call, target: EventTarget) -> dict[str, Any]:
    settings = json.loads(target.settings)
    policy = {**_RETRY_POLICY, **(settings.pop("RetryPolicy", None) or {})}
    if not _may_change(call):
        settings = mask_target_settings(call.project, settings)
    return {"Arn": _address(call, target), "RetryPolicy": policy, **settings}


def _may_change(call: Call) -> bool:
    return access.is_allowed(call.principal, "scheduler:UpdateSchedule")


def _address(call: Call, target: EventTarget) -> str:
    """Return the target's address, with its secrets only for users who may edit the schedule."""
    return target.address if _may_change(call) else without_secrets(target.address)


def _item(call: Call, row: EventRule) -> dict[str, Any]:
    """Return a schedule as ListSchedules shows it."""
    return {
        "Arn": row.arn,
        "Name": row.schedule_name,
        "GroupName": row.schedule_group,
        "State": row.state,
        "CreationDate": seconds(row.created_ms),
        "LastModificationDate": seconds(row.updated_ms or row.created_ms),
        "Target": {"Arn": _address(call, scheduler.target_of(row))},
    }


@reads("GroupName NamePrefix State NextToken MaxResults")
def list_schedules(call: Call) -> dict[str, Any]:
    """ListSchedules, by group and name."""
    params = call.params
    limit = params.get("MaxResults") or _PAGE
    rows = scheduler.list_schedules(
        call.project,
        call.region,
        group=params.get("GroupName") or "",
        prefix=params.get("NamePrefix") or "",
        state=params.get("State") or "",
        after=_position(call),
        limit=limit + 1,
    )
    answer: dict[str, Any] = {"Schedules": [_item(call, row) for row in rows[:limit]]}
    if len(rows) > limit:
        last = rows[limit - 1]
        answer["NextToken"] = _token(call, [last.schedule_group, last.schedule_name])
    return answer


# -- groups ----------------------------------------------------------------------------------------


@reads("Name Tags.Key Tags.Value", {"ClientToken": "the same group again is a conflict"})
def create_group(call: Call) -> dict[str, Any]:
    """CreateScheduleGroup."""
    group = scheduler.create_group(
        call.project, call.region, call.params["Name"], requested_tags(call), call.actor
    )
    return {"ScheduleGroupArn": group.arn}


@reads("Name")
def get_group(call: Call) -> dict[str, Any]:
    """GetScheduleGroup."""
    return _group(scheduler.get_group(call.project, call.region, call.params["Name"]))


@reads("NamePrefix NextToken MaxResults")
def list_groups(call: Call) -> dict[str, Any]:
    """ListScheduleGroups, by name."""
    limit = call.params.get("MaxResults") or _PAGE
    groups = scheduler.list_groups(
        call.project,
        call.region,
        prefix=call.params.get("NamePrefix") or "",
        after=_position(call) or "",
        limit=limit + 1,
    )
    answer: dict[str, Any] = {"ScheduleGroups": [_group(group) for group in groups[:limit]]}
    if len(groups) > limit:
        answer["NextToken"] = _token(call, groups[limit - 1].name)
    return answer


def _group(group: ScheduleGroup) -> dict[str, Any]:
    return {
        "Arn": group.arn,
        "Name": group.name,
        "State": "ACTIVE",
        "CreationDate": seconds(group.created_ms),
        "LastModificationDate": seconds(group.created_ms),
    }


@reads("Name", {"ClientToken": "the same deletion again finds no group"})
def delete_group(call: Call) -> dict[str, Any]:
    """DeleteScheduleGroup, with its schedules."""
    scheduler.delete_group(call.project, call.region, call.params["Name"], call.actor)
    return {}


# -- pages of lists --------------------------------------------------------------------------------


def _position(call: Call) -> Any:
    """Return the position in NextToken: the last item of the previous page, or None."""
    token = call.params.get("NextToken")
    try:
        return paging.open_position(call, {**_query(call), "nextToken": token})
    except InvalidToken:
        raise ValidationException("Invalid NextToken.") from None


def _token(call: Call, position: Any) -> str:
    """Return a NextToken for the same list with any page size."""
    return paging.seal_position(call, _query(call), position)


def _query(call: Call) -> dict[str, Any]:
    of_the_page = ("NextToken", "MaxResults")
    return {name: value for name, value in call.params.items() if name not in of_the_page}


HANDLERS: dict[str, Callable[[Call], dict[str, Any]]] = {
    "CreateSchedule": create_schedule,
    "CreateScheduleGroup": create_group,
    "DeleteSchedule": delete_schedule,
    "DeleteScheduleGroup": delete_group,
    "GetSchedule": get_schedule,
    "GetScheduleGroup": get_group,
    "ListScheduleGroups": list_groups,
    "ListSchedules": list_schedules,
    "UpdateSchedule": update_schedule,
    **tag_handlers(scheduler.GROUP_TAGS, "ResourceArn"),
}
