"""Read ``serverless.yml`` with the Step Functions plugin: ``stepFunctions: stateMachines:``."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from console.cli.documents import SourceError, as_list, as_name, as_object, kind_of, load_document
from console.feature import Hook, hooked
from console.features.deploy.intrinsics import Template
from console.features.deploy.parameters import text_of
from console.features.deploy.placeholders import Placeholders
from console.features.deploy.sources import (
    MachineSource,
    RoleOptions,
    RuleSource,
    ScheduleSource,
    SourceProject,
    definition_text,
)
from console.features.deploy.variables import ServiceVariables

if TYPE_CHECKING:
    from pathlib import Path

    from console.cli.account import Account
    from console.features.deploy.parameters import Parameters

_READ = {"id", "name", "definition", "type", "role", "tags", "events", "tracingConfig"}
_AWS_ONLY = {"dependsOn", "retain", "useExactVersion", "iamRoleStatements", "inheritGlobalTags"}
"""Keys of a state machine about roles, stacks and other resources, which do not exist here."""
_IGNORED = {"loggingConfig", "alarms", "notifications", "encryptionConfig"}
"""Keys of a state machine that are ignored, with a note for the user."""
_EVENT_READ = {
    *("rate", "enabled", "name", "description", "input", "inputPath", "inputTransformer", "role"),
    *("method", "timezone", "deadLetterConfig", "event", "pattern", "eventBusName"),
}
_UNKNOWN_ROLE = "the policies that the Step Functions plugin creates are unknown"
_DEFAULT_BUS = "default"


def is_service(document: Any) -> bool:
    """Return whether a document is a Serverless service with state machines."""
    return isinstance(document, dict) and "stepFunctions" in document and "service" in document


def read_service(path: Path, account: Account, parameters: Parameters) -> SourceProject:
    """Return a service's project; missing and wrong values are noted in ``parameters``.

    ``parameters`` also has the options of the Serverless Framework, such as ``stage``.
    """
    project = SourceProject()
    with parameters.collect(str(path)):
        service = _Service(path, account, parameters)
        for key, value in service.machines().items():
            with parameters.collect(f"{path}: {key}"):
                service.add_machine(key, value, project)
        with parameters.collect(f"{path}: stepFunctions.activities"):
            project.activities += service.activities()
    return project


class _ServiceTemplate(Template):
    """The CloudFormation resources of a service, with Serverless variables."""

    variables: ServiceVariables

    def fill_variables(self, text: str) -> Any:
        """Return a text with its variables replaced by their values."""
        return self.variables.fill(text, ".".join(self._trail).replace(".[", "["))

    def resource(self, logical_id: str) -> dict[str, Any] | None:
        """Return a resource, which may be in its own file."""
        resources = self.section("Resources")
        if not isinstance(logical_id, str) or logical_id not in resources:
            return None
        resource = self.variables.shallow(resources[logical_id], logical_id)
        return as_object(resource, self.place(logical_id))

    def properties(self, logical_id: str) -> dict[str, Any]:
        """Return the properties of a resource, which may be in their own file."""
        declared = (self.resource(logical_id) or {}).get("Properties")
        place = f"{logical_id}.Properties"
        return as_object(self.variables.shallow(declared, place), self.place(place))


class _Service:
    """A service; its variables are replaced while reading."""

    def __init__(self, path: Path, account: Account, parameters: Parameters) -> None:
        self._path, self._account, self._parameters = path, account, parameters
        document = as_object(load_document(path), str(path))
        self._variables = ServiceVariables(path, document, account, parameters)
        self._template = _ServiceTemplate({}, str(path), account, parameters, folder=path.parent)
        self._template.variables = self._variables
        self._template.body = {"Resources": self._resources()}

    def machines(self) -> dict[str, Any]:
        """Return key -> settings of a state machine."""
        return self._merge_section("stepFunctions", "stateMachines")

    def activities(self) -> list[str]:
        """Return the names of the service's activities."""
        place = "stepFunctions.activities"
        listed = as_list(
            self._variables.section("stepFunctions", "activities"), f"{self._path}: {place}"
        )
        names = self._template.resolve(listed, place)
        return [as_name(name, f"{self._path}: {place}") for name in names]

    def add_machine(self, key: str, value: Any, project: SourceProject) -> None:
        """Add a state machine and its triggers."""
        place = f"{self._path}: {key}"
        settings = as_object(self._variables.shallow(value, key), place)
        for name in settings:
            if name not in _READ | _AWS_ONLY | _IGNORED:
                names = ", ".join(sorted(_READ))
                raise SourceError(f"{place}.{name}: got an unknown key, wanted one of {names}")
        with self._parameters.collect(place):
            project.machines.append(self._machine(key, settings))
        project.notes += [f"{place}.{name}" for name in settings if name in _IGNORED]
        events = as_list(self._variables.shallow(settings.get("events"), key), f"{place}.events")
        for number, event in enumerate(events, 1):
            with self._parameters.collect(f"{place}: event {number}"):
                event_settings = self._variables.shallow(event, f"{key}.events[{number}]")
                self._add_event(key, settings, number, event_settings, project)

    def _machine(self, key: str, settings: dict[str, Any]) -> MachineSource:
        place = f"{self._path}: {key}"
        if settings.get("definition") is None:
            raise SourceError(f"{place}: got no definition, wanted one")
        definition = self._template.resolve(settings["definition"], key, "definition")
        text = definition_text(definition, f"{place}.definition")
        pseudo = self._account.pseudo_parameters
        placeholders = Placeholders(self._parameters, f"{place}.definition", pseudo)
        tracing = self._resolved(settings, key, "tracingConfig") or {}
        kind = self._resolved(settings, key, "type") or "STANDARD"
        tags = as_object(self._resolved(settings, key, "tags"), f"{place}.tags")
        return MachineSource(
            name=self._name(key, settings),
            definition=placeholders.fill(text, is_file=False),
            place=place,
            type=as_name(kind, f"{place}.type"),
            role=self._role(settings),
            tracing=as_object(tracing, f"{place}.tracingConfig").get("enabled"),
            tags={str(tag): text_of(tagged) for tag, tagged in tags.items()},
            policies=self._policies(key, settings),
            options=RoleOptions(
                logs=_logs(self._resolved(settings, key, "loggingConfig")),
                tracing=bool(tracing.get("enabled")) if isinstance(tracing, dict) else False,
            ),
        )

    def _policies(self, key: str, settings: dict[str, Any]) -> Any:
        """Return the policies of a state machine's role, None if they are not in the service."""
        place = f"{self._path}: {key}"
        if settings.get("role") is not None:
            context = (self._template, self._account, self._parameters, place)
            with self._parameters.attempt():
                for role_of in hooked(Hook.TEMPLATE_ROLE):
                    return role_of(context, key, settings["role"], traced=False)
            return None
        statements: Any = None
        with self._parameters.attempt():
            statements = self._resolved(settings, key, "iamRoleStatements")
        documents = []
        if isinstance(statements, list):
            documents.append((f"{place}.iamRoleStatements", {"Statement": statements}))
        for listed_role in hooked(Hook.LISTED_ROLE):
            return listed_role(f"{key}Role", documents, [f"{place}: {_UNKNOWN_ROLE}"])
        return None

    def _resolved(self, settings: dict[str, Any], key: str, name: str) -> Any:
        return self._template.resolve(settings.get(name), key, name)

    def _add_event(
        self, key: str, settings: dict[str, Any], number: int, event: Any, project: SourceProject
    ) -> None:
        """Add the rule of an event, or a note about an unsupported event."""
        place = f"{self._path}: {key}: event {number}"
        kind, about = next(iter(event.items())) if isinstance(event, dict) else (str(event), {})
        if kind not in ("schedule", "cloudwatchEvent", "eventBridge"):
            project.notes.append(f"{place} of type {kind}")
            return
        about = self._template.resolve(about, key, f"events[{number}]")
        about = as_object({"rate": about} if isinstance(about, str) else about, place)
        for name in about:
            if name not in _EVENT_READ:
                names = ", ".join(sorted(_EVENT_READ))
                raise SourceError(f"{place}: {name}: got an unknown key, wanted one of {names}")
        bus = text_of(about.get("eventBusName") or _DEFAULT_BUS)
        if bus.rpartition("/")[2] != _DEFAULT_BUS:
            project.notes.append(f"{place} of the bus {bus}")
            return
        self._add_rules(kind, about, f"{self._name(key, settings)}-{number}", place, project)

    def _add_rules(
        self, kind: str, about: dict[str, Any], base: str, place: str, project: SourceProject
    ) -> None:
        """Add a rule or a schedule for each rate of an event."""
        machine = base.rpartition("-")[0]
        target = _event_target(about, place, self._account.arn("states", f"stateMachine:{machine}"))
        rate = about.get("rate")
        rates: list[Any] = rate if isinstance(rate, list) else [rate]
        pattern = about.get("event") or about.get("pattern")
        for extra, each in enumerate(rates):
            end = f"-{extra + 1}" if extra else ""
            rule_name = as_name(about.get("name") or f"{base}{end}", f"{place}: name")
            if kind == "schedule" and not isinstance(each, str):
                raise SourceError(f"{place}: rate: got {kind_of(each)}, wanted a text")
            if kind == "schedule" and about.get("method") == "scheduler":
                project.schedules.append(_schedule(rule_name, place, each, about, target))
                continue
            rule = RuleSource(
                name=rule_name,
                place=place,
                pattern=json.dumps(pattern) if pattern else "",
                schedule=str(each) if kind == "schedule" else "",
                enabled=about.get("enabled") is not False,
                description=str(about.get("description") or ""),
                targets=({"Id": "machine", **target},),
            )
            project.rules.append(rule)

    def _name(self, key: str, settings: dict[str, Any]) -> str:
        return as_name(self._resolved(settings, key, "name") or key, f"{self._path}: {key}.name")

    def _role(self, settings: dict[str, Any]) -> str:
        with self._parameters.attempt() as attempt:
            role = self._template.resolve(settings.get("role") or "")
        if attempt.missing:
            return ""
        return role if isinstance(role, str) and role.startswith("arn:") else ""

    def _merge_section(self, *keys: str) -> dict[str, Any]:
        """Return a section of the service: an object, or merged objects and files of a list."""
        place = ".".join(keys)
        section = self._variables.section(*keys)
        every: dict[str, Any] = {}
        for number, part in enumerate(section if isinstance(section, list) else [section]):
            part_value = self._variables.shallow(part, f"{place}[{number}]")
            every |= as_object(part_value, f"{self._path}: {place}")
        return every

    def _resources(self) -> dict[str, Any]:
        """Return the resources and functions of the service by logical id."""
        resources: dict[str, Any] = {}
        section = self._variables.section("resources")
        for part in section if isinstance(section, list) else [section]:
            body = as_object(self._variables.shallow(part, "resources"), f"{self._path}: resources")
            inside = self._variables.shallow(body.get("Resources"), "resources.Resources")
            resources |= as_object(inside, f"{self._path}: resources.Resources")
        service = self._variables.fill(self._variables.section("service"), "service")
        service = service.get("name") if isinstance(service, dict) else service
        service = as_name(service, f"{self._path}: service")
        for key, value in self._merge_section("functions").items():
            settings = as_object(
                self._variables.shallow(value, f"functions.{key}"), f"{self._path}: functions.{key}"
            )
            name = settings.get("name") or f"{service}-{self._variables.stage}-{key}"
            function = {"Type": "AWS::Lambda::Function", "Properties": {"FunctionName": name}}
            logical = key.replace("-", "Dash").replace("_", "Underscore")
            resources[key] = function
            resources[f"{logical[:1].upper()}{logical[1:]}LambdaFunction"] = function
        for key, value in self.machines().items():
            settings = as_object(self._variables.shallow(value, key), f"{self._path}: {key}")
            properties = {"StateMachineName": settings.get("name") or key}
            machine = {"Type": "AWS::StepFunctions::StateMachine", "Properties": properties}
            resources.setdefault(
                as_name(settings.get("id") or key, f"{self._path}: {key}.id"), machine
            )
        return resources


def _logs(config: Any) -> bool:
    """Return whether a loggingConfig sends logs."""
    return isinstance(config, dict) and str(config.get("level", "OFF")).upper() != "OFF"


def _event_target(about: dict[str, Any], place: str, arn: str) -> dict[str, Any]:
    """Return the PutTargets target of an event."""
    target: dict[str, Any] = {"Arn": arn}
    if "input" in about:
        value = about["input"]
        target["Input"] = value if isinstance(value, str) else json.dumps(value)
    if "inputPath" in about:
        target["InputPath"] = about["inputPath"]
    if "inputTransformer" in about:
        transformer = as_object(about["inputTransformer"], f"{place}: inputTransformer")
        target["InputTransformer"] = {
            key[:1].upper() + key[1:]: transformer[key] for key in transformer
        }
    queue = about.get("deadLetterConfig")
    queue = queue.get("targetArn") if isinstance(queue, dict) else queue
    if queue is not None:
        target["DeadLetterConfig"] = {"Arn": as_name(queue, f"{place}: deadLetterConfig")}
    return target


def _schedule(
    name: str, place: str, rate: str, about: dict[str, Any], target: dict[str, Any]
) -> ScheduleSource:
    """Return the schedule of an event with ``method: scheduler``."""
    settings = {
        "FlexibleTimeWindow": {"Mode": "OFF"},
        "ScheduleExpression": rate,
        "State": "DISABLED" if about.get("enabled") is False else "ENABLED",
        "Target": target,
    }
    settings |= {"Description": about["description"]} if about.get("description") else {}
    if about.get("timezone"):
        settings["ScheduleExpressionTimezone"] = about["timezone"]
    return ScheduleSource(name, place, settings)
