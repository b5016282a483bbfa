"""Offer the named inputs of a state machine in its start form.

A named input is an input that the project saved under a name.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from console.features.named_inputs import store
from console.masking.mask import MASK, fill_mask

if TYPE_CHECKING:
    from console.models import StateMachine


@dataclass(frozen=True, slots=True)
class OfferedInputs:
    """The named inputs of a machine."""

    machine: StateMachine
    names: list[str]

    def shown(self, name: str) -> str:
        """Return the text of an input with masked values, "" if the input was deleted."""
        if name not in self.names:
            return ""
        return store.shown_text(self.machine.project, store.get_input(self.machine, name).text)

    def filled(self, name: str, text: str) -> str:
        """Put the real values back where the edited text still contains the mask."""
        if MASK not in text or name not in self.names:
            return text
        original = store.get_input(self.machine, name).text
        return fill_mask(text, store.shown_text(self.machine.project, original), original)


def offered_inputs(machine: StateMachine) -> OfferedInputs:
    """Return the named inputs of a machine, for its start form."""
    return OfferedInputs(machine, store.list_names(machine))
