"""What ``terraform show -json`` prints of a state or of a plan."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from console.cli.documents import SourceError
from console.cli.sources import MACHINE_MARK, MachineSource, RuleSource, SourceProject

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
            project.rules.append(_schedule(f"{place}: {address}", said, account))
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


def _schedule(place: str, said: dict[str, Any], account: Account) -> RuleSource:
    targets = tuple(_target(target, account) for target in said["target"] if _is_machine(target))
    return RuleSource(
        name=said["name"],
        place=place,
        schedule=said.get("schedule_expression") or "",
        enabled=said.get("state") != "DISABLED",
        description=said.get("description") or "",
        targets=targets,
    )


def _is_machine(target: dict[str, Any]) -> bool:
    return MACHINE_MARK in str(target.get("arn"))


def _target(said: dict[str, Any], account: Account) -> dict[str, Any]:
    name = said["arn"].partition(MACHINE_MARK)[2]
    target = {
        "Id": said.get("target_id") or "machine",
        "Arn": account.arn("states", f"stateMachine:{name}"),
    }
    if said.get("input"):
        target["Input"] = said["input"]
    return target
