"""The parts of a project, independent of its tool: state machines, activities, rules, schedules."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

from console.cli.documents import SourceError, check_size

MACHINE_MARK = ":stateMachine:"
UNIVERSAL_START = ":scheduler:::aws-sdk:sfn:startExecution"
DEFAULT_GROUP = "default"


@dataclass(frozen=True, slots=True)
class RoleOptions:
    """Options of a state machine that need permissions. ``key``: the ARN of its KMS key."""

    logs: bool = False
    tracing: bool = False
    key: str = ""


@dataclass(frozen=True, slots=True)
class MachineSource:
    """A state machine from a file. ``role``: its ARN, "" without one.

    ``pulled_from``, ``pulled_arn``: the endpoint and the ARN it was pulled from, "" if it was not.
    ``policies``: its role's ``RoleSource``, None if it is elsewhere; ``options``: those that need
    permissions. ``pattern``: the definition without the values of parameters and substitutions.
    """

    name: str
    definition: str
    place: str
    type: str = "STANDARD"
    role: str = ""
    tracing: bool | None = None
    tags: dict[str, str] = field(default_factory=dict)
    pulled_from: str = ""
    pulled_arn: str = ""
    policies: Any = None
    options: RoleOptions = field(default_factory=RoleOptions)
    pattern: str = ""


@dataclass(frozen=True, slots=True)
class RuleSource:
    """A rule of EventBridge: a pattern or a schedule, and targets as PutTargets takes them."""

    name: str
    place: str
    pattern: str = ""
    schedule: str = ""
    enabled: bool = True
    description: str = ""
    targets: tuple[dict[str, Any], ...] = ()


@dataclass(frozen=True, slots=True)
class ScheduleSource:
    """A schedule of EventBridge Scheduler.

    ``settings``: as CreateSchedule takes them, but for name and group; the role of the target may
    be missing.
    """

    name: str
    place: str
    settings: dict[str, Any]
    group: str = DEFAULT_GROUP


def is_started_by(target: dict[str, Any]) -> bool:
    """Whether a schedule's target starts a state machine, by ARN or universal target."""
    arn = str(target.get("Arn"))
    return MACHINE_MARK in arn or arn.endswith(UNIVERSAL_START)


@dataclass(slots=True)
class SourceProject:
    """State machines and their triggers. ``notes``: unsupported resources, one line each."""

    machines: list[MachineSource] = field(default_factory=list)
    activities: list[str] = field(default_factory=list)
    rules: list[RuleSource] = field(default_factory=list)
    schedules: list[ScheduleSource] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def add(self, other: SourceProject) -> None:
        """Add the contents of another file."""
        self.machines += other.machines
        self.activities += other.activities
        self.rules += other.rules
        self.schedules += other.schedules
        self.notes += other.notes


def definition_text(value: Any, place: str) -> str:
    """Return a definition as text; an object is written as JSON.

    Raise ``SourceError`` for values that JSON does not have, such as dates and bytes of YAML.
    """
    if isinstance(value, str):
        return value
    check_size(value, place)
    try:
        return json.dumps(value, indent=2, ensure_ascii=False, allow_nan=False)
    except (TypeError, ValueError, RecursionError) as error:
        raise SourceError(f"{place}: got {error}, wanted a definition that JSON can hold") from None
