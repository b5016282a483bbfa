"""Read the JSON of ``terraform show -json`` for a state or a plan."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

from console.cli.documents import SourceError, as_list, as_name, as_object
from console.feature import Hook, hooked
from console.features.deploy.formats.terraform_references import PlannedReferences
from console.features.deploy.placeholders import Placeholders
from console.features.deploy.sources import (
    DEFAULT_GROUP,
    MACHINE_MARK,
    MachineSource,
    RoleOptions,
    RuleSource,
    ScheduleSource,
    SourceProject,
    definition_text,
    is_started_by,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from console.cli.account import Account
    from console.features.deploy.parameters import Parameters


def is_terraform(document: Any) -> bool:
    """Whether a document is Terraform's JSON."""
    return isinstance(document, dict) and "format_version" in document


def read_terraform(
    document: dict[str, Any], place: str, account: Account, parameters: Parameters
) -> SourceProject:
    """Return a state's or plan's project; state machine ARNs become the server's.

    What is missing or wrong is noted in ``parameters``.
    """
    values = as_object(document.get("planned_values") or document.get("values"), place)
    reader = _Reader(place, account, parameters)
    with parameters.collect(place):
        root = as_object(values.get("root_module"), f"{place}: root_module")
        reader.resources = list(_resources(root, place))
        reader.references = PlannedReferences(document)
        reader.read()
    return reader.project


def _resources(module: dict[str, Any], place: str) -> Iterator[tuple[str, str, dict[str, Any]]]:
    """Yield address, type and values of each resource that Terraform makes."""
    for resource in as_list(module.get("resources"), f"{place}: resources"):
        entry = as_object(resource, f"{place}: resources")
        if entry.get("mode", "managed") == "managed":
            address = as_name(entry.get("address"), f"{place}: resources: address")
            kind = as_name(entry.get("type"), f"{place}: {address}: type")
            yield address, kind, as_object(entry.get("values"), f"{place}: {address}: values")
    for child in as_list(module.get("child_modules"), f"{place}: child_modules"):
        yield from _resources(as_object(child, f"{place}: child_modules"), place)


class _Reader:
    """Reads the resources of a state or a plan, in which some values are still unknown."""

    def __init__(self, place: str, account: Account, parameters: Parameters) -> None:
        self._place, self._account, self._parameters = place, account, parameters
        self.resources: list[tuple[str, str, dict[str, Any]]] = []
        self.references = PlannedReferences({})
        self.project = SourceProject()

    def read(self) -> None:
        """Add the supported resources to the project."""
        readers = {
            "aws_sfn_state_machine": self._machine,
            "aws_sfn_activity": self._activity,
            "aws_cloudwatch_event_rule": self._rule,
            "aws_scheduler_schedule": self._schedule,
        }
        for address, kind, values in self.resources:
            if kind in readers:
                with self._parameters.collect(f"{self._place}: {address}"):
                    readers[kind](address, values)

    def _resource_value(self, address: str, values: dict[str, Any], key: str) -> Any:
        """Return a resource's value; ask for ``--param`` if only the apply knows it."""
        if values.get(key) not in (None, ""):
            return values[key]
        name = f"{address}.{key}"
        got = "a value that is known after apply (the state has it then)"
        return self._parameters.ask(self._place, name, name, got=got)

    def _machine(self, address: str, values: dict[str, Any]) -> None:
        place = f"{self._place}: {address}"
        text = definition_text(
            self._resource_value(address, values, "definition"), f"{place}.definition"
        )
        placeholders = Placeholders(self._parameters, f"{place}.definition")
        machine = MachineSource(
            name=as_name(self._resource_value(address, values, "name"), f"{place}.name"),
            definition=placeholders.fill(text, is_file=False),
            place=place,
            type=values.get("type") or "STANDARD",
            role=values.get("role_arn") or "",
            tracing=_block(values, "tracing_configuration", place).get("enabled"),
            tags=as_object(values.get("tags_all") or values.get("tags"), f"{place}.tags"),
            policies=self._policies(address, values),
            options=RoleOptions(
                logs=_block(values, "logging_configuration", place).get("level", "OFF") != "OFF",
                tracing=bool(_block(values, "tracing_configuration", place).get("enabled")),
                key=_block(values, "encryption_configuration", place).get("kms_key_id") or "",
            ),
        )
        self.project.machines.append(machine)
        if _block(values, "logging_configuration", place).get("level", "OFF") != "OFF":
            self.project.notes.append(f"{place}.logging_configuration")

    def _policies(self, address: str, values: dict[str, Any]) -> Any:
        """Return the policies of a state machine's role, None if they are not here."""
        for role_of in hooked(Hook.TERRAFORM_ROLE):
            return role_of(self.resources, self.references, self._place, address, values)
        return None

    def _activity(self, address: str, values: dict[str, Any]) -> None:
        name = as_name(
            self._resource_value(address, values, "name"), f"{self._place}: {address}.name"
        )
        self.project.activities.append(name)

    def _rule(self, address: str, values: dict[str, Any]) -> None:
        """Add a rule, if state machines are among its targets."""
        place = f"{self._place}: {address}"
        bus = str(values.get("event_bus_name") or _DEFAULT_BUS)
        if bus.rpartition("/")[2] != _DEFAULT_BUS:
            self.project.notes.append(f"{place}: a rule of the bus {bus}")
            return
        name = as_name(self._resource_value(address, values, "name"), f"{place}.name")
        of_rule = [
            {**target, "arn": self._resource_value(where, target, "arn")}
            for where, kind, target in self.resources
            if kind == "aws_cloudwatch_event_target" and target.get("rule") == name
        ]
        targets = tuple(
            _target(target, self._account, place) for target in of_rule if _is_machine(target)
        )
        if not targets:
            self.project.notes.append(f"{place}: a rule without a state machine")
            return
        pattern = values.get("event_pattern")
        rule = RuleSource(
            name=name,
            place=place,
            pattern=pattern if isinstance(pattern, str) else json.dumps(pattern) if pattern else "",
            schedule=values.get("schedule_expression") or "",
            enabled=values.get("state", "ENABLED") != "DISABLED"
            and values.get("is_enabled") is not False,
            description=values.get("description") or "",
            targets=targets,
        )
        self.project.rules.append(rule)

    def _schedule(self, address: str, values: dict[str, Any]) -> None:
        """Add a schedule, if it starts a state machine."""
        place = f"{self._place}: {address}"
        target = _block(values, "target", place)
        target = {**target, "arn": self._resource_value(f"{address}.target", target, "arn")}
        settings = {
            name: value
            for name, value in _as_parameters(
                {**values, "target": [target]}, self._account, place
            ).items()
            if name not in ("Name", "NamePrefix", "GroupName")
        }
        if not is_started_by(settings.get("Target") or {}):
            self.project.notes.append(f"{place}: a schedule without a state machine")
            return
        if not isinstance(settings.get("ScheduleExpression"), str):
            raise SourceError(f"{place}.schedule_expression: got no text, wanted one")
        name = as_name(self._resource_value(address, values, "name"), f"{place}.name")
        group = as_name(values.get("group_name") or DEFAULT_GROUP, f"{place}.group_name")
        self.project.schedules.append(ScheduleSource(name, place, settings, group))


def _block(values: dict[str, Any], key: str, place: str) -> dict[str, Any]:
    """Return a nested block (Terraform has a list of one), {} if it is missing."""
    listed = as_list(values.get(key), f"{place}.{key}")
    return as_object(listed[0], f"{place}.{key}") if listed else {}


_DEFAULT_BUS = "default"
_SCHEDULE_WORDS = {
    "action_after_completion", "arn", "dead_letter_config", "description", "end_date",
    "flexible_time_window", "input", "kms_key_arn", "maximum_event_age_in_seconds",
    "maximum_retry_attempts", "maximum_window_in_minutes", "mode", "retry_policy", "role_arn",
    "schedule_expression", "schedule_expression_timezone", "start_date", "state", "target",
}  # fmt: skip


def _as_parameters(values: dict[str, Any], account: Account, place: str) -> dict[str, Any]:
    """Return the parameters of CreateSchedule; Terraform wraps each object in a list."""
    parameters: dict[str, Any] = {}
    for word, value in values.items():
        # a window of 0 minutes is how a state has none
        absent = value in (None, "", []) or (word == "maximum_window_in_minutes" and not value)
        if word not in _SCHEDULE_WORDS or absent:
            continue
        name = "".join(part.title() for part in word.split("_"))
        if isinstance(value, list):
            block = as_object(value[0], f"{place}.{word}")
            parameters[name] = _as_parameters(block, account, f"{place}.{word}")
        else:
            parameters[name] = _of_account(value, account) if word in ("arn", "input") else value
    return parameters


_MACHINE_ARN = re.compile(r"arn:[\w-]+:states:[\w-]*:\d*:stateMachine:")


def _of_account(text: Any, account: Account) -> str:
    """Return a text with the ARNs of state machines moved to the server's account."""
    return _MACHINE_ARN.sub(account.arn("states", "stateMachine:"), str(text))


def _is_machine(target: dict[str, Any]) -> bool:
    return MACHINE_MARK in str(target.get("arn"))


def _target(values: dict[str, Any], account: Account, place: str) -> dict[str, Any]:
    name = values["arn"].partition(MACHINE_MARK)[2]
    target = {
        "Id": values.get("target_id") or "machine",
        "Arn": account.arn("states", f"stateMachine:{name}"),
    }
    for word, member in (("input", "Input"), ("input_path", "InputPath")):
        if values.get(word):
            target[member] = values[word]
    if values.get("input_transformer"):
        (transformer,) = values["input_transformer"]
        target["InputTransformer"] = {
            "InputPathsMap": transformer.get("input_paths") or {},
            "InputTemplate": transformer["input_template"],
        }
    words = ("retry_policy", "dead_letter_config")
    return target | _as_parameters({word: values.get(word) for word in words}, account, place)
