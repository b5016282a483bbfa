"""Compare a project with a server, and make the difference."""

from __future__ import annotations

import difflib
import hashlib
import json
from dataclasses import dataclass, field
from enum import StrEnum
from functools import partial
from typing import TYPE_CHECKING, Any

from botocore.exceptions import BotoCoreError, ClientError
from botocore.utils import parse_timestamp

from console.config import former_name

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from console.cli.connection import Connection
    from console.cli.sources import MachineSource, RuleSource, ScheduleSource, SourceProject

DEPLOYED = "stateyard:deployed"
"""Key of the tag with the SHA-256 of the text that was deployed, by which a page shows drift."""
SOURCE = "stateyard:source"
"""Key of the tag with the ARN that the deployed definition was pulled from, on another server."""
STACK = "stateyard:stack"
"""Key of the tag that says which stack a state machine belongs to: only ``--prune`` reads it."""
_UNREGISTERED = "FUNCTION_NOT_REGISTERED"
"""Code of the diagnostic of a Stateyard server for a function that nobody registered."""
_ROLE = "stateyard"
_TARGETS_AT_ONCE = 10
_SCHEDULE_DEFAULTS = {
    "ActionAfterCompletion": "NONE",
    "ScheduleExpressionTimezone": "UTC",
    "State": "ENABLED",
}
_RETRY_DEFAULTS = {"MaximumEventAgeInSeconds": 86_400, "MaximumRetryAttempts": 185}
_FORMER_TARGET = "machine"
"""Id of the target that rules had which an earlier version deployed in place of schedules."""


class DeploymentChange(StrEnum):
    """What a deployment does with a thing."""

    CREATE = "create"
    UPDATE = "update"
    UNCHANGED = "unchanged"
    DELETE = "delete"


@dataclass(frozen=True, slots=True)
class PlannedChange:
    """One thing of a plan. ``diff``: lines, as diff writes them; ``apply`` makes the change."""

    change: DeploymentChange
    kind: str
    name: str
    place: str
    apply: Callable[[], Any]
    diff: list[str] = field(default_factory=list)


def plan_deployment(
    project: SourceProject, connection: Connection, *, stack: str = "", prune: bool = False
) -> Iterator[PlannedChange]:
    """Yield what has to be done. With ``prune`` also what the stack had and the files have not."""
    deployed = {}
    for machine in project.machines:
        arn = connection.account.arn("states", f"stateMachine:{machine.name}")
        deployed[arn] = machine
        yield _plan_machine(connection, machine, arn, stack)
    for name in project.activities:
        yield _plan_activity(connection, name)
    for rule in project.rules:
        yield _plan_rule(connection, rule)
    for schedule in project.schedules:
        yield _plan_schedule(connection, schedule)
    if prune:
        yield from _plan_pruning(connection, stack, set(deployed))


def warn_of_functions(project: SourceProject, connection: Connection) -> list[str]:
    """Return a line for each function that a state machine calls and nobody registered there.

    AWS and servers of other kinds say nothing about that.
    """
    if connection.aws:
        return []
    lines = []
    for machine in project.machines:
        try:
            answer = connection.states.validate_state_machine_definition(
                definition=machine.definition, type=machine.type, severity="WARNING"
            )
        except (BotoCoreError, ClientError):  # deploying the machine has said why
            continue
        found = [one for one in answer["diagnostics"] if one["code"] == _UNREGISTERED]
        lines += [f"{machine.place}: {one['message']}" for one in found]
    return lines


# -- state machines --------------------------------------------------------------------------------


def _plan_machine(
    connection: Connection, machine: MachineSource, arn: str, stack: str
) -> PlannedChange:
    states = connection.states
    tags = machine.tags | ({STACK: stack} if stack else {})
    wanted = _wanted_machine(connection, machine)
    present = _unless_missing(lambda: states.describe_state_machine(stateMachineArn=arn))
    if not connection.aws:
        tags = tags | _own_tags(machine, present, states.meta.endpoint_url)

    def create() -> None:
        listed = [{"key": key, "value": value} for key, value in tags.items()]
        states.create_state_machine(name=machine.name, type=machine.type, tags=listed, **wanted)

    if present is None:
        diff = _diff("", _pretty(machine.definition), machine.name)
        return PlannedChange(
            DeploymentChange.CREATE, "state machine", machine.name, machine.place, create, diff
        )
    if present["type"] != machine.type:
        raise DeploymentRefused(
            f"{machine.place}: Type: got {machine.type}, wanted {present['type']}, which the state "
            "machine on the server has: its type cannot change"
        )
    if not machine.role:
        wanted["roleArn"] = present["roleArn"]
    changes = _machine_diff(machine.name, present, wanted)
    missing, stale = _tag_changes(states, arn, tags)

    def update() -> None:
        if changes:
            states.update_state_machine(stateMachineArn=arn, **wanted)
        if missing:
            states.tag_resource(resourceArn=arn, tags=missing)
        if stale:
            states.untag_resource(resourceArn=arn, tagKeys=stale)

    diff = changes + [f"+tag {tag['key']}={tag['value']}" for tag in missing]
    diff += [f"-tag {key}" for key in stale]
    change = DeploymentChange.UPDATE if diff else DeploymentChange.UNCHANGED
    return PlannedChange(change, "state machine", machine.name, machine.place, update, diff)


def _wanted_machine(connection: Connection, machine: MachineSource) -> dict[str, Any]:
    """Return what CreateStateMachine and UpdateStateMachine take, but for name, type and tags."""
    role = machine.role or connection.account.role(_ROLE)
    wanted: dict[str, Any] = {"definition": machine.definition, "roleArn": role}
    if machine.tracing is not None:
        wanted["tracingConfiguration"] = {"enabled": machine.tracing}
    return wanted


def _deployed_text_hash(machine: MachineSource, present: dict[str, Any] | None) -> str:
    """Return the hash of the text that the server has after the deployment."""
    text = machine.definition
    if present is not None and _parsed(present["definition"]) == _parsed(text):
        text = present["definition"]  # which is left as it is
    return hashlib.sha256(text.encode()).hexdigest()


class DeploymentRefused(Exception):
    """The server cannot take what a file has. The message is one line."""


def _machine_diff(name: str, present: dict[str, Any], wanted: dict[str, Any]) -> list[str]:
    """Return the lines in which two state machines differ; the same JSON is the same."""
    lines = []
    if _parsed(present["definition"]) != _parsed(wanted["definition"]):
        lines = _diff(_pretty(present["definition"]), _pretty(wanted["definition"]), name)
    tracing = wanted.get("tracingConfiguration")
    if tracing and tracing != (present.get("tracingConfiguration") or {"enabled": False}):
        lines.append(f"+tracing {tracing['enabled']}")
    if present["roleArn"] != wanted["roleArn"]:
        lines += [f"-role {present['roleArn']}", f"+role {wanted['roleArn']}"]
    return lines


def _own_tags(
    machine: MachineSource, present: dict[str, Any] | None, endpoint: str
) -> dict[str, str]:
    """Return the tags by which a page of the server shows drift."""
    tags = {DEPLOYED: _deployed_text_hash(machine, present)}
    if machine.pulled_from not in ("", endpoint):
        tags[SOURCE] = machine.pulled_arn
    return tags


def _tag_changes(
    states: Any, arn: str, wanted: dict[str, str]
) -> tuple[list[dict[str, str]], list[str]]:
    """Return the tags to set, and the keys of those to remove."""
    known = _tags_of(states, arn) if wanted else {}
    missing = [
        {"key": key, "value": value} for key, value in wanted.items() if known.get(key) != value
    ]
    return missing, [SOURCE] if SOURCE in known and SOURCE not in wanted else []


def _tags_of(states: Any, arn: str) -> dict[str, str]:
    listed = states.list_tags_for_resource(resourceArn=arn)["tags"]
    return {tag["key"]: tag["value"] for tag in listed}


def _plan_pruning(connection: Connection, stack: str, kept: set[str]) -> Iterator[PlannedChange]:
    states = connection.states
    pages = states.get_paginator("list_state_machines").paginate()
    for machine in [machine for page in pages for machine in page["stateMachines"]]:
        arn = machine["stateMachineArn"]
        if arn in kept:
            continue
        tags = _tags_of(states, arn)
        if tags.get(STACK, tags.get(former_name.former_tag(STACK))) == stack:
            yield PlannedChange(
                DeploymentChange.DELETE,
                "state machine",
                machine["name"],
                f"stack {stack}",
                partial(states.delete_state_machine, stateMachineArn=arn),
            )


def _plan_activity(connection: Connection, name: str) -> PlannedChange:
    states = connection.states
    arn = connection.account.arn("states", f"activity:{name}")
    present = _unless_missing(lambda: states.describe_activity(activityArn=arn))
    change = DeploymentChange.CREATE if present is None else DeploymentChange.UNCHANGED
    return PlannedChange(change, "activity", name, "", lambda: states.create_activity(name=name))


# -- rules -----------------------------------------------------------------------------------------


def _plan_rule(connection: Connection, rule: RuleSource) -> PlannedChange:
    events = connection.client("events")
    wanted = {
        "Name": rule.name,
        "EventPattern": rule.pattern,
        "ScheduleExpression": rule.schedule,
        "State": "ENABLED" if rule.enabled else "DISABLED",
        "Description": rule.description,
    }
    wanted = {key: value for key, value in wanted.items() if value}
    present = _unless_missing(lambda: events.describe_rule(Name=rule.name)) or {}
    targets = _targets(events, rule.name) if present else []
    before = {key: present[key] for key in wanted if key in present}
    declared = {target["Id"] for target in rule.targets}
    gone = [target["Id"] for target in targets if target["Id"] not in declared]

    def put() -> None:
        events.put_rule(**wanted)
        for first in range(0, len(rule.targets), _TARGETS_AT_ONCE):
            some = list(rule.targets[first : first + _TARGETS_AT_ONCE])
            _check_entries(rule, events.put_targets(Rule=rule.name, Targets=some))
        if gone:
            events.remove_targets(Rule=rule.name, Ids=gone)

    old = {"rule": _with_pattern(before), "targets": _sorted(targets)}
    new = {"rule": _with_pattern(wanted), "targets": _sorted(rule.targets)}
    diff = [] if old == new else _diff(_lines(old) if present else [], _lines(new), rule.name)
    change = DeploymentChange.UPDATE if diff else DeploymentChange.UNCHANGED
    return PlannedChange(
        change if present else DeploymentChange.CREATE, "rule", rule.name, rule.place, put, diff
    )


def _targets(events: Any, name: str) -> list[dict[str, Any]]:
    return list(events.list_targets_by_rule(Rule=name)["Targets"])


def _sorted(targets: Any) -> list[dict[str, Any]]:
    return sorted(targets, key=lambda target: str(target["Id"]))


def _with_pattern(rule: dict[str, Any]) -> dict[str, Any]:
    """Return a rule with its pattern parsed: the same JSON is the same pattern."""
    pattern = rule.get("EventPattern")
    return {**rule, "EventPattern": _parsed(pattern)} if pattern else rule


def _check_entries(rule: RuleSource, answer: dict[str, Any]) -> None:
    for entry in answer.get("FailedEntries", ()):
        raise DeploymentRefused(
            f"{rule.place}: target {entry['TargetId']}: {entry['ErrorMessage']}"
        )


# -- schedules -------------------------------------------------------------------------------------


def _plan_schedule(connection: Connection, schedule: ScheduleSource) -> PlannedChange:
    scheduler = connection.client("scheduler")
    key = {"Name": schedule.name, "GroupName": schedule.group}
    present = _unless_missing(lambda: scheduler.get_schedule(**key))
    wanted = _wanted_schedule(connection, schedule, present or {})
    former = _find_former_rule(connection, schedule)
    before = {name: value for name, value in (present or {}).items() if name in _SCHEDULE_MEMBERS}

    def put() -> None:
        if present is None:
            _make_group(scheduler, schedule.group)
            scheduler.create_schedule(**key, **wanted)
        elif before != wanted:
            scheduler.update_schedule(**key, **wanted)
        if former:
            events = connection.client("events")
            events.remove_targets(Rule=schedule.name, Ids=[_FORMER_TARGET])
            events.delete_rule(Name=schedule.name)

    old = _lines(before) if present else []
    diff = [] if before == wanted else _diff(old, _lines(wanted), schedule.name)
    if former:
        diff.append(f"-rule {schedule.name}, which was in the place of this schedule")
    change = DeploymentChange.UPDATE if diff else DeploymentChange.UNCHANGED
    return PlannedChange(
        DeploymentChange.CREATE if present is None else change,
        "schedule",
        schedule.name,
        schedule.place,
        put,
        diff,
    )


_SCHEDULE_MEMBERS = (
    *("ActionAfterCompletion", "Description", "EndDate", "FlexibleTimeWindow", "KmsKeyArn"),
    *("ScheduleExpression", "ScheduleExpressionTimezone", "StartDate", "State", "Target"),
)


def _wanted_schedule(
    connection: Connection, schedule: ScheduleSource, present: dict[str, Any]
) -> dict[str, Any]:
    """Return what a schedule shall say, with the defaults that the service would answer."""
    wanted = {**_SCHEDULE_DEFAULTS, **schedule.settings}
    for name in ("StartDate", "EndDate"):
        if name in wanted:
            wanted[name] = _moment(schedule, name, wanted[name])
    target = dict(wanted["Target"])
    kept_role = (present.get("Target") or {}).get("RoleArn")
    target["RoleArn"] = target.get("RoleArn") or kept_role or connection.account.role(_ROLE)
    target["RetryPolicy"] = {**_RETRY_DEFAULTS, **(target.get("RetryPolicy") or {})}
    return {name: wanted[name] for name in _SCHEDULE_MEMBERS if name in wanted} | {"Target": target}


def _moment(schedule: ScheduleSource, name: str, value: Any) -> Any:
    try:
        return parse_timestamp(value)
    except ValueError:
        raise DeploymentRefused(
            f"{schedule.place}: {name}: got {value!r}, wanted a time such as 2026-12-24T18:00:00Z"
        ) from None


def _make_group(scheduler: Any, group: str) -> None:
    if _unless_missing(lambda: scheduler.get_schedule_group(Name=group)) is None:
        scheduler.create_schedule_group(Name=group)


def _find_former_rule(connection: Connection, schedule: ScheduleSource) -> bool:
    """Tell whether a rule is in the place of a schedule, so that both would start the machine."""
    events = connection.client("events")
    rule = _unless_missing(lambda: events.describe_rule(Name=schedule.name))
    if rule is None or rule.get("ScheduleExpression") != schedule.settings["ScheduleExpression"]:
        return False
    targets = [(target["Id"], target["Arn"]) for target in _targets(events, schedule.name)]
    return targets == [(_FORMER_TARGET, schedule.settings["Target"]["Arn"])]


# -- comparing -------------------------------------------------------------------------------------


def _unless_missing(describe: Callable[[], dict[str, Any]]) -> dict[str, Any] | None:
    try:
        return describe()
    except ClientError as error:
        code = error.response["Error"]["Code"]
        if code.endswith(("DoesNotExist", "ResourceNotFoundException")):
            return None
        raise


def definition_diff(before: str, after: str, before_name: str, after_name: str) -> list[str]:
    """Return the lines in which two definitions differ; the same JSON is the same."""
    if _parsed(before) == _parsed(after):
        return []
    texts = _pretty(before), _pretty(after)
    return list(difflib.unified_diff(*texts, before_name, after_name, lineterm="", n=2))


def _parsed(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text


def _pretty(text: str) -> list[str]:
    parsed = _parsed(text)
    return text.splitlines() if isinstance(parsed, str) else _lines(parsed)


def _lines(value: Any) -> list[str]:
    return json.dumps(value, indent=2, ensure_ascii=False, default=str).splitlines()


def _diff(before: list[str] | str, after: list[str], name: str) -> list[str]:
    lines = difflib.unified_diff(list(before), after, f"{name} (server)", name, lineterm="", n=2)
    return list(lines)
