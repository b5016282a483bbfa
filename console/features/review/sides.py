"""Read the state machines of one side (commit) of a review."""

from __future__ import annotations

import contextlib
from collections import Counter
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import engine
from console.cli.account import Account
from console.cli.documents import SourceError, confined_to, load_document
from console.features.deploy.discovery import NO_DEFINITION, read_readable
from console.features.deploy.lint_sources import quoted_placeholders
from console.features.deploy.parameters import Parameters

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from console.features.deploy.sources import MachineSource


@dataclass(frozen=True, slots=True)
class Side:
    """The state machines and triggers of a commit.

    ``problems``: a line for each unreadable part. ``machines``: by name; if several files have a
    name, by name and place. ``triggers``: fields of rules, schedules and activities, by kind and
    name. ``unread``: places of the other side's state machines whose file has no readable one here.
    """

    machines: Mapping[str, MachineSource]
    triggers: Mapping[tuple[str, str], dict[str, Any]]
    problems: Sequence[str]
    unread: frozenset[str] = frozenset()

    def hides(self, machine: MachineSource) -> bool:
        """Whether a state machine of the other side may be in an unreadable part here."""
        starts = f"{machine.place}:", f"{machine.place}."
        return (machine.place in self.unread and bool(self.problems)) or any(
            problem.startswith(starts) for problem in self.problems
        )


def file_of(machine: MachineSource) -> str:
    """Return the path of a state machine's file."""
    return machine.place.partition(": ")[0]


def read_side(tree: Path, paths: Sequence[Path], values: Mapping[str, str]) -> Side:
    """Read paths as ``deploy`` does. ``tree``: the folder with the commit's files."""
    parameters = Parameters(values, placeholders=True)
    with contextlib.chdir(tree), confined_to(tree):
        present = [path for path in paths if path.exists()]
        project = read_readable(present, Account(), parameters)
    empty = {f"{path}: {NO_DEFINITION}" for path in paths}
    names = Counter(machine.name for machine in project.machines)
    triggers = [
        *(("Rule", rule.name, asdict(rule)) for rule in project.rules),
        *(("Schedule", schedule.name, asdict(schedule)) for schedule in project.schedules),
        *(("Activity", name, {}) for name in project.activities),
    ]
    return Side(
        {
            machine.name
            if names[machine.name] == 1
            else f"{machine.name} in {machine.place}": machine
            for machine in project.machines
        },
        {
            (kind, name): {key: value for key, value in fields.items() if key != "place"}
            for kind, name, fields in triggers
        },
        [line for line in parameters.problems if line not in empty],
    )


def look_for_unread(side: Side, other: Side, tree: Path) -> Side:
    """Return a side with its ``unread`` files, and a problem for each that is not JSON or YAML.

    A folder may have files of many kinds, which ``deploy`` skips.
    """
    files = {file_of(machine) for machine in side.machines.values()}
    missing = [machine for machine in other.machines.values() if file_of(machine) not in files]
    problems = dict.fromkeys(side.problems)
    with contextlib.chdir(tree), confined_to(tree):
        unread = [machine for machine in missing if Path(file_of(machine)).is_file()]
        for path in dict.fromkeys(Path(file_of(machine)) for machine in unread):
            try:
                load_document(path)
            except SourceError as error:
                problems[str(error)] = None
    return replace(
        side,
        problems=list(problems),
        unread=frozenset(machine.place for machine in unread),
    )


def document_of(machine: MachineSource | None) -> dict[str, Any] | None:
    """Return a state machine's definition; None if missing or not a JSON object."""
    if machine is None:
        return None
    try:
        document = engine.loads(quoted_placeholders(machine.definition))
    except engine.JsonTextError:
        return None
    return document if isinstance(document, dict) else None
