"""EventBridge actions (service ``events``) on rules, targets and events of the default bus."""

from __future__ import annotations

import json
import uuid
from typing import TYPE_CHECKING, Any

from django.conf import settings

import engine
from console import access
from console.awsapi import paging
from console.awsapi.members import reads
from console.awsapi.operations.call import present
from console.db import audit, clock
from console.db.writer import write
from console.errors import ErrorCode, InvalidToken, ServiceError, ValidationException
from console.events import body
from console.features.notifications import patterns
from console.features.notifications.operations.resource_tags import requested_tags, tag_handlers
from console.features.notifications.store import rules
from console.features.notifications.target_inputs import mask_target_settings
from console.integrations.event_buses import DEFAULT_BUS, bus_arn
from console.integrations.redaction import without_secrets
from console.store.events import outbox

if TYPE_CHECKING:
    from collections.abc import Callable

    from console.awsapi.operations.call import Call
    from console.models import EventRule, EventTarget

_PAGE = 100
_MOST_BYTES = 256 * 1024
_DEEPEST = 499
INJECT = "events:InjectAwsEvents"
"""The additional right to put events in the name of an AWS service."""
_EVENT = ("id", "account", "source", "time", "region", "resources", "detail-type")


def _check_bus(call: Call) -> None:
    """Raise unless the bus, by name or ARN, is the default bus."""
    if not _is_default(call, call.params.get("EventBusName")):
        name = call.params["EventBusName"]
        raise ServiceError(ErrorCode.ResourceNotFoundException, f"Event bus {name} does not exist.")


def _is_default(call: Call, bus: str | None) -> bool:
    return bus in (None, DEFAULT_BUS, bus_arn(call.region, call.project.account_id))


# -- events ----------------------------------------------------------------------------------------


@reads(
    "Entries.Time Entries.Source Entries.Resources Entries.DetailType Entries.Detail "
    "Entries.EventBusName"
)
def put_events(call: Call) -> dict[str, Any]:
    """PutEvents: each entry by itself; events that match no rule are accepted and dropped."""
    entries = call.params["Entries"]
    if sum(_size(entry) for entry in entries) > _MOST_BYTES:
        msg = "Total size of the entries in the request is over the limit."
        raise ValidationException(msg)
    answers = [_answer(call, entry) for entry in entries]
    good = [
        (entry, answer["EventId"], _event(call, entry, answer["EventId"]))
        for entry, answer in zip(entries, answers, strict=True)
        if "EventId" in answer and _is_default(call, entry.get("EventBusName"))
    ]

    has_rules = outbox.has_rules(call.project.pk)
    injected = [entry for entry, _, _ in good if _is_injected(entry)]

    def store() -> None:
        for entry, event_id, text in good if has_rules else ():
            about = (entry.get("Resources") or [entry["Source"]])[0]
            where = {"region": call.region, "about": about}
            sender = call.actor.name
            outbox.put_event(call.project.pk, event_id, text, **where, sent_by=sender)
        for entry in injected:
            audit.record(
                call.project, call.actor, INJECT, entry["Source"], reason=entry["DetailType"]
            )

    if (good and has_rules) or injected:
        write(store)
    failed = sum("ErrorCode" in answer for answer in answers)
    return {"FailedEntryCount": failed, "Entries": answers}


def _size(entry: dict[str, Any]) -> int:
    """Return the size of an entry. Source: "Calculating PutEvents event entry size"."""
    texts = [entry.get(name) or "" for name in ("Source", "DetailType", "Detail")]
    texts += entry.get("Resources") or []
    return sum(len(text.encode()) for text in texts) + (14 if entry.get("Time") else 0)


def _is_injected(entry: dict[str, Any]) -> bool:
    """Whether an entry's source is a service of AWS."""
    return bool(entry["Source"].startswith("aws."))


def _may_inject(call: Call, source: str) -> bool:
    """Whether the caller may use that source; this server's own events cannot be forged."""
    allowed = settings.STATEYARD_INJECT_AWS_EVENTS and access.is_allowed(call.principal, INJECT)
    return allowed and source != body.SOURCE


def _answer(call: Call, entry: dict[str, Any]) -> dict[str, Any]:
    """Return the event id of an entry, or its error."""
    for name in ("Source", "DetailType", "Detail"):
        if not entry.get(name):
            return _refused(
                "InvalidArgument",
                f"Parameter {name} is not valid. Reason: {name} is a required argument.",
            )
    if _is_injected(entry) and not _may_inject(call, entry["Source"]):
        return _refused("NotAuthorizedForSourceException", "Not authorized for the source.")
    try:
        # no deeper than an execution's input may be that holds the whole event
        detail = engine.loads(entry["Detail"], max_depth=_DEEPEST)
    except engine.JsonTextError:
        detail = None
    if not isinstance(detail, dict):
        return _refused("MalformedDetail", "Detail is malformed.")
    return {"EventId": str(uuid.uuid4())}


def _refused(code: str, message: str) -> dict[str, Any]:
    return {"ErrorCode": code, "ErrorMessage": message}


def _event(call: Call, entry: dict[str, Any], event_id: str) -> str:
    moment = entry.get("Time")
    return body.event_text(
        event_id,
        call.project.account_id,
        call.region,
        source=entry["Source"],
        detail_type=entry["DetailType"],
        at_ms=clock.now_ms() if moment is None else _epoch_ms(moment),
        resources=entry.get("Resources") or [],
        detail=json.loads(entry["Detail"]),
        injected_by=call.actor.name if _is_injected(entry) else "",
    )


def _epoch_ms(seconds: float) -> int:
    """Return an entry's time in epoch milliseconds, within the range of a date."""
    if not 0 <= seconds < 253_402_300_800:  # noqa: PLR2004 - the year 10000
        raise ValidationException("Time must be seconds of the years 1970 to 9999")
    return int(seconds * 1000)


@reads("EventPattern Event")
def check_pattern(call: Call) -> dict[str, Any]:
    """TestEventPattern."""
    pattern = rules.check_pattern(call.params["EventPattern"])
    try:
        event = json.loads(call.params["Event"])
    except (ValueError, RecursionError) as error:
        raise ValidationException(f"Parameter Event is not valid. Reason: {error}") from None
    missing = [name for name in _EVENT if not isinstance(event, dict) or name not in event]
    if missing:
        reason = f"The event lacks {', '.join(missing)}"
        raise ValidationException(f"Parameter Event is not valid. Reason: {reason}")
    try:
        return {"Result": pattern.matches(call.params["Event"])}
    except patterns.PatternError as error:
        raise ValidationException(f"Parameter Event is not valid. Reason: {error}") from None


# -- rules -----------------------------------------------------------------------------------------


@reads(
    "Name ScheduleExpression EventPattern State Description RoleArn Tags.Key Tags.Value "
    "EventBusName"
)
def put_rule(call: Call) -> dict[str, Any]:
    """PutRule."""
    _check_bus(call)
    params = call.params
    rule = rules.put_rule(
        call.project,
        call.region,
        params["Name"],
        pattern=params.get("EventPattern") or "",
        schedule=params.get("ScheduleExpression") or "",
        state=params.get("State") or "ENABLED",
        description=params.get("Description") or "",
        role_arn=params.get("RoleArn") or "",
        tags=requested_tags(call),
        actor=call.actor,
    )
    return {"RuleArn": rule.arn}


def _shown(rule: EventRule) -> dict[str, Any]:
    return present(
        Name=rule.name,
        Arn=rule.arn,
        EventPattern=rule.pattern or None,
        ScheduleExpression=rule.schedule or None,
        State=rule.state,
        Description=rule.description or None,
        RoleArn=rule.role_arn or None,
        EventBusName=DEFAULT_BUS,
    )


@reads("Name EventBusName")
def describe_rule(call: Call) -> dict[str, Any]:
    """DescribeRule."""
    _check_bus(call)
    rule = rules.get_rule(call.project, call.region, call.params["Name"])
    return {**_shown(rule), "CreatedBy": call.project.account_id}


@reads("NamePrefix EventBusName NextToken Limit")
def list_rules(call: Call) -> dict[str, Any]:
    """ListRules, by name."""
    _check_bus(call)
    limit = call.params.get("Limit") or _PAGE
    rows = rules.list_rules(
        call.project,
        call.region,
        prefix=call.params.get("NamePrefix") or "",
        after=_position(call) or "",
        limit=limit + 1,
    )
    return _page(call, "Rules", [(rule.name, _shown(rule)) for rule in rows], limit)


@reads("TargetArn EventBusName NextToken Limit")
def list_names_by_target(call: Call) -> dict[str, Any]:
    """ListRuleNamesByTarget."""
    _check_bus(call)
    limit, after = call.params.get("Limit") or _PAGE, _position(call) or ""
    names = rules.rules_of_target(call.project, call.region, call.params["TargetArn"])
    return _page(call, "RuleNames", [(name, name) for name in names if name > after], limit)


def _position(call: Call) -> Any:
    params = call.params
    if params.get("NextToken") is None:
        return None
    try:
        return paging.open_position(call, {**_query(call), "nextToken": params["NextToken"]})
    except InvalidToken:
        raise ValidationException("Parameter NextToken is not valid.") from None


def _query(call: Call) -> dict[str, Any]:
    return {
        name: value for name, value in call.params.items() if name not in ("NextToken", "Limit")
    }


def _page(call: Call, member: str, rows: list[tuple[str, Any]], limit: int) -> dict[str, Any]:
    answer: dict[str, Any] = {member: [shown for _, shown in rows[:limit]]}
    if len(rows) > limit:
        answer["NextToken"] = paging.seal_position(call, _query(call), rows[limit - 1][0])
    return answer


@reads("Name EventBusName")
def enable_rule(call: Call) -> dict[str, Any]:
    """EnableRule."""
    _check_bus(call)
    rules.set_rule_state(call.project, call.region, call.params["Name"], on=True, actor=call.actor)
    return {}


@reads("Name EventBusName")
def disable_rule(call: Call) -> dict[str, Any]:
    """DisableRule."""
    _check_bus(call)
    rules.set_rule_state(call.project, call.region, call.params["Name"], on=False, actor=call.actor)
    return {}


@reads("Name EventBusName", {"Force": "it is for managed rules, and there are none"})
def delete_rule(call: Call) -> dict[str, Any]:
    """DeleteRule."""
    _check_bus(call)
    rules.delete_rule(call.project, call.region, call.params["Name"], actor=call.actor)
    return {}


# -- targets ---------------------------------------------------------------------------------------


@reads(
    "Rule EventBusName Targets.Id Targets.Arn Targets.RoleArn Targets.Input "
    "Targets.InputPath Targets.InputTransformer.InputPathsMap "
    "Targets.InputTransformer.InputTemplate Targets.SqsParameters.MessageGroupId "
    "Targets.DeadLetterConfig.Arn Targets.RetryPolicy.MaximumRetryAttempts "
    "Targets.RetryPolicy.MaximumEventAgeInSeconds"
)
def put_targets(call: Call) -> dict[str, Any]:
    """PutTargets: each target by itself."""
    _check_bus(call)
    params = call.params
    ids = [target["Id"] for target in params["Targets"]]
    if len(set(ids)) < len(ids):
        raise ValidationException("An Id is repeated among the targets.")
    wrong = rules.put_targets(
        call.project, call.region, params["Rule"], params["Targets"], call.actor
    )
    return {"FailedEntryCount": len(wrong), "FailedEntries": wrong}


@reads("Rule EventBusName Ids", {"Force": "it is for managed rules, and there are none"})
def remove_targets(call: Call) -> dict[str, Any]:
    """RemoveTargets: missing targets count as removed."""
    _check_bus(call)
    params = call.params
    rules.remove_targets(call.project, call.region, params["Rule"], params["Ids"], call.actor)
    return {"FailedEntryCount": 0, "FailedEntries": []}


@reads("Rule EventBusName NextToken Limit")
def list_targets(call: Call) -> dict[str, Any]:
    """ListTargetsByRule."""
    _check_bus(call)
    rule = rules.get_rule(call.project, call.region, call.params["Rule"])
    limit, after = call.params.get("Limit") or _PAGE, _position(call) or ""
    targets = rule.targets.filter(target_id__gt=after).order_by("target_id")[: limit + 1]
    return _page(
        call, "Targets", [(target.target_id, _target(call, target)) for target in targets], limit
    )


def _target(call: Call, target: EventTarget) -> dict[str, Any]:
    """Return a target: complete for editors, for others without secrets and masked values."""
    settings = json.loads(target.settings)
    if access.is_allowed(call.principal, "events:PutTargets"):
        return {"Id": target.target_id, "Arn": target.address, **settings}
    settings = mask_target_settings(call.project, settings)
    settings.pop("HttpParameters", None)
    return {"Id": target.target_id, "Arn": without_secrets(target.address), **settings}


HANDLERS: dict[str, Callable[[Call], dict[str, Any]]] = {
    "PutEvents": put_events,
    "PutRule": put_rule,
    "DeleteRule": delete_rule,
    "DescribeRule": describe_rule,
    "ListRules": list_rules,
    "ListRuleNamesByTarget": list_names_by_target,
    "EnableRule": enable_rule,
    "DisableRule": disable_rule,
    "PutTargets": put_targets,
    "RemoveTargets": remove_targets,
    "ListTargetsByRule": list_targets,
    "TestEventPattern": check_pattern,
    **tag_handlers(rules.RULE_TAGS, "ResourceARN"),
}
