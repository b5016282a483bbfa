"""What ``terraform show -json`` prints of a state or of a plan."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

from console.cli.documents import SourceError
from console.cli.sources import (
    DEFAULT_GROUP,
    MACHINE_MARK,
    MachineSource,
    RuleSource,
    ScheduleSource,
    SourceProject,
    is_started_by,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from console.cli.sources import Account


def is_terraform(document: Any) -> bool:
    """Tell whether a document is one of Terraform's."""
    return isinstance(document, dict) and "format_version" in document


def read_terraform(document: dict[str, Any], place: str, account: Account) -> SourceProject:
    """Return what a state or plan has; ARNs of state machines become those of the server."""
    values = document.get("planned_values") or document.get("values") or {}
    resources = list(_resources(values.get("root_module") or {}))
    project = SourceProject()
    for address, kind, said in resources:
        if kind == "aws_sfn_state_machine":
            project.machines.append(_machine(f"{place}: {address}", said))
        elif kind == "aws_sfn_activity":
            project.activities.append(said["name"])
        elif kind == "aws_cloudwatch_event_rule":
            project.rules.append(_rule(f"{place}: {address}", said, resources, account))
        elif kind == "aws_scheduler_schedule":
            _add_schedule(project, f"{place}: {address}", said, account)
    return project


def _resources(module: dict[str, Any]) -> Iterator[tuple[str, str, dict[str, Any]]]:
    for resource in module.get("resources", ()):
        if resource.get("mode", "managed") == "managed":
            yield resource["address"], resource["type"], resource.get("values") or {}
    for child in module.get("child_modules", ()):
        yield from _resources(child)


def _machine(place: str, said: dict[str, Any]) -> MachineSource:
    if not said.get("definition"):
        raise SourceError(
            f"{place}.definition: got a value that is known after apply, wanted the JSON of a state"
            " that was applied, or a definition of known values"
        )
    tracing = said.get("tracing_configuration") or [{}]
    return MachineSource(
        name=said.get("name") or place.rpartition(".")[2],
        definition=said["definition"],
        place=place,
        type=said.get("type") or "STANDARD",
        role=said.get("role_arn") or "",
        tracing=tracing[0].get("enabled"),
        tags=said.get("tags_all") or said.get("tags") or {},
    )


def _rule(
    place: str,
    said: dict[str, Any],
    resources: list[tuple[str, str, dict[str, Any]]],
    account: Account,
) -> RuleSource:
    of_rule = [
        target
        for _, kind, target in resources
        if kind == "aws_cloudwatch_event_target" and target.get("rule") == said.get("name")
    ]
    targets = tuple(_target(target, account) for target in of_rule if _is_machine(target))
    pattern = said.get("event_pattern")
    return RuleSource(
        name=said["name"],
        place=place,
        pattern=pattern if isinstance(pattern, str) else json.dumps(pattern) if pattern else "",
        schedule=said.get("schedule_expression") or "",
        enabled=said.get("state", "ENABLED") != "DISABLED" and said.get("is_enabled") is not False,
        description=said.get("description") or "",
        targets=targets,
    )


def _add_schedule(
    project: SourceProject, place: str, said: dict[str, Any], account: Account
) -> None:
    """Add a schedule, if it starts a state machine."""
    settings = {
        name: value
        for name, value in _as_parameters(said, account).items()
        if name not in ("Name", "NamePrefix", "GroupName")
    }
    if not is_started_by(settings.get("Target") or {}):
        project.notes.append(f"{place}: a schedule without a state machine")
        return
    group = said.get("group_name") or DEFAULT_GROUP
    project.schedules.append(ScheduleSource(said["name"], place, settings, group))


_SCHEDULE_WORDS = {
    "action_after_completion", "arn", "dead_letter_config", "description", "end_date",
    "flexible_time_window", "input", "kms_key_arn", "maximum_event_age_in_seconds",
    "maximum_retry_attempts", "maximum_window_in_minutes", "mode", "retry_policy", "role_arn",
    "schedule_expression", "schedule_expression_timezone", "start_date", "state", "target",
}  # fmt: skip


def _as_parameters(said: dict[str, Any], account: Account) -> dict[str, Any]:
    """Return what CreateSchedule takes: Terraform has each object as a list of one."""
    made: dict[str, Any] = {}
    for word, value in said.items():
        # a window of 0 minutes is how a state has none
        absent = value in (None, "", []) or (word == "maximum_window_in_minutes" and not value)
        if word not in _SCHEDULE_WORDS or absent:
            continue
        name = "".join(part.title() for part in word.split("_"))
        if isinstance(value, list):
            made[name] = _as_parameters(value[0], account)
        else:
            made[name] = _of_account(value, account) if word in ("arn", "input") else value
    return made


_MACHINE_ARN = re.compile(r"arn:[\w-]+:states:[\w-]*:\d*:stateMachine:")


def _of_account(text: str, account: Account) -> str:
    """Return a text with the ARNs of state machines as those of the server."""
    return _MACHINE_ARN.sub(account.arn("states", "stateMachine:"), text)


def _is_machine(target: dict[str, Any]) -> bool:
    return MACHINE_MARK in str(target.get("arn"))


def _target(said: dict[str, Any], account: Account) -> dict[str, Any]:
    name = said["arn"].partition(MACHINE_MARK)[2]
    target = {
        "Id": said.get("target_id") or "machine",
        "Arn": account.arn("states", f"stateMachine:{name}"),
    }
    for word, member in (("input", "Input"), ("input_path", "InputPath")):
        if said.get(word):
            target[member] = said[word]
    if said.get("input_transformer"):
        (transformer,) = said["input_transformer"]
        target["InputTransformer"] = {
            "InputPathsMap": transformer.get("input_paths") or {},
            "InputTemplate": transformer["input_template"],
        }
    words = ("retry_policy", "dead_letter_config")
    return target | _as_parameters({word: said.get(word) for word in words}, account)
