"""Read templates of CloudFormation and of the Serverless Application Model (SAM)."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from console.cli.documents import SourceError, as_list, as_name, as_object, kind_of, load_document
from console.feature import Hook, hooked
from console.features.deploy.formats.asl import definition_of_file
from console.features.deploy.intrinsics import Template
from console.features.deploy.parameters import Parameters, text_of
from console.features.deploy.placeholders import Placeholders
from console.features.deploy.sources import (
    DEFAULT_GROUP,
    MachineSource,
    RoleOptions,
    RuleSource,
    ScheduleSource,
    SourceProject,
    definition_text,
    is_started_by,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from console.cli.account import Account

_OF_SAM = "AWS::Serverless::StateMachine"
MACHINES = ("AWS::StepFunctions::StateMachine", _OF_SAM)
_STACKS = {"AWS::CloudFormation::Stack": "TemplateURL", "AWS::Serverless::Application": "Location"}
"""Type of a nested stack -> the property that names its template."""
_MACROS = ("AWS::Serverless-2016-10-31", "AWS::LanguageExtensions", "AWS::Include")
_SCHEDULE = "ScheduleV2"
_MATCHED = ("EventBridgeRule", "CloudWatchEvent")
_READ = {
    *("Definition", "DefinitionString", "DefinitionUri", "DefinitionS3Location"),
    *("DefinitionSubstitutions", "StateMachineName", "Name", "StateMachineType", "Type"),
    *("RoleArn", "Role", "TracingConfiguration", "Tracing", "Tags", "Events"),
}
"""Properties of a state machine that are taken over."""
_OF_AWS = {"Policies", "PermissionsBoundary", "RolePath", "PropagateTags", "UseAliasAsEventTarget"}
"""Properties about roles and tags of other resources, which do not exist here."""
_LEFT_OUT = {
    *("LoggingConfiguration", "Logging", "EncryptionConfiguration", "AutoPublishAlias"),
    "DeploymentPreference",
}
"""Properties of a state machine that are ignored, with a note for the user."""
_DEFAULT_BUS = "default"
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
    """Return whether a document is a template."""
    resources = document.get("Resources") if isinstance(document, dict) else None
    return isinstance(resources, dict) and any(
        str(name).startswith("Fn::")
        or (isinstance(resource, dict) and "::" in str(resource.get("Type")))
        for name, resource in resources.items()
    )


def read_template(path: Path, account: Account, parameters: Parameters) -> SourceProject:
    """Return a template's project; missing and wrong values are noted in ``parameters``."""
    project = SourceProject()
    with parameters.collect(str(path)):
        open_template(path, account, parameters).read(project)
    return project


def open_template(
    path: Path,
    account: Account,
    parameters: Parameters,
    find_asset: Callable[[str], Path | None] = lambda _: None,
    construct_paths: Mapping[str, str] | None = None,
    exports: Mapping[str, Callable[[], Any]] | None = None,
) -> TemplateReader:
    """Return the reader of a template.

    ``find_asset``: key of an object in S3 -> its local file. ``construct_paths``: logical id -> the
    path of its construct in the CDK, from which the resource gets its name. ``exports``: name ->
    value of other stacks.
    """
    body = as_object(load_document(path), str(path))
    resources = as_object(body.get("Resources"), f"{path}: Resources")
    for logical_id, construct in (construct_paths or {}).items():
        if isinstance(resources.get(logical_id), dict):
            metadata = resources[logical_id].setdefault("Metadata", {})
            metadata.setdefault("aws:cdk:path", construct)
    template = Template(body, str(path), account, parameters, folder=path.parent, exports=exports)
    return TemplateReader(template, account, parameters, path, find_asset)


def read_machine(body: dict[str, Any], logical_id: str, account: Account) -> MachineSource:
    """Return one state machine of a template.

    Values that only a deployment knows stay ``${Name}``. Other files are not read: a definition in
    a separate file raises ``SourceError``.
    """
    parameters = Parameters(placeholders=True)
    template = Template(body, "the template", account, parameters)
    return TemplateReader(template, account, parameters).machine(logical_id)


class TemplateReader:
    """Reads the resources of one template.

    ``path``: the file of the template; paths in the template are relative to it. None if the
    template is not in a file.
    """

    def __init__(
        self,
        template: Template,
        account: Account,
        parameters: Parameters,
        path: Path | None = None,
        find_asset: Callable[[str], Path | None] = lambda _: None,
        ancestors: tuple[Path, ...] = (),
    ) -> None:
        self.template, self._account, self._path = template, account, path
        self._parameters = parameters
        self._place = str(path or "the template")
        self._find_asset = find_asset
        self._ancestors = ancestors
        self._nested: dict[str, TemplateReader | None] = {}
        template.load_nested = self._nested_template

    def read(self, project: SourceProject) -> None:
        """Add the template's supported resources to the project."""
        transforms = self.template.body.get("Transform")
        for macro in transforms if isinstance(transforms, list) else [transforms]:
            name = macro.get("Name") if isinstance(macro, dict) else macro
            if name and name not in _MACROS:
                project.notes.append(f"{self._place}: what the macro {name} makes of the template")
        readers: dict[str, Callable[[str, SourceProject], None]] = {
            **dict.fromkeys(MACHINES, self._machine),
            **dict.fromkeys(_STACKS, self._stack),
            "AWS::StepFunctions::Activity": self._activity,
            "AWS::Events::Rule": self._rule,
            "AWS::Scheduler::Schedule": self._schedule,
        }
        for logical_id in self.template.section("Resources"):
            with self._parameters.collect(f"{self._place}: {logical_id}"):
                resource = self.template.resource(logical_id) or {}
                kind = resource.get("Type")
                if isinstance(kind, str) and kind in readers:
                    readers[kind](logical_id, project)

    def exports(self) -> dict[str, Callable[[], Any]]:
        """Return the template's exported outputs by name."""
        exports: dict[str, Callable[[], Any]] = {}
        for name, output in self.template.section("Outputs").items():
            export = output.get("Export") if isinstance(output, dict) else None
            with self._parameters.attempt() as attempt:
                exported = export and self.template.resolve(as_object(export, name).get("Name"))
            if not attempt.missing and isinstance(exported, str):
                exports[exported] = lambda name=name: self.template.output(name)  # type: ignore[misc]
        return exports

    def machine(self, logical_id: str) -> MachineSource:
        """Return a state machine; raise ``SourceError`` if its definition cannot be found."""
        place = f"{self._place}: {logical_id}"
        properties = self.template.expanded(self.template.properties(logical_id))
        for name in properties:
            if name not in _READ | _OF_AWS | _LEFT_OUT:
                names = ", ".join(sorted(_READ))
                raise SourceError(f"{place}.{name}: got an unknown property, wanted one of {names}")
        kind = properties.get("StateMachineType") or properties.get("Type") or "STANDARD"
        tracing = self._resolved_object(properties, logical_id, "TracingConfiguration", "Tracing")
        traced = as_switch(tracing.get("Enabled"))
        return MachineSource(
            name=self.template.physical_name(logical_id),
            definition=self._definition(
                *(logical_id, properties, self._parameters),
                self._resolved_object(properties, logical_id, "DefinitionSubstitutions"),
            ),
            pattern=self._definition(logical_id, properties, Parameters({}, placeholders=True), {}),
            place=place,
            type=as_name(self.template.resolve(kind, logical_id, "Type"), f"{place}.Type"),
            role=self._role(properties),
            tracing=traced,
            tags=read_tags(
                self.template.resolve(properties.get("Tags"), logical_id, "Tags"), place
            ),
            policies=self._policies(logical_id, properties, traced=bool(traced)),
            options=self._options(properties, traced=bool(traced)),
        )

    def _policies(self, logical_id: str, properties: dict[str, Any], *, traced: bool) -> Any:
        """Return the policies of a state machine's role, None if they are not in the template."""
        said = properties.get("RoleArn") or properties.get("Role")
        of_sam = (self.template.resource(logical_id) or {}).get("Type") == _OF_SAM
        if said is None and not of_sam:
            return None
        context = (self.template, self._account, self._parameters, self._place)
        with self._parameters.attempt():
            for role_of in hooked(Hook.TEMPLATE_ROLE):
                return role_of(context, logical_id, said, traced=traced)
        return None  # left out, or an error that attempt takes

    def _options(self, properties: dict[str, Any], *, traced: bool) -> RoleOptions:
        """Return the options of a state machine that need permissions."""
        logs, key = False, ""
        with self._parameters.attempt():
            said = properties.get("LoggingConfiguration") or properties.get("Logging")
            logging = self.template.resolve(said)
            logs = isinstance(logging, dict) and logging.get("Level", "OFF") != "OFF"
            encryption = self.template.resolve(properties.get("EncryptionConfiguration"))
            if isinstance(encryption, dict) and encryption.get("Type") != "AWS_OWNED_KEY":
                key = str(encryption.get("KmsKeyId") or "")
        return RoleOptions(logs, traced, key)

    def _resolved_object(
        self, properties: dict[str, Any], logical_id: str, *names: str
    ) -> dict[str, Any]:
        """Return the first present one of some properties, an object, resolved."""
        for name in names:
            if properties.get(name) is not None:
                value = self.template.resolve(properties[name], logical_id, name)
                return as_object(value, f"{self._place}: {logical_id}.{name}")
        return {}

    def _holds(self, logical_id: str) -> bool:
        return self.template.holds((self.template.resource(logical_id) or {}).get("Condition"))

    def _machine(self, logical_id: str, project: SourceProject) -> None:
        if not self._holds(logical_id):
            return
        with self._parameters.collect(f"{self._place}: {logical_id}"):
            project.machines.append(self.machine(logical_id))
        properties = self.template.expanded(self.template.properties(logical_id))
        project.notes += [
            f"{self._place}: {logical_id}.{name}" for name in properties if name in _LEFT_OUT
        ]
        place = f"{self._place}: {logical_id}.Events"
        events = self.template.expanded(as_object(properties.get("Events"), place))
        for name, event in events.items():
            with self._parameters.collect(f"{place}.{name}"):
                self._event(logical_id, name, as_object(event, f"{place}.{name}"), project)

    def _activity(self, logical_id: str, project: SourceProject) -> None:
        if self._holds(logical_id):
            project.activities.append(self.template.physical_name(logical_id))

    def _role(self, properties: dict[str, Any]) -> str:
        """Return the ARN of the role, "" if only AWS knows it: roles are not checked."""
        with self._parameters.attempt() as attempt:
            role = self.template.resolve(properties.get("RoleArn") or properties.get("Role"))
        if attempt.missing:
            return ""
        return role if isinstance(role, str) and role.startswith("arn:") else ""

    def _definition(
        self,
        logical_id: str,
        properties: dict[str, Any],
        parameters: Parameters,
        values: Mapping[str, Any],
    ) -> str:
        """Return the definition with its placeholders filled. ``values``: of substitutions."""
        for key in ("DefinitionString", "Definition"):
            if properties.get(key) is not None:
                place = f"{self._place}: {logical_id}.{key}"
                text = definition_text(
                    self.template.resolve(properties[key], logical_id, key), place
                )
                return Placeholders(parameters, place, values).fill(text, is_file=False)
        location = properties.get("DefinitionUri") or properties.get("DefinitionS3Location")
        file = self._file(self.template.resolve(location, logical_id, "DefinitionUri"))
        if file is None:
            names = "Definition, DefinitionString, DefinitionUri or an asset that is here"
            expected = names if self._path else "Definition or DefinitionString"
            message = f"{self._place}: {logical_id}: got no definition, wanted {expected}"
            raise SourceError(message)
        return definition_of_file(file, parameters, values)

    def _file(self, location: Any) -> Path | None:
        if isinstance(location, str) and location and self._path and "://" not in location:
            return self._path.parent / location
        if isinstance(location, dict) and "Key" in location:
            return self._find_asset(str(location["Key"]))
        return None

    # -- nested stacks -----------------------------------------------------------------------------

    def _stack(self, logical_id: str, project: SourceProject) -> None:
        """Add the resources of a nested stack, if its template is a local file."""
        if not self._holds(logical_id):
            return
        nested = self._nested_reader(logical_id)
        if nested is None:
            place = f"{self._place}: {logical_id}"
            project.notes.append(f"{place}: a nested stack whose template is not here")
        else:
            nested.read(project)

    def _nested_template(self, logical_id: str, _resource: dict[str, Any]) -> Template | None:
        nested = self._nested_reader(logical_id)
        return None if nested is None else nested.template

    def _nested_reader(self, logical_id: str) -> TemplateReader | None:
        if logical_id not in self._nested:
            self._nested[logical_id] = self._open_nested(logical_id)
        return self._nested[logical_id]

    def _open_nested(self, logical_id: str) -> TemplateReader | None:
        resource = self.template.resource(logical_id) or {}
        properties = self.template.properties(logical_id)
        key = _STACKS.get(resource.get("Type", ""), "")
        path = self._nested_path(resource, properties.get(key))
        if path is None or not path.is_file():
            return None
        ancestors = (*self._ancestors, *([self._path.resolve()] if self._path else ()))
        if path.resolve() in ancestors:
            raise SourceError(f"{self._place}: {logical_id}: got a circle of nested stacks")
        place = f"{self._place}: {logical_id}.Parameters"
        arguments: dict[str, Callable[[], Any]] = {
            name: lambda value=value: self.template.resolve(value, logical_id, "Parameters")  # type: ignore[misc]
            for name, value in as_object(properties.get("Parameters"), place).items()
        }
        template = Template(
            load_document(path),
            str(path),
            self._account,
            self._parameters,
            folder=path.parent,
            arguments=arguments,
            exports=self.template.exports,
            prefix=f"{self.template.prefix}{logical_id}-",
        )
        return TemplateReader(
            template, self._account, self._parameters, path, self._find_asset, ancestors
        )

    def _nested_path(self, resource: dict[str, Any], location: Any) -> Path | None:
        """Return the file of a nested template: its asset, or a file beside this one."""
        if self._path is None:
            return None
        asset = as_object(resource.get("Metadata"), self._place).get("aws:asset:path")
        if isinstance(asset, str):
            return self._path.parent / asset
        with self._parameters.attempt() as attempt:
            location = self.template.resolve(location)
        if attempt.missing or not isinstance(location, str):
            return None
        if "://" in location:
            return self._find_asset(location.rpartition("/")[2])
        return self._path.parent / location

    # -- events ------------------------------------------------------------------------------------

    def _event(
        self, machine: str, name: str, event: dict[str, Any], project: SourceProject
    ) -> None:
        """Add the rule or schedule that SAM creates for an event of a state machine."""
        kind, place = event.get("Type"), f"{self._place}: {machine}.Events.{name}"
        properties = as_object(event.get("Properties"), place)
        if kind == _SCHEDULE:
            self._schedule_of_event(machine, name, properties, project)
            return
        if kind not in ("Schedule", *_MATCHED):
            project.notes.append(f"{self._place}: {machine}: event {name} of type {kind}")
            return
        declaration = self.template.resolve(
            without_member(properties, "RoleArn"), machine, "Events", name, "Properties"
        )
        if is_elsewhere(declaration):
            bus = declaration["EventBusName"]
            project.notes.append(f"{self._place}: {machine}: event {name} of the bus {bus}")
            return
        target = target_members({**declaration, "Arn": self.template.arn_of(machine)}, place) | {
            "Id": "machine"
        }
        pattern = declaration.get("Pattern") if kind in _MATCHED else None
        rule_name = declaration.get("Name") or declaration.get("RuleName")
        rule = RuleSource(
            name=as_name(rule_name or f"{self.template.physical_name(machine)}-{name}", place),
            place=place,
            pattern=json.dumps(pattern) if pattern else "",
            schedule=str(declaration.get("Schedule") or ""),
            enabled=is_enabled(declaration),
            description=str(declaration.get("Description") or ""),
            targets=(target,),
        )
        project.rules.append(rule)

    def _starts_machine(self, logical_id: str, targets: Any) -> bool:
        """Whether a target of a rule or schedule starts a state machine.

        What the others need is not asked for.
        """
        starts = False
        for target in targets if isinstance(targets, list) else [targets]:
            with self._parameters.attempt():
                if not isinstance(target, dict):
                    continue
                target_without_role = without_member(target, "RoleArn")
                arn = self.template.resolve({"Arn": target_without_role.get("Arn")}, logical_id)
                starts = starts or is_started_by(arn)
        return starts

    def _rule(self, logical_id: str, project: SourceProject) -> None:
        """Add a rule of the template, if state machines are among its targets."""
        place = f"{self._place}: {logical_id}"
        properties = self.template.expanded(self.template.properties(logical_id))
        targets = as_list(properties.get("Targets"), f"{place}.Targets")
        started = [target for target in targets if self._starts_machine(logical_id, target)]
        if not started:
            project.notes.append(f"{place}: a rule without a state machine")
            return
        if not self._holds(logical_id):
            return
        declaration = {
            **properties,
            "Targets": [without_member(target, "RoleArn") for target in started],
        }
        values = self.template.resolve(declaration, logical_id)
        if is_elsewhere(values):
            project.notes.append(f"{place}: a rule of the bus {values['EventBusName']}")
            return
        pattern = values.get("EventPattern")
        rule = RuleSource(
            name=as_name(values.get("Name") or self.template.physical_name(logical_id), place),
            place=place,
            pattern=json.dumps(pattern) if pattern else "",
            schedule=str(values.get("ScheduleExpression") or ""),
            enabled=is_enabled(values),
            description=str(values.get("Description") or ""),
            targets=tuple(
                {"Id": target.get("Id", "machine"), **target_members(target, place)}
                for target in values["Targets"]
            ),
        )
        project.rules.append(rule)

    # -- schedules ---------------------------------------------------------------------------------

    def _schedule_of_event(
        self, machine: str, event: str, properties: dict[str, Any], project: SourceProject
    ) -> None:
        """Add the schedule that SAM makes of an event of type ScheduleV2."""
        place = f"{self._place}: {machine}.Events.{event}"
        settings = self.template.resolve(
            without_member(properties, "RoleArn"), machine, "Events", event
        )
        target = {"Arn": self.template.arn_of(machine), "RoleArn": self._role(properties)}
        optional = ("Input", "RetryPolicy", "DeadLetterConfig")
        target |= {key: settings[key] for key in optional if key in settings}
        schedule = ScheduleSource(
            name=as_name(
                settings.get("Name") or f"{self.template.physical_name(machine)}-{event}", place
            ),
            place=place,
            settings=schedule_settings(settings, target, place),
            group=as_name(settings.get("GroupName") or DEFAULT_GROUP, f"{place}.GroupName"),
        )
        project.schedules.append(schedule)

    def _schedule(self, logical_id: str, project: SourceProject) -> None:
        """Add a schedule of the template, if it starts a state machine."""
        place = f"{self._place}: {logical_id}"
        properties = self.template.expanded(self.template.properties(logical_id))
        raw_target = as_object(properties.get("Target"), f"{place}.Target")
        if not self._starts_machine(logical_id, raw_target):
            project.notes.append(f"{place}: a schedule without a state machine")
            return
        if not self._holds(logical_id):
            return
        declaration = {**properties, "Target": without_member(raw_target, "RoleArn")}
        values = self.template.resolve(declaration, logical_id)
        target = {**values["Target"], "RoleArn": self._role(raw_target)}
        schedule = ScheduleSource(
            name=as_name(values.get("Name") or self.template.physical_name(logical_id), place),
            place=place,
            settings=schedule_settings(values, target, place),
            group=as_name(values.get("GroupName") or DEFAULT_GROUP, f"{place}.GroupName"),
        )
        project.schedules.append(schedule)


def is_elsewhere(properties: dict[str, Any]) -> bool:
    """Whether a rule is for another event bus than the default one."""
    bus = properties.get("EventBusName") or _DEFAULT_BUS
    return str(bus).rpartition("/")[2] != _DEFAULT_BUS


def schedule_settings(
    properties: dict[str, Any], target: dict[str, Any], place: str
) -> dict[str, Any]:
    """Return the parameters of CreateSchedule; numbers may be texts in the template."""
    if not isinstance(properties.get("ScheduleExpression"), str):
        kind = kind_of(properties.get("ScheduleExpression"))
        raise SourceError(f"{place}.ScheduleExpression: got {kind}, wanted a text")
    settings: dict[str, Any] = {"FlexibleTimeWindow": {"Mode": "OFF"}}
    settings |= {key: properties[key] for key in _SCHEDULE_SETTINGS if key in properties}
    window = as_object(settings["FlexibleTimeWindow"], f"{place}.FlexibleTimeWindow")
    settings["FlexibleTimeWindow"] = _with_integers(window, "MaximumWindowInMinutes")
    if "RetryPolicy" in target:
        policy = _with_integers(target["RetryPolicy"], *_RETRY_NUMBERS)
        target = {**target, "RetryPolicy": policy}
    return {**settings, "Target": target}


def _with_integers(properties: dict[str, Any], *keys: str) -> dict[str, Any]:
    numbers = {key: int(properties[key]) for key in keys if str(properties.get(key)).isdigit()}
    return {**properties, **numbers}


def without_member(properties: dict[str, Any], key: str) -> dict[str, Any]:
    """Return a copy of an object without one member."""
    return {name: value for name, value in properties.items() if name != key}


def target_members(target: dict[str, Any], place: str) -> dict[str, Any]:
    """Return the PutTargets members of a target, without a queue that SAM would create."""
    names = ("Arn", "Input", "InputPath", "InputTransformer")
    members = {key: target[key] for key in names if key in target}
    if "RetryPolicy" in target:
        policy = as_object(target["RetryPolicy"], f"{place}.RetryPolicy")
        members["RetryPolicy"] = _with_integers(policy, *_RETRY_NUMBERS)
    queue = as_object(target.get("DeadLetterConfig"), f"{place}.DeadLetterConfig").get("Arn")
    return members | ({"DeadLetterConfig": {"Arn": queue}} if queue else {})


def is_enabled(properties: dict[str, Any]) -> bool:
    """Whether a rule is enabled."""
    return (
        properties.get("State", "ENABLED") != "DISABLED"
        and as_switch(properties.get("Enabled")) is not False
    )


def as_switch(value: Any) -> bool | None:
    """Return a boolean property, None if it is missing."""
    return None if value is None else str(value).lower() == "true"


def read_tags(value: Any, place: str) -> dict[str, str]:
    """Return tags as an object: SAM has an object, CloudFormation a list."""
    try:
        if isinstance(value, list):
            return {str(tag["Key"]): text_of(tag["Value"]) for tag in value}
        tags = as_object(value, f"{place}.Tags")
        return {str(key): text_of(tag) for key, tag in tags.items()}
    except (LookupError, TypeError, ValueError) as error:
        raise SourceError(f"{place}.Tags: got {error}, wanted keys with texts") from None
