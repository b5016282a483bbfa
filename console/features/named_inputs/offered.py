"""Offer the named inputs of a state machine in its start form (``Hook.START_INPUTS``)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from console.features.named_inputs import store

if TYPE_CHECKING:
    from console.models import StateMachine


@dataclass(frozen=True, slots=True)
class OfferedInputs:
    """The named inputs of a machine."""

    machine: StateMachine
    names: list[str]

    def text(self, name: str) -> str:
        """Return the text of an input with its hidden values; raise ResourceNotFound."""
        return store.get_input(self.machine, name).text

    def shown(self, name: str) -> str:
        """Return the text of an input with masked values; raise ResourceNotFound."""
        return store.shown_text(self.machine.project, self.text(name))


def offered_inputs(machine: StateMachine) -> OfferedInputs:
    """Return the named inputs of a machine, for its start form."""
    return OfferedInputs(machine, store.list_names(machine))
