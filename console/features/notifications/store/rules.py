"""Store EventBridge rules and their targets."""

from __future__ import annotations

import hashlib
import json
import re
from typing import TYPE_CHECKING, Any, Final

from django.db.models import Q

from console import arns, execution_rights
from console.db import audit, clock
from console.db.rows import storable
from console.db.writer import write
from console.errors import ConflictException, ErrorCode, ServiceError, ValidationException
from console.events import addresses
from console.features.notifications import inputs, patterns, schedules
from console.features.notifications.store.resource_tags import (
    TaggedResources,
    insert_tags,
    missing_resource,
)
from console.models import EventRule, EventTarget, StateMachine, Tag
from console.statuses import RuleState
from console.store.events import outbox

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from django.db.models import QuerySet

    from console.models import Project

MOST_RULES = 300
MOST_TARGETS = 5
_NAME = re.compile(r"[.\-_A-Za-z0-9]{1,64}")
_STATES = (RuleState.ENABLED, RuleState.DISABLED)


def arn_of(project: Project, region: str, name: str) -> str:
    """Return the ARN of a rule on the default bus."""
    partition = arns.partition_of(region)
    return f"arn:{partition}:events:{region}:{project.account_id}:rule/{name}"


def put_rule(
    project: Project,
    region: str,
    name: str,
    *,
    pattern: str = "",
    schedule: str = "",
    timezone: str = "UTC",
    state: str = RuleState.ENABLED,
    description: str = "",
    role_arn: str = "",
    tags: Mapping[str, str] | None = None,
    actor: audit.Actor = audit.NOBODY,
) -> EventRule:
    """Create or replace a rule; missing fields get their defaults.

    ``tags`` are of a new rule; they do not change the tags of an existing rule (source: API
    reference, PutRule). Raise ValidationException, InvalidEventPatternException,
    LimitExceededException.
    """
    _check(name, pattern, schedule, timezone, state)
    now_ms = clock.now_ms()
    fields: dict[str, Any] = {
        "pattern": pattern,
        "schedule": schedule,
        "timezone": timezone,
        "state": state,
        "description": description,
        "role_arn": role_arn,
    }
    _check_lengths(fields)

    def store() -> EventRule:
        of_project = bus_rules(project, region).select_for_update()
        rule = of_project.filter(name=name).first()
        if rule is None:
            rule = _new_rule(project, region, name, actor)
            insert_tags(rule.arn, tags or {}, RULE_TAGS.too_many)
        same = rule.pk is not None and (rule.schedule, rule.timezone) == (schedule, timezone)
        rule.created_ms = rule.created_ms if same else now_ms  # from here a rate counts
        for field, value in fields.items():
            setattr(rule, field, value)
        rule.edited_by = execution_rights.names_behind(actor)
        rule.next_ms = next_ms(rule)
        rule.save()
        audit.record(project, actor, "events:PutRule", rule.arn)
        outbox.forget_rules()
        return rule

    return write(store)


def _new_rule(project: Project, region: str, name: str, actor: audit.Actor) -> EventRule:
    """Return an unsaved rule, within the limit of rules."""
    if bus_rules(project, region).count() >= MOST_RULES:
        raise ServiceError(
            ErrorCode.LimitExceededException, f"There are {MOST_RULES} rules already"
        )
    arn = arn_of(project, region, name)
    return EventRule(project=project, region=region, name=name, arn=arn, created_by=actor.name)


def _check_lengths(fields: dict[str, str]) -> None:
    """Raise ValidationException for a text longer than its column."""
    for field, value in fields.items():
        column = EventRule._meta.get_field(field)  # noqa: SLF001 - Django's documented API
        most = getattr(column, "max_length", None)
        if most is not None and len(value) > most:
            raise ValidationException(
                f"{field} has {len(value)} characters; at most {most} are accepted"
            )


def save_rule(
    project: Project,
    region: str,
    name: str,
    target: dict[str, Any] | None,
    *,
    actor: audit.Actor,
    revision: str = "",
    **fields: Any,
) -> EventRule:
    """Create a rule with its first target, or change one (``target`` None), in one write.

    ``revision``: the revision that was edited, "" to skip the check for concurrent changes.
    Raise the errors of ``put_rule``, ValidationException for a taken name or an invalid target, and
    ConflictException if the rule has another revision by now.
    """

    def store() -> EventRule:
        rows = bus_rules(project, region).select_for_update()
        existing = rows.filter(name=name).first()
        if target is not None and existing is not None:
            raise ValidationException(f"Name: there is a rule '{name}' already")
        if revision and existing is not None and revision != revision_of(existing):
            raise ConflictException(f"Rule {name} was changed since")
        rule = put_rule(project, region, name, actor=actor, **fields)
        wrong = put_targets(project, region, name, [target], actor) if target else []
        if wrong:
            raise ValidationException(f"Target: {wrong[0]['ErrorMessage']}")
        return rule

    return write(store)


def revision_of(rule: EventRule) -> str:
    """Return a revision that changes with the rule's settings, except its state."""
    fields = (rule.pattern, rule.schedule, rule.timezone, rule.description)
    return hashlib.sha256("\0".join(fields).encode()).hexdigest()[:16]


def next_ms(rule: EventRule) -> int | None:
    """Return the next time of a rule or schedule, None without any."""
    if not rule.schedule or rule.state != RuleState.ENABLED:
        return None
    return moment_after(rule, clock.now_ms())


def moment_after(rule: EventRule, after_ms: int) -> int | None:
    """Return the next time (epoch ms) of a rule or schedule after a given one."""
    scheduler = bool(rule.schedule_group)
    try:
        schedule = schedules.parse_schedule(rule.schedule, rule.timezone, with_once=scheduler)
    except schedules.ScheduleError:  # stored by a version that took it
        return None
    if not scheduler:
        return schedule.next(after_ms, rule.created_ms)
    began_ms = rule.created_ms if rule.start_ms is None else rule.start_ms
    return schedules.ScheduleDates(began_ms, rule.end_ms).next(schedule, after_ms)


def _check(name: str, pattern: str, schedule: str, timezone: str, state: str) -> None:
    check_name(name)
    if not pattern and not schedule:
        msg = "Parameter(s) EventPattern or ScheduleExpression must be specified."
        raise ValidationException(msg)
    if state not in _STATES:
        raise ValidationException(f"State must be one of {', '.join(_STATES)}, not '{state}'")
    if pattern:
        check_pattern(pattern)
    if schedule:
        try:
            schedules.parse_schedule(schedule, timezone)
        except schedules.ScheduleError as error:
            msg = f"Parameter ScheduleExpression is not valid. Reason: {error}"
            raise ValidationException(msg) from None


def check_name(name: str) -> None:
    """Raise ValidationException for an invalid name of a rule or schedule."""
    if not _NAME.fullmatch(name):
        raise ValidationException(f"Name: '{name}' is not 1 to 64 of A-Z a-z 0-9 . - _")


def check_pattern(text: str) -> patterns.Pattern:
    """Return a parsed pattern; raise InvalidEventPatternException."""
    try:
        return patterns.parse_pattern(text)
    except patterns.PatternError as error:
        msg = f"Event pattern is not valid. Reason: {error}"
        raise ServiceError(ErrorCode.InvalidEventPatternException, msg) from None


def get_rule(project: Project, region: str, name: str) -> EventRule:
    """Return a rule of the project; raise ResourceNotFoundException."""
    rule = bus_rules(project, region).filter(name=name).first()
    if rule is None:
        raise _missing(name)
    return rule


def bus_rules(project: Project, region: str) -> QuerySet[EventRule]:
    """Return the rules of the event bus, without EventBridge Scheduler's schedules."""
    return EventRule.objects.filter(project=project, region=region, schedule_group="")


def _missing(name: str) -> ServiceError:
    return ServiceError(
        ErrorCode.ResourceNotFoundException, f"Rule {name} does not exist on EventBus default."
    )


def list_rules(
    project: Project, region: str, *, prefix: str = "", after: str = "", limit: int = 100
) -> list[EventRule]:
    """Return rules by name."""
    rules = bus_rules(project, region).filter(name__gt=after)
    if prefix:  # compared here: SQLite's LIKE takes _ and case otherwise than AWS
        rules = rules.filter(name__gte=prefix)
        return [rule for rule in rules.order_by("name") if rule.name.startswith(prefix)][:limit]
    return list(rules.order_by("name")[:limit])


def set_rule_state(
    project: Project, region: str, name: str, *, on: bool, actor: audit.Actor = audit.NOBODY
) -> None:
    """Enable or disable a rule; raise ResourceNotFoundException."""

    def store() -> None:
        rule = get_rule(project, region, name)
        rule.state = RuleState.ENABLED if on else RuleState.DISABLED
        changes = {"state": rule.state, "next_ms": next_ms(rule)}
        if not EventRule.objects.filter(pk=rule.pk).update(**changes):
            raise _missing(name)  # it was deleted since it was read
        action = "events:EnableRule" if on else "events:DisableRule"
        audit.record(project, actor, action, rule.arn)
        outbox.forget_rules()

    write(store)


def delete_rule(
    project: Project,
    region: str,
    name: str,
    *,
    with_targets: bool = False,
    actor: audit.Actor = audit.NOBODY,
) -> None:
    """Delete a rule; a missing one is ignored, one with targets is refused by default."""

    def store() -> None:
        rule = bus_rules(project, region).filter(name=name).first()
        if rule is None:
            return
        if not with_targets and rule.targets.exists():
            raise ValidationException("Rule can't be deleted since it has targets.")
        Tag.objects.filter(arn=rule.arn).delete()
        rule.delete()
        audit.record(project, actor, "events:DeleteRule", rule.arn)
        outbox.forget_rules()

    write(store)


# -- targets ---------------------------------------------------------------------------------------


UNTRIED: Final = {"timeouts": 0, "paused_until_ms": None}
"""Columns to reset when a target is set again: failures at its former address no longer count."""


def put_targets(
    project: Project,
    region: str,
    name: str,
    targets: Sequence[dict[str, Any]],
    actor: audit.Actor = audit.NOBODY,
) -> list[dict[str, str]]:
    """Add or change targets of a rule by Id (EventBridge's Target each).

    Return the targets that are wrong: TargetId, ErrorCode, ErrorMessage of each.
    """
    problems = ((target["Id"], target_problem(project, region, target)) for target in targets)
    wrong = {number: problem for number, problem in problems if problem}
    good = [target for target in targets if target["Id"] not in wrong]

    def store() -> None:
        rule = get_rule(project, region, name)
        ids = {target["Id"] for target in good}
        others = rule.targets.exclude(target_id__in=ids).count()
        if others + len(ids) > MOST_TARGETS:
            msg = f"The requested resource exceeds the maximum number allowed: {MOST_TARGETS}"
            raise ServiceError(ErrorCode.LimitExceededException, msg)
        for target in good:
            more = {key: value for key, value in target.items() if key not in ("Id", "Arn")}
            EventTarget.objects.update_or_create(
                rule=rule,
                target_id=target["Id"],
                defaults={
                    "address": target["Arn"],
                    "settings": json.dumps(more),
                    **UNTRIED,
                },
            )
        edited_by = execution_rights.names_behind(actor)
        EventRule.objects.filter(pk=rule.pk).update(edited_by=edited_by)
        audit.record(project, actor, "events:PutTargets", rule.arn, ", ".join(sorted(ids)))

    write(store)
    code = "ValidationException"
    return [
        {"TargetId": number, "ErrorCode": code, "ErrorMessage": problem}
        for number, problem in wrong.items()
    ]


def target_problem(project: Project, region: str, target: dict[str, Any]) -> str:
    """Return the error in a target, "" if it is valid."""
    try:
        kind = addresses.address_kind(target["Arn"])
        inputs.check_input(target)
    except (addresses.AddressError, inputs.InputError) as error:
        return str(error)
    queue = (target.get("DeadLetterConfig") or {}).get("Arn")
    if queue and not re.match(r"arn:aws[a-z-]*:sqs:", queue):
        return f"DeadLetterConfig: '{queue}' is not the ARN of an SQS queue"
    if kind == "machine":
        machine = ":".join(target["Arn"].split(":")[:7])
        machines = StateMachine.objects.filter(project=project, region=region, arn=machine)
        if not machines.exists():
            return f"State Machine Does Not Exist: '{machine}'"
    return ""


def remove_targets(
    project: Project,
    region: str,
    name: str,
    ids: Sequence[str],
    actor: audit.Actor = audit.NOBODY,
) -> list[str]:
    """Remove targets and their waiting deliveries; return the unknown ids."""

    def store() -> list[str]:
        rule = get_rule(project, region, name)
        known_ids = set(rule.targets.filter(target_id__in=ids).values_list("target_id", flat=True))
        rule.targets.filter(target_id__in=known_ids).delete()
        audit.record(project, actor, "events:RemoveTargets", rule.arn, ", ".join(sorted(known_ids)))
        return [target_id for target_id in ids if target_id not in known_ids]

    return write(store)


def rules_of_target(project: Project, region: str, address: str) -> list[str]:
    """Return the names of the rules that send to an address."""
    address = storable(address)  # no stored address has a NUL, and PostgreSQL takes none
    rules = bus_rules(project, region).filter(targets__address=address)
    return list(rules.order_by("name").values_list("name", flat=True).distinct())


def rules_that_start(project: Project, region: str, machine_arn: str) -> list[EventRule]:
    """Return the rules, then the Scheduler's schedules, that start a state machine.

    Targets with one of its versions or aliases, and universal targets, are included.
    """
    named = Q(address=machine_arn) | Q(address__startswith=f"{machine_arn}:")
    universal = Q(address__endswith=addresses.UNIVERSAL_END, settings__contains=machine_arn)
    targets = EventTarget.objects.filter(
        named | universal, rule__project=project, rule__region=region
    ).select_related("rule")
    starting = {
        target.rule_id: target.rule for target in targets if starts_machine(target, machine_arn)
    }
    return sorted(
        starting.values(), key=lambda rule: (rule.schedule_group, rule.schedule_name, rule.name)
    )


def starts_machine(target: EventTarget, machine_arn: str) -> bool:
    """Whether a target starts a state machine, or its version or alias."""
    arn = target.address
    if addresses.is_universal(arn):
        if machine_arn not in target.settings:
            return False
        parameters = json.loads(json.loads(target.settings)["Input"])  # checked when it was stored
        arn = str(parameters.get("StateMachineArn", ""))
    return arn == machine_arn or arn.startswith(f"{machine_arn}:")


# -- tags ------------------------------------------------------------------------------------------


def _rule_of_arn(project: Project, region: str, arn: str) -> EventRule:
    rule = bus_rules(project, region).filter(arn=storable(arn)).first()
    if rule is None:
        raise missing_resource(arn)
    return rule


RULE_TAGS = TaggedResources("events", _rule_of_arn, ErrorCode.ValidationException)
