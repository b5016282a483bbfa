"""``serverless.yml`` with the plugin for Step Functions: ``stepFunctions: stateMachines:``."""

from __future__ import annotations

import json
import os
import re
from typing import TYPE_CHECKING, Any

from console.cli.documents import SourceError, load_document, read_text
from console.cli.intrinsics import Template
from console.cli.sources import (
    MachineSource,
    RuleSource,
    ScheduleSource,
    SourceProject,
    definition_text,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from console.cli.sources import Account

_VARIABLE = re.compile(r"\$\{((?:[^${}]|\$(?!\{))*)\}")
_SOURCE = re.compile(r"(self|opt|env|param|sls|aws|file|custom)\b(.*)", re.DOTALL)
_FILE = re.compile(r"file\(([^)]+)\)(?::(.+))?")
_PSEUDO = re.compile(r"#\{(AWS::\w+)\}")


def is_service(document: Any) -> bool:
    """Tell whether a document is a service with state machines."""
    return isinstance(document, dict) and "stepFunctions" in document and "service" in document


def read_service(path: Path, account: Account, given: Mapping[str, str]) -> SourceProject:
    """Return what a service has. ``given``: also the options, as ``stage``."""
    service = _Service(path, account, given)
    project = SourceProject()
    for key, said in service.machines().items():
        project.machines.append(service.machine(key, said))
        for number, event in enumerate(said.get("events") or (), 1):
            service.add_event(key, said, number, event, project)
    project.activities += service.activities()
    return project


class _Service:
    """A service whose variables are replaced as they are read."""

    def __init__(self, path: Path, account: Account, given: Mapping[str, str]) -> None:
        self._path, self._account, self._given = path, account, given
        self._document: dict[str, Any] = load_document(path)
        self._stage = given.get("stage", "dev")
        try:
            stage = (self._document.get("provider") or {}).get("stage")
            self._stage = given.get("stage") or self._filled(stage) or "dev"
            self._document = self._filled(self._document)
        except RecursionError:
            msg = f"{path}: got variables in a circle, wanted values"
            raise SourceError(msg) from None
        self._template = Template(self._as_template(), str(path), account, given)

    def machines(self) -> dict[str, dict[str, Any]]:
        """Return key -> what is said of a state machine."""
        every = self._document["stepFunctions"].get("stateMachines") or {}
        if isinstance(every, list):  # of files, each with some
            every = {key: said for part in every for key, said in part.items()}
        return every

    def activities(self) -> list[str]:
        """Return the names of the service's activities."""
        return [str(name) for name in self._document["stepFunctions"].get("activities") or []]

    def machine(self, key: str, said: dict[str, Any]) -> MachineSource:
        """Return a state machine."""
        if "definition" not in said:
            raise SourceError(f"{self._path}: {key}: got no definition, wanted one")
        definition = self._template.resolve(said["definition"])
        text = _PSEUDO.sub(lambda match: str(self._template.resolve({"Ref": match[1]})),
                           definition_text(definition))  # fmt: skip
        tracing = said.get("tracingConfig") or {}
        return MachineSource(
            name=self._name(key, said),
            definition=text,
            place=f"{self._path}: {key}",
            type=said.get("type") or "STANDARD",
            role=self._role(said),
            tracing=tracing.get("enabled"),
            tags={str(tag): str(value) for tag, value in (said.get("tags") or {}).items()},
        )

    def add_event(
        self, key: str, said: dict[str, Any], number: int, event: Any, project: SourceProject
    ) -> None:
        """Add the rule of an event, or a note of one that no server takes."""
        kind, about = next(iter(event.items())) if isinstance(event, dict) else (str(event), {})
        name = self._name(key, said)
        if kind not in ("schedule", "cloudwatchEvent", "eventBridge"):
            project.notes.append(f"{self._path}: {key}: event {number} of type {kind}")
            return
        about = {"rate": about} if isinstance(about, str) else about
        target = _event_target(about, self._account.arn("states", f"stateMachine:{name}"))
        rate = about.get("rate")
        rates: list[Any] = rate if isinstance(rate, list) else [rate]
        pattern = about.get("event") or about.get("pattern")
        for extra, each in enumerate(rates):
            end = f"-{extra + 1}" if extra else ""
            named = about.get("name") or f"{name}-{number}{end}"
            place = f"{self._path}: {key}: event {number}"
            if kind == "schedule" and about.get("method") == "scheduler":
                project.schedules.append(_schedule(named, place, str(each), about, target))
                continue
            rule = RuleSource(
                name=named,
                place=place,
                pattern=json.dumps(self._template.resolve(pattern)) if pattern else "",
                schedule=str(each) if kind == "schedule" else "",
                enabled=about.get("enabled") is not False,
                description=about.get("description", ""),
                targets=({"Id": "machine", **target},),
            )
            project.rules.append(rule)

    def _name(self, key: str, said: dict[str, Any]) -> str:
        return str(self._template.resolve(said.get("name") or key))

    def _role(self, said: dict[str, Any]) -> str:
        try:
            role = self._template.resolve(said.get("role") or "")
        except SourceError:
            return ""
        return role if isinstance(role, str) and role.startswith("arn:") else ""

    def _as_template(self) -> dict[str, Any]:
        """Return the resources of the service, its functions among them, by either of their ids."""
        given = self._document.get("resources") or {}
        every = given if isinstance(given, list) else [given]
        resources = {k: v for part in every for k, v in (part.get("Resources") or {}).items()}
        for key, said in (self._document.get("functions") or {}).items():
            name = (said or {}).get("name") or f"{self._document['service']}-{self._stage}-{key}"
            function = {"Type": "AWS::Lambda::Function", "Properties": {"FunctionName": name}}
            logical = key.replace("-", "Dash").replace("_", "Underscore")
            resources[key] = function
            resources[f"{logical[:1].upper()}{logical[1:]}LambdaFunction"] = function
        for key, said in self.machines().items():
            named = {"StateMachineName": said.get("name") or key}
            machine = {"Type": "AWS::StepFunctions::StateMachine", "Properties": named}
            resources.setdefault(said.get("id") or key, machine)
        return {"Resources": resources}

    # -- variables ---------------------------------------------------------------------------------

    def _filled(self, value: Any) -> Any:
        """Return a value with its ``${...}`` replaced, also those in what they stand for."""
        if isinstance(value, dict):
            return {key: self._filled(part) for key, part in value.items()}
        if isinstance(value, list):
            return [self._filled(part) for part in value]
        for _ in range(_DEPTH):
            if not isinstance(value, str):
                return self._filled(value) if isinstance(value, dict | list) else value
            match = next((m for m in _VARIABLE.finditer(value) if _SOURCE.match(m[1])), None)
            if match is None:
                return value
            found = self._value_of(match[1])
            whole = match.span() == (0, len(value))
            value = found if whole else value[: match.start()] + str(found) + value[match.end() :]
        raise SourceError(f"{self._path}: {value}: got variables in a circle, wanted values")

    def _value_of(self, expression: str) -> Any:
        """Return the first of the values, by comma, that is there."""
        for part in (text.strip() for text in _by_comma(expression)):
            literal = re.fullmatch(r"'([^']*)'|\"([^\"]*)\"|(\d+|true|false|null)", part)
            if literal:
                return json.loads(part) if literal[3] else part[1:-1]
            found = self._lookup(part)
            if found is not None:
                return found
        name = expression.strip()
        raise SourceError(
            f"{self._path}: ${{{name}}}: got no value, wanted --param "
            f"{name.partition(':')[2].partition(',')[0] or name}=VALUE"
        )

    def _lookup(self, part: str) -> Any:
        source, _, name = part.partition(":")
        if part.startswith("file("):
            return self._from_file(part)
        sources: dict[str, Callable[[], Any]] = {
            "self": lambda: _value_at(self._document, name),
            "opt": lambda: self._given.get(name),
            "param": lambda: self._given.get(name),
            "env": lambda: os.environ.get(name),
            "sls": lambda: self._stage if name == "stage" else None,
            "aws": lambda: {
                "accountId": self._account.number,
                "region": self._account.region,
            }.get(name),
        }
        found = sources.get(source, lambda: None)()
        if found is None and name == "provider.stage":
            return self._stage
        return self._given.get(name) if found is None else found

    def _from_file(self, part: str) -> Any:
        match = _FILE.fullmatch(part)
        if match is None:
            return None
        path = self._path.parent / match[1].strip()
        if not path.exists():
            return None
        known = path.name.endswith((".json", ".yml", ".yaml"))
        document = load_document(path) if known else read_text(path)
        return _value_at(document, match[2]) if match[2] else document


def _event_target(about: dict[str, Any], arn: str) -> dict[str, Any]:
    """Return what an event sends to its state machine, as PutTargets takes it."""
    target: dict[str, Any] = {"Arn": arn}
    if "input" in about:
        given = about["input"]
        target["Input"] = given if isinstance(given, str) else json.dumps(given)
    if "inputPath" in about:
        target["InputPath"] = about["inputPath"]
    if "inputTransformer" in about:
        said = about["inputTransformer"]
        target["InputTransformer"] = {key[:1].upper() + key[1:]: said[key] for key in said}
    if isinstance(about.get("deadLetterConfig"), str):
        target["DeadLetterConfig"] = {"Arn": about["deadLetterConfig"]}
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


_DEPTH = 50


def _by_comma(expression: str) -> list[str]:
    """Return the parts of an expression; a comma in quotation marks or brackets separates none."""
    return re.findall(r"(?:'[^']*'|\"[^\"]*\"|\([^)]*\)|[^,])+", expression)


def _value_at(document: Any, path: str) -> Any:
    for key in path.split(".") if path else ():
        if isinstance(document, list) and key.isdigit():
            document = document[int(key)]
        elif isinstance(document, dict):
            document = document.get(key)
        else:
            return None
    return document
