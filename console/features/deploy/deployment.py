"""Plan and apply a deployment: compare a project's files with a server.

``Machines`` accesses the state machines of a server: with some AWS API calls each, or all in a few
calls of a branch's API (``branch_machines``). The plan is the same for both.
"""

from __future__ import annotations

import difflib
import hashlib
import json
from dataclasses import dataclass
from enum import StrEnum
from functools import partial
from typing import TYPE_CHECKING, Any

from botocore import xform_name
from botocore.exceptions import BotoCoreError, ClientError, ParamValidationError
from botocore.utils import parse_timestamp

from console.cli.branches import CallRefused

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from console.cli.connection import Connection
    from console.features.deploy.sources import (
        MachineSource,
        RuleSource,
        ScheduleSource,
        SourceProject,
    )

DEPLOYED = "stateyard:deployed"
"""Key of the tag with the SHA-256 of the text that was deployed, by which a page shows drift."""
SOURCE = "stateyard:source"
"""Key of the tag with the ARN that the deployed definition was pulled from, on another server."""
STACK = "stateyard:stack"
"""Key of the tag that says which stack a state machine belongs to: only ``--prune`` reads it."""
UNREGISTERED = "FUNCTION_NOT_REGISTERED"
"""Code of a Stateyard server's diagnostic for an unregistered function."""
_ROLE = "stateyard"
_TARGETS_AT_ONCE = 10
_SCHEDULE_DEFAULTS = {
    "ActionAfterCompletion": "NONE",
    "ScheduleExpressionTimezone": "UTC",
    "State": "ENABLED",
}
_RETRY_DEFAULTS = {"MaximumEventAgeInSeconds": 86_400, "MaximumRetryAttempts": 185}
_FORMER_TARGET = "machine"
"""Id of the target of rules that earlier versions deployed in place of schedules."""


class DeploymentChange(StrEnum):
    """The kind of change to a resource."""

    CREATE = "create"
    UPDATE = "update"
    UNCHANGED = "unchanged"
    DELETE = "delete"


@dataclass(frozen=True, slots=True)
class PlannedChange:
    """A planned change. ``apply`` makes it; ``diff`` returns the lines of a unified diff.

    ``calls``: for a state machine, the actions and parameters by which ``apply`` makes the change.
    """

    change: DeploymentChange
    kind: str
    name: str
    place: str
    apply: Callable[[], Any]
    diff: Callable[[], list[str]] = list
    calls: tuple[ApiCall, ...] = ()


ApiCall = tuple[str, dict[str, Any]]
"""An action of Step Functions, and its parameters."""


def plan_deployment(
    project: SourceProject,
    connection: Connection,
    machines: Machines,
    *,
    stack: str = "",
    prune: bool = False,
) -> Iterator[list[PlannedChange]]:
    """Yield the changes in groups; a group is applied together.

    With ``prune``, resources of the stack that are no longer in the files are deleted.
    """
    deployed = {_arn_of(connection, machine): machine for machine in project.machines}
    for group in machines.groups(project.machines):
        yield [_plan_machine(connection, machines, machine, stack) for machine in group]
    for name in project.activities:
        yield [_plan_activity(connection, name)]
    for rule in project.rules:
        yield [_plan_rule(connection, rule)]
    for schedule in project.schedules:
        yield [_plan_schedule(connection, schedule)]
    if prune:
        for planned in _plan_pruning(connection, stack, set(deployed)):
            yield [planned]


def _arn_of(connection: Connection, machine: MachineSource) -> str:
    return connection.account.arn("states", f"stateMachine:{machine.name}")


@dataclass(frozen=True, slots=True)
class PresentMachine:
    """A state machine on the server: its description, and a function that reads its tags."""

    described: dict[str, Any]
    read_tags: Callable[[], dict[str, str]]


Outcome = Exception | None
"""The reason of a refused change; None if it was made."""


@dataclass(frozen=True, slots=True)
class Machines:
    """The state machines of a server, accessed by some AWS API calls each."""

    connection: Connection

    def groups(self, machines: Sequence[MachineSource]) -> Iterator[Sequence[MachineSource]]:
        """Yield the state machines in groups, each compared and changed together."""
        for machine in machines:
            yield [machine]

    def find_present(self, machine: MachineSource) -> PresentMachine | None:
        """Return a state machine of the server by name, None without one."""
        states, arn = self.connection.states, _arn_of(self.connection, machine)
        described = _unless_missing(lambda: states.describe_state_machine(stateMachineArn=arn))
        if described is None:
            return None
        return PresentMachine(described, lambda: _tags_of(states, arn))

    def apply(self, changes: Sequence[PlannedChange]) -> list[Outcome]:
        """Apply changes one by one."""
        return [_outcome_of(planned.apply) for planned in changes]

    def warnings_of(self, machine: MachineSource) -> list[str]:
        """Return a line for each unregistered function that a state machine calls."""
        try:
            answer = self.connection.states.validate_state_machine_definition(
                definition=machine.definition, type=machine.type, severity="WARNING"
            )
        except (BotoCoreError, ClientError):  # deploying the machine has said why
            return []
        return [each["message"] for each in answer["diagnostics"] if each["code"] == UNREGISTERED]


def _outcome_of(apply: Callable[[], Any]) -> Outcome:
    try:
        apply()
    except (ClientError, DeploymentRefused, ParamValidationError) as error:
        return error
    return None


def warn_of_functions(project: SourceProject, machines: Machines) -> list[str]:
    """Return a line for each function of a state machine that the server does not have.

    AWS and servers of other kinds say nothing about that.
    """
    if machines.connection.aws:
        return []
    return [
        f"{machine.place}: {message}"
        for machine in project.machines
        for message in machines.warnings_of(machine)
    ]


# -- state machines --------------------------------------------------------------------------------


def _plan_machine(
    connection: Connection, machines: Machines, machine: MachineSource, stack: str
) -> PlannedChange:
    tags = machine.tags | ({STACK: stack} if stack else {})
    desired = _wanted_machine(connection, machine)
    present = machines.find_present(machine)
    described = None if present is None else present.described
    if not connection.aws:
        tags = tags | _own_tags(machine, described, connection.web_address)
    if present is None or described is None:
        return _plan_creation(connection, machine, desired, tags)
    if described["type"] != machine.type:
        raise DeploymentRefused(
            f"{machine.place}: Type: got {machine.type}, wanted {described['type']}, which the "
            "state machine on the server has: its type cannot change"
        )
    if not machine.role:
        desired["roleArn"] = described["roleArn"]
    missing, stale = _tag_changes(present, tags)
    arn = _arn_of(connection, machine)
    calls: list[ApiCall] = []
    if _is_changed(described, desired):
        calls.append(("UpdateStateMachine", {"stateMachineArn": arn, **desired}))
    if missing:
        calls.append(("TagResource", {"resourceArn": arn, "tags": missing}))
    if stale:
        calls.append(("UntagResource", {"resourceArn": arn, "tagKeys": stale}))

    def diff() -> list[str]:
        lines = _machine_diff(machine.name, described, desired)
        lines += [f"+tag {tag['key']}={tag['value']}" for tag in missing]
        return lines + [f"-tag {key}" for key in stale]

    change = DeploymentChange.UPDATE if calls else DeploymentChange.UNCHANGED
    return _planned_calls(connection, machine, change, calls, diff)


def _plan_creation(
    connection: Connection, machine: MachineSource, desired: dict[str, Any], tags: dict[str, str]
) -> PlannedChange:
    listed = [{"key": key, "value": value} for key, value in tags.items()]
    parameters = {"name": machine.name, "type": machine.type, "tags": listed, **desired}
    return _planned_calls(
        connection,
        machine,
        DeploymentChange.CREATE,
        [("CreateStateMachine", parameters)],
        lambda: _diff("", _pretty(machine.definition), machine.name),
    )


def _planned_calls(
    connection: Connection,
    machine: MachineSource,
    change: DeploymentChange,
    calls: list[ApiCall],
    diff: Callable[[], list[str]],
) -> PlannedChange:
    def apply() -> None:
        for action, parameters in calls:
            getattr(connection.states, xform_name(action))(**parameters)

    place = machine.place
    return PlannedChange(change, "state machine", machine.name, place, apply, diff, tuple(calls))


def _wanted_machine(connection: Connection, machine: MachineSource) -> dict[str, Any]:
    """Return the members of CreateStateMachine and UpdateStateMachine, without name, type, tags."""
    role = machine.role or connection.account.role(_ROLE)
    desired: dict[str, Any] = {"definition": machine.definition, "roleArn": role}
    if machine.tracing is not None:
        desired["tracingConfiguration"] = {"enabled": machine.tracing}
    return desired


def _deployed_text_hash(machine: MachineSource, present: dict[str, Any] | None) -> str:
    """Return the hash of the definition as deployed."""
    text = machine.definition
    if present is None or present["definition"] == text:
        return hashlib.sha256(text.encode()).hexdigest()
    if _parsed(present["definition"]) == _parsed(text):
        text = present["definition"]  # which stays unchanged
    return hashlib.sha256(text.encode()).hexdigest()


class DeploymentRefused(CallRefused):
    """The server cannot have a resource of a file. The message is one line."""


def _is_changed(present: dict[str, Any], desired: dict[str, Any]) -> bool:
    """Whether two state machines differ; definitions are compared as JSON."""
    return (
        present["roleArn"] != desired["roleArn"]
        or _changes_tracing(present, desired)
        or (
            present["definition"] != desired["definition"]
            and _parsed(present["definition"]) != _parsed(desired["definition"])
        )
    )


def _changes_tracing(present: dict[str, Any], desired: dict[str, Any]) -> bool:
    tracing = desired.get("tracingConfiguration")
    return bool(tracing) and tracing != (present.get("tracingConfiguration") or {"enabled": False})


def _machine_diff(name: str, present: dict[str, Any], desired: dict[str, Any]) -> list[str]:
    """Return the diff lines of two state machines."""
    lines = []
    if _parsed(present["definition"]) != _parsed(desired["definition"]):
        lines = _diff(_pretty(present["definition"]), _pretty(desired["definition"]), name)
    if _changes_tracing(present, desired):
        lines.append(f"+tracing {desired['tracingConfiguration']['enabled']}")
    if present["roleArn"] != desired["roleArn"]:
        lines += [f"-role {present['roleArn']}", f"+role {desired['roleArn']}"]
    return lines


def _own_tags(
    machine: MachineSource, present: dict[str, Any] | None, endpoint: str
) -> dict[str, str]:
    """Return the tags from which a page shows drift."""
    tags = {DEPLOYED: _deployed_text_hash(machine, present)}
    if machine.pulled_from.rstrip("/") not in ("", endpoint):
        tags[SOURCE] = machine.pulled_arn
    return tags


def _tag_changes(
    machine: PresentMachine, desired: dict[str, str]
) -> tuple[list[dict[str, str]], list[str]]:
    """Return tags to set, and tag keys to remove."""
    present = machine.read_tags() if desired else {}
    missing = [
        {"key": key, "value": value} for key, value in desired.items() if present.get(key) != value
    ]
    return missing, [SOURCE] if SOURCE in present and SOURCE not in desired else []


def _tags_of(states: Any, arn: str) -> dict[str, str]:
    listed = states.list_tags_for_resource(resourceArn=arn)["tags"]
    return {tag["key"]: tag["value"] for tag in listed}


def _plan_pruning(
    connection: Connection, stack: str, deployed: set[str]
) -> Iterator[PlannedChange]:
    states = connection.states
    pages = states.get_paginator("list_state_machines").paginate()
    for machine in [machine for page in pages for machine in page["stateMachines"]]:
        arn = machine["stateMachineArn"]
        if arn in deployed:
            continue
        tags = _tags_of(states, arn)
        if tags.get(STACK) == stack:
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
    desired = {
        "Name": rule.name,
        "EventPattern": rule.pattern,
        "ScheduleExpression": rule.schedule,
        "State": "ENABLED" if rule.enabled else "DISABLED",
        "Description": rule.description,
    }
    desired = {key: value for key, value in desired.items() if value}
    present = _unless_missing(lambda: events.describe_rule(Name=rule.name)) or {}
    targets = _targets(events, rule.name) if present else []
    before = {key: present[key] for key in desired if key in present}
    declared = {target["Id"] for target in rule.targets}
    removed_ids = [target["Id"] for target in targets if target["Id"] not in declared]

    def put() -> None:
        events.put_rule(**desired)
        for first in range(0, len(rule.targets), _TARGETS_AT_ONCE):
            some = list(rule.targets[first : first + _TARGETS_AT_ONCE])
            _check_entries(rule, events.put_targets(Rule=rule.name, Targets=some))
        if removed_ids:
            events.remove_targets(Rule=rule.name, Ids=removed_ids)

    old = {"rule": _with_pattern(before), "targets": _sorted(targets)}
    new = {"rule": _with_pattern(desired), "targets": _sorted(rule.targets)}
    diff = [] if old == new else _diff(_lines(old) if present else [], _lines(new), rule.name)
    change = DeploymentChange.UPDATE if diff else DeploymentChange.UNCHANGED
    return PlannedChange(
        change if present else DeploymentChange.CREATE,
        "rule",
        rule.name,
        rule.place,
        put,
        lambda: diff,
    )


def _targets(events: Any, name: str) -> list[dict[str, Any]]:
    return list(events.list_targets_by_rule(Rule=name)["Targets"])


def _sorted(targets: Any) -> list[dict[str, Any]]:
    return sorted(targets, key=lambda target: str(target["Id"]))


def _with_pattern(rule: dict[str, Any]) -> dict[str, Any]:
    """Return a rule with its pattern parsed, to compare patterns as JSON."""
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
    desired = _wanted_schedule(connection, schedule, present or {})
    former = _find_former_rule(connection, schedule)
    before = {name: value for name, value in (present or {}).items() if name in _SCHEDULE_MEMBERS}

    def put() -> None:
        if present is None:
            _make_group(scheduler, schedule.group)
            scheduler.create_schedule(**key, **desired)
        elif before != desired:
            scheduler.update_schedule(**key, **desired)
        if former:
            events = connection.client("events")
            events.remove_targets(Rule=schedule.name, Ids=[_FORMER_TARGET])
            events.delete_rule(Name=schedule.name)

    old = _lines(before) if present else []
    diff = [] if before == desired else _diff(old, _lines(desired), schedule.name)
    if former:
        diff.append(f"-rule {schedule.name}, which was in the place of this schedule")
    change = DeploymentChange.UPDATE if diff else DeploymentChange.UNCHANGED
    return PlannedChange(
        DeploymentChange.CREATE if present is None else change,
        "schedule",
        schedule.name,
        schedule.place,
        put,
        lambda: diff,
    )


_SCHEDULE_MEMBERS = (
    *("ActionAfterCompletion", "Description", "EndDate", "FlexibleTimeWindow", "KmsKeyArn"),
    *("ScheduleExpression", "ScheduleExpressionTimezone", "StartDate", "State", "Target"),
)


def _wanted_schedule(
    connection: Connection, schedule: ScheduleSource, present: dict[str, Any]
) -> dict[str, Any]:
    """Return the desired schedule with the service's defaults."""
    desired = {**_SCHEDULE_DEFAULTS, **schedule.settings}
    for name in ("StartDate", "EndDate"):
        if name in desired:
            desired[name] = _moment(schedule, name, desired[name])
    target = dict(desired["Target"])
    present_role = (present.get("Target") or {}).get("RoleArn")
    target["RoleArn"] = target.get("RoleArn") or present_role or connection.account.role(_ROLE)
    target["RetryPolicy"] = {**_RETRY_DEFAULTS, **(target.get("RetryPolicy") or {})}
    return {name: desired[name] for name in _SCHEDULE_MEMBERS if name in desired} | {
        "Target": target
    }


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
    """Whether a rule exists in place of a schedule: both would start the state machine."""
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
    """Return the diff lines of two definitions, compared as JSON."""
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
