"""List the definitions that a state machine's last executions ran with."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from django.db.models import Count, Max

from console.models import Execution, MachineRevision
from console.web.machines.past_executions import LOOKED_AT

if TYPE_CHECKING:
    from collections.abc import Sequence

    from console.models import StateMachine

_MOST = 50
_KEY = 12


@dataclass(frozen=True, slots=True)
class RanDefinition:
    """A definition of a machine. ``executions``: how many of the last ones ran with it.

    ``revision``: the newest save that has it, None if none was kept; ``current``: new executions
    run with it.
    """

    sha256: str
    executions: int
    revision: MachineRevision | None
    current: bool

    @property
    def key(self) -> str:
        """Return what names it in addresses."""
        return self.sha256[:_KEY]

    @property
    def name(self) -> str:
        """Return it in words: ``revision 3 (current)``."""
        name = f"revision {self.revision.number}" if self.revision else f"definition {self.key}"
        return f"{name} (current)" if self.current else name


def ran_definitions(machine: StateMachine) -> list[RanDefinition]:
    """Return the current definition, then those of the last executions, the last used first."""
    own = Execution.objects.filter(state_machine=machine, map_run=None)
    recent = own.order_by("-start_ms", "-pk").values("pk")[:LOOKED_AT]
    counted = (
        Execution.objects.filter(pk__in=recent)
        .values("definition_id")
        .annotate(executions=Count("pk"), newest=Max("start_ms"))
        .order_by("-newest")[:_MOST]
    )
    counts = {row["definition_id"]: row["executions"] for row in counted}
    every = list(dict.fromkeys([machine.definition_id, *counts]))
    revisions = revisions_of(machine, every)
    return [
        RanDefinition(
            sha256,
            counts.get(sha256, 0),
            revisions.get(sha256),
            current=sha256 == machine.definition_id,
        )
        for sha256 in every
    ]


def revisions_of(machine: StateMachine, definitions: Sequence[str]) -> dict[str, MachineRevision]:
    """Return definition -> its newest revision; definitions without a revision are left out."""
    rows = MachineRevision.objects.filter(state_machine=machine, definition_id__in=definitions)
    return {row.definition_id: row for row in rows.order_by("number")}


def chosen_definition(ran: Sequence[RanDefinition], key: str) -> RanDefinition:
    """Return the definition of an address, else the current if executed, else the last used."""
    named = (each for each in ran if key and each.key == key)
    used = (each for each in ran if each.executions)
    return next(named, None) or next(used, ran[0])
