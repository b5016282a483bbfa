"""Add an execution's faults to its page (``Hook.EXECUTION_PAGE``)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from console.masking.masked_execution import masked_execution
from console.store.executions import faults

if TYPE_CHECKING:
    from collections.abc import Sequence

    from console.models import Execution
    from console.store.executions.faults import FaultStrike


@dataclass(frozen=True, slots=True)
class InjectedFaults:
    """The injected faults of an execution as text, and the faults that occurred."""

    seed: int
    planned: Sequence[str]
    strikes: Sequence[FaultStrike]


def execution_page(execution: Execution, _transitions: int) -> dict[str, Any]:
    """Return the faults for an execution's page; without faults, no query is made."""
    if not execution.faults:
        return {}
    return {"faults": injected_faults(execution)}


def injected_faults(execution: Execution) -> InjectedFaults:
    """Return the faults of an execution, with hidden values masked."""
    seed, planned = faults.planned_faults(execution)
    hidden = masked_execution(execution).mask
    words = [hidden.words(text) for text in planned]
    strikes = [replace(each, text=hidden.words(each.text)) for each in faults.strikes_of(execution)]
    return InjectedFaults(seed, words, strikes)
