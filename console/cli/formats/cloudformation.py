"""Templates of CloudFormation and of the Serverless Application Model (SAM)."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from console.cli.documents import SourceError, load_document, substitute_placeholders
from console.cli.formats.asl import definition_of_file
from console.cli.intrinsics import Template
from console.cli.sources import (
    DEFAULT_GROUP,
    MachineSource,
    RuleSource,
    ScheduleSource,
    SourceProject,
    definition_text,
    is_started_by,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from console.cli.sources import Account

MACHINES = ("AWS::StepFunctions::StateMachine", "AWS::Serverless::StateMachine")
_SCHEDULE = "ScheduleV2"
_MATCHED = ("EventBridgeRule", "CloudWatchEvent")
_RETRY_NUMBERS = ("MaximumEventAgeInSeconds", "MaximumRetryAttempts")
_SCHEDULE_SETTINGS = (
    "ActionAfterCompletion",
    "Description",
    "EndDate",
    "FlexibleTimeWindow",
    "KmsKeyArn",
    "ScheduleExpression",
    "ScheduleExpressionTimezone",
    "StartDate",
    "State",
)


def is_template(document: Any) -> bool:
    """Tell whether a document is a template."""
    resources = document.get("Resources") if isinstance(document, dict) else None
    return isinstance(resources, dict) and any(
        isinstance(resource, dict) and "::" in str(resource.get("Type"))
        for resource in resources.values()
    )


def read_template(
    path: Path,
    account: Account,
    given: Mapping[str, str],
    find_asset: Callable[[str], Path | None] = lambda _: None,
    construct_paths: Mapping[str, str] | None = None,
) -> SourceProject:
    """Return what a template has.

    ``find_asset``: key of an object in S3 -> the file it is from. ``construct_paths``: logical id
    -> the path of a construct of the CDK, which names its resource.
    """
    body = load_document(path)
    for logical_id, construct in (construct_paths or {}).items():
        if logical_id in body.get("Resources", {}):
            metadata = body["Resources"][logical_id].setdefault("Metadata", {})
            metadata.setdefault("aws:cdk:path", construct)
    template = Template(body, str(path), account, given)
    reader = _Reader(template, account, path, find_asset)
    project = SourceProject()
    for logical_id, resource in template.resources.items():
        reader.read(logical_id, resource, project)
    return project


def read_machine(body: dict[str, Any], logical_id: str, account: Account) -> MachineSource:
    """Return a state machine of a template that stands alone.

    What only a deployment knows stays ``${Name}``. No file is read: a definition in one raises
    ``SourceError``.
    """
    template = Template(body, "the template", account, {}, placeholders=True)
    return _Reader(template, account).machine(logical_id, body["Resources"][logical_id])


class _Reader:
    """Reads the resources of one template.

    ``path``: the file of the template, which those that it names are beside; None without files.
    """

    def __init__(
        self,
        template: Template,
        account: Account,
        path: Path | None = None,
        find_asset: Callable[[str], Path | None] = lambda _: None,
    ) -> None:
        self._template, self._account, self._path = template, account, path
        self._place = str(path or "the template")
        self._find_asset = find_asset

    def read(self, logical_id: str, resource: dict[str, Any], project: SourceProject) -> None:
        """Add a resource to a project if it is one that a server knows."""
        kind, properties = resource.get("Type"), resource.get("Properties") or {}
        if kind in MACHINES:
            project.machines.append(self.machine(logical_id, resource))
            self._events(logical_id, properties.get("Events") or {}, project)
        elif kind == "AWS::StepFunctions::Activity":
            project.activities.append(self._template.physical_name(logical_id))
        elif kind == "AWS::Events::Rule":
            self._rule(logical_id, properties, project)
        elif kind == "AWS::Scheduler::Schedule":
            self._schedule(logical_id, properties, project)

    def machine(self, logical_id: str, resource: dict[str, Any]) -> MachineSource:
        """Return a state machine; raise ``SourceError`` if its definition cannot be found."""
        properties = resource.get("Properties") or {}
        kind = properties.get("StateMachineType") or properties.get("Type") or "STANDARD"
        tracing = self._template.resolve(
            properties.get("TracingConfiguration") or properties.get("Tracing") or {}
        )
        return MachineSource(
            name=self._template.physical_name(logical_id),
            definition=self._definition(logical_id, properties),
            place=f"{self._place}: {logical_id}",
            type=str(self._template.resolve(kind)),
            role=self._role(properties),
            tracing=_as_switch(tracing.get("Enabled")),
            tags=_tags(self._template.resolve(properties.get("Tags") or {})),
        )

    def _role(self, properties: dict[str, Any]) -> str:
        """Return the ARN of the role, "" if only AWS knows it: it is not judged here."""
        try:
            role = self._template.resolve(properties.get("RoleArn") or properties.get("Role"))
        except SourceError:
            return ""
        return role if isinstance(role, str) and role.startswith("arn:") else ""

    def _definition(self, logical_id: str, properties: dict[str, Any]) -> str:
        given = self._template.resolve(properties.get("DefinitionSubstitutions") or {})
        values = {name: _as_text(value) for name, value in given.items()}
        if "DefinitionString" in properties:
            text = self._template.resolve(properties["DefinitionString"])
            return substitute_placeholders(definition_text(text), values)
        if "Definition" in properties:
            text = definition_text(self._template.resolve(properties["Definition"]))
            return substitute_placeholders(text, values)
        place = properties.get("DefinitionUri") or properties.get("DefinitionS3Location")
        file = self._file(self._template.resolve(place))
        if file is None:
            names = "Definition, DefinitionString, DefinitionUri or an asset that is here"
            wanted = names if self._path else "Definition or DefinitionString"
            message = f"{self._place}: {logical_id}: got no definition, wanted {wanted}"
            raise SourceError(message)
        return definition_of_file(file, values)

    def _file(self, place: Any) -> Path | None:
        if isinstance(place, str) and self._path:
            return self._path.parent / place
        if isinstance(place, dict) and "Key" in place:
            return self._find_asset(str(place["Key"]))
        return None

    # -- events ------------------------------------------------------------------------------------

    def _events(self, machine: str, events: dict[str, Any], project: SourceProject) -> None:
        """Add the rules and schedules that SAM makes of the Events of a state machine."""
        arn = self._template.arn_of(machine)
        for name, event in events.items():
            kind = event.get("Type")
            if kind == _SCHEDULE:
                self._schedule_of_event(machine, name, event.get("Properties") or {}, project)
                continue
            said = self._template.resolve(event.get("Properties") or {})
            if kind not in ("Schedule", *_MATCHED):
                project.notes.append(f"{self._path}: {machine}: event {name} of type {kind}")
                continue
            target = _target_members({**said, "Arn": arn}) | {"Id": "machine"}
            pattern = said.get("Pattern") if kind in _MATCHED else None
            rule = RuleSource(
                name=said.get("Name") or f"{self._template.physical_name(machine)}-{name}",
                place=f"{self._path}: {machine}: {name}",
                pattern=json.dumps(pattern) if pattern else "",
                schedule=said.get("Schedule") or "",
                enabled=_is_enabled(said),
                description=said.get("Description", ""),
                targets=(target,),
            )
            project.rules.append(rule)

    def _rule(self, logical_id: str, properties: dict[str, Any], project: SourceProject) -> None:
        """Add a rule of the template, if state machines are among its targets."""
        try:
            said = self._template.resolve(properties)
        except SourceError as error:
            project.notes.append(str(error))
            return
        targets = tuple(
            {"Id": target.get("Id", "machine"), **_target_members(target)}
            for target in said.get("Targets") or ()
            if ":states:" in str(target.get("Arn"))
        )
        if not targets:
            project.notes.append(f"{self._path}: {logical_id}: a rule without a state machine")
            return
        pattern = said.get("EventPattern")
        rule = RuleSource(
            name=said.get("Name") or self._template.physical_name(logical_id),
            place=f"{self._path}: {logical_id}",
            pattern=json.dumps(pattern) if pattern else "",
            schedule=said.get("ScheduleExpression", ""),
            enabled=_is_enabled(said),
            description=said.get("Description", ""),
            targets=targets,
        )
        project.rules.append(rule)

    # -- schedules ---------------------------------------------------------------------------------

    def _schedule_of_event(
        self, machine: str, event: str, properties: dict[str, Any], project: SourceProject
    ) -> None:
        """Add the schedule that SAM makes of an event of type ScheduleV2."""
        said = self._template.resolve(_without(properties, "RoleArn"))
        target = {"Arn": self._template.arn_of(machine), "RoleArn": self._role(properties)}
        given = ("Input", "RetryPolicy", "DeadLetterConfig")
        target |= {key: said[key] for key in given if key in said}
        schedule = ScheduleSource(
            name=said.get("Name") or f"{self._template.physical_name(machine)}-{event}",
            place=f"{self._path}: {machine}: {event}",
            settings=_schedule_settings(said, target),
            group=said.get("GroupName") or DEFAULT_GROUP,
        )
        project.schedules.append(schedule)

    def _schedule(
        self, logical_id: str, properties: dict[str, Any], project: SourceProject
    ) -> None:
        """Add a schedule of the template, if it starts a state machine."""
        given = properties.get("Target") or {}
        try:
            said = self._template.resolve({**properties, "Target": _without(given, "RoleArn")})
        except SourceError as error:
            project.notes.append(str(error))
            return
        if not is_started_by(said["Target"]):
            place = f"{self._path}: {logical_id}"
            project.notes.append(f"{place}: a schedule without a state machine")
            return
        target = {**said["Target"], "RoleArn": self._role(given)}
        schedule = ScheduleSource(
            name=said.get("Name") or self._template.physical_name(logical_id),
            place=f"{self._path}: {logical_id}",
            settings=_schedule_settings(said, target),
            group=said.get("GroupName") or DEFAULT_GROUP,
        )
        project.schedules.append(schedule)


def _schedule_settings(said: dict[str, Any], target: dict[str, Any]) -> dict[str, Any]:
    """Return what CreateSchedule takes; YAML and parameters may have numbers as texts."""
    settings: dict[str, Any] = {"FlexibleTimeWindow": {"Mode": "OFF"}}
    settings |= {key: said[key] for key in _SCHEDULE_SETTINGS if key in said}
    window = settings["FlexibleTimeWindow"]
    settings["FlexibleTimeWindow"] = _with_integers(window, "MaximumWindowInMinutes")
    if "RetryPolicy" in target:
        policy = _with_integers(target["RetryPolicy"], *_RETRY_NUMBERS)
        target = {**target, "RetryPolicy": policy}
    return {**settings, "Target": target}


def _with_integers(said: dict[str, Any], *keys: str) -> dict[str, Any]:
    numbers = {key: int(said[key]) for key in keys if str(said.get(key)).isdigit()}
    return {**said, **numbers}


def _without(said: dict[str, Any], key: str) -> dict[str, Any]:
    return {name: value for name, value in said.items() if name != key}


def _target_members(target: dict[str, Any]) -> dict[str, Any]:
    """Return what PutTargets takes of a target; the queue that SAM would make is left out."""
    known = ("Arn", "Input", "InputPath", "InputTransformer")
    members = {key: target[key] for key in known if key in target}
    if "RetryPolicy" in target:
        members["RetryPolicy"] = _with_integers(target["RetryPolicy"], *_RETRY_NUMBERS)
    queue = (target.get("DeadLetterConfig") or {}).get("Arn")
    return members | ({"DeadLetterConfig": {"Arn": queue}} if queue else {})


def _is_enabled(said: dict[str, Any]) -> bool:
    return (
        said.get("State", "ENABLED") != "DISABLED" and _as_switch(said.get("Enabled")) is not False
    )


def _as_switch(value: Any) -> bool | None:
    return None if value is None else str(value).lower() == "true"


def _as_text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _tags(value: Any) -> dict[str, str]:
    """Return tags as an object: SAM has one, CloudFormation a list."""
    if isinstance(value, list):
        return {str(tag["Key"]): _as_text(tag["Value"]) for tag in value}
    return {str(key): _as_text(tag) for key, tag in value.items()}
