"""Compare and deploy all state machines of a branch in a few API calls.

The server describes them in one call, without the definitions whose hash the client sends, so that
an unchanged state machine takes a line each way. Changes are sent in calls of some hundred
kilobytes. Each state machine is checked and refused separately, as by AWS's API.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from botocore.exceptions import ClientError

from console.cli.branches import call
from console.db.branch_names import moved_arns
from console.features.deploy.deployment import Machines, PresentMachine

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from console.features.deploy.deployment import Outcome, PlannedChange
    from console.features.deploy.sources import MachineSource, SourceProject

_DESCRIBE = "/api/branches/machines"
_DEPLOY = "/api/branches/deploy"
_NAMES_AT_ONCE = 1000
_MOST_BYTES = 1_000_000
"""The maximum size of the changes in a call.

A larger change uses AWS's API, which accepts a whole definition.
"""


def adapt_project(project: SourceProject, described: dict[str, Any]) -> None:
    """Move a project's ARNs to a branch, and disable its rules and schedules.

    ``described``: the server's answer about the branch.
    """
    parent, account = described["parent"]["accountId"], described["accountId"]

    def moved(value: Any) -> Any:
        return json.loads(moved_arns(json.dumps(value), parent, account))

    project.machines = [
        replace(machine, definition=moved_arns(machine.definition, parent, account))
        for machine in project.machines
    ]
    project.rules = [
        replace(
            rule,
            enabled=False,
            pattern=moved_arns(rule.pattern, parent, account),
            targets=tuple(moved(list(rule.targets))),
        )
        for rule in project.rules
    ]
    for schedule in project.schedules:
        schedule.settings.update(moved(schedule.settings) | {"State": "DISABLED"})


@dataclass(frozen=True, slots=True)
class BranchMachines(Machines):
    """The state machines of a branch, handled together."""

    present: dict[str, dict[str, Any]] = field(default_factory=dict)
    warnings: dict[str, list[str]] = field(default_factory=dict)
    """Name -> calls of unregistered functions, of state machines that the server checked."""

    def groups(self, machines: Sequence[MachineSource]) -> Iterator[Sequence[MachineSource]]:
        """Describe all state machines, and yield them as one group."""
        waiting = {machine.name: machine for machine in machines}
        while waiting:
            names = dict.fromkeys([*waiting][:_NAMES_AT_ONCE], "")
            hashes = {name: _hash_of(waiting[name].definition) for name in names}
            answer = call(self.connection, "POST", _DESCRIBE, {"machines": hashes})["machines"]
            for name, described in answer.items():  # the rest would make the answer too large
                self._note_present(waiting.pop(name), described)
        if machines:
            yield machines

    def _note_present(self, machine: MachineSource, described: dict[str, Any] | None) -> None:
        if described is None:
            return
        if "definition" not in described:
            described["definition"] = machine.definition
            self.warnings[machine.name] = described["warnings"]
        self.present[machine.name] = described

    def find_present(self, machine: MachineSource) -> PresentMachine | None:
        """Return a state machine as the server described it."""
        described = self.present.get(machine.name)
        if described is None:
            return None
        tags: dict[str, str] = described["tags"]
        return PresentMachine(described, lambda: tags)

    def apply(self, changes: Sequence[PlannedChange]) -> list[Outcome]:
        """Apply changes of state machines in a few calls, other changes one by one."""
        outcomes: dict[int, Outcome] = {}
        batch: list[tuple[int, PlannedChange]] = []
        size = 0
        for number, planned in enumerate(changes):
            length = len(_encoded(planned))
            if not planned.calls or length > _MOST_BYTES:
                outcomes[number] = Machines.apply(self, [planned])[0]
                continue
            if size + length > _MOST_BYTES:
                outcomes |= self._deploy(batch)
                batch, size = [], 0
            batch.append((number, planned))
            size += length
        outcomes |= self._deploy(batch)
        return [outcomes[number] for number in range(len(changes))]

    def _deploy(self, batch: list[tuple[int, PlannedChange]]) -> dict[int, Outcome]:
        if not batch:
            return {}
        body = {"machines": [_calls_of(planned) for _, planned in batch]}
        answers = call(self.connection, "POST", _DEPLOY, body)["machines"]
        outcomes: dict[int, Outcome] = {}
        for (number, planned), answer in zip(batch, answers, strict=True):
            if "__type" in answer:
                error = {"Code": answer["__type"], "Message": answer["message"]}
                outcomes[number] = ClientError({"Error": error}, planned.calls[0][0])
            else:
                outcomes[number] = None
                self.warnings[planned.name] = answer["warnings"]
        return outcomes

    def warnings_of(self, machine: MachineSource) -> list[str]:
        """Return the server's warnings; request those of unchanged state machines."""
        if machine.name in self.warnings:
            return self.warnings[machine.name]
        return Machines.warnings_of(self, machine)


def _hash_of(definition: str) -> str:
    return hashlib.sha256(definition.encode("utf-8", "surrogatepass")).hexdigest()


def _calls_of(planned: PlannedChange) -> list[dict[str, Any]]:
    return [{"action": action, "parameters": parameters} for action, parameters in planned.calls]


def _encoded(planned: PlannedChange) -> bytes:
    text = json.dumps(_calls_of(planned), ensure_ascii=False)
    return text.encode("utf-8", "surrogatepass")
