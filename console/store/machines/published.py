"""Find the revision of a state machine that a version was published from, or an execution runs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from console.models import MachineRevision, Version
from console.store.machines import versions as store

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from console.models import Execution, StateMachine


@dataclass(frozen=True, slots=True)
class ExecutedRevision:
    """The definition of an execution, as far as known; unknown parts are 0 or "".

    ``version_kept``: it has not been deleted since.
    """

    revision: int
    version: str
    version_kept: bool
    alias: str


def revision_numbers(machine: StateMachine, published: Iterable[Version]) -> dict[int, int]:
    """Return version -> its source revision; versions without a stored revision are left out."""
    rows = list(published)
    saves = MachineRevision.objects.filter(
        state_machine=machine, definition_id__in={each.definition_id for each in rows}
    )
    newest_first = list(saves.order_by("-number").defer("note"))
    numbers = {each.number: _revision_at(newest_first, each, each.created_ms) for each in rows}
    return {number: save for number, save in numbers.items() if save}


def _revision_at(saves: Sequence[MachineRevision], ran: Version | Execution, at_ms: int) -> int:
    """Return the revision that was current at a time, 0 if unknown.

    A change of the logging gives the machine another id, and no revision: then it is the newest
    save of the same definition and role.
    """
    same = [save for save in saves if save.definition_id == ran.definition_id]
    named = (save.number for save in same if save.revision_id == ran.revision_id)
    alike = (s.number for s in same if s.role_arn == ran.role_arn and s.saved_ms <= at_ms)
    return next(named, 0) or next(alike, 0)


def versions_by_revision(
    machine: StateMachine, saves: Sequence[MachineRevision]
) -> dict[int, list[int]]:
    """Return revision -> the versions published from it, oldest first."""
    rows = Version.objects.filter(
        state_machine=machine, definition_id__in={each.definition_id for each in saves}
    )
    numbers: dict[int, list[int]] = {}
    for version, save in sorted(revision_numbers(machine, rows).items()):
        numbers.setdefault(save, []).append(version)
    return numbers


def executed_revision(execution: Execution) -> ExecutedRevision:
    """Return which revision, version and alias an execution runs."""
    version = store.version_of_execution(execution) if execution.version_arn else None
    revision = 0
    if execution.state_machine_id is not None and execution.map_run_id is None:
        saves = MachineRevision.objects.filter(
            state_machine=execution.state_machine_id, definition_id=execution.definition_id
        )
        at_ms = version.created_ms if version else execution.start_ms
        revision = _revision_at(list(saves.order_by("-number")), execution, at_ms)
    return ExecutedRevision(
        revision,
        execution.version_arn.rpartition(":")[2],
        version is not None,
        execution.alias_arn.rpartition(":")[2],
    )
