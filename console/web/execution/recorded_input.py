"""Read the recorded input and variables of a visit, to start or test something with them."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from django.http import Http404

import engine
from console.masking import masked_execution
from console.web.execution import panel
from console.web.execution.time_machine import variables_at
from console.web.history import traces
from console.web.history.traces import open_trace
from engine import event_types

if TYPE_CHECKING:
    from console.models import Execution


def recorded_input(
    execution: Execution, step: str, visit: str
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return a visit's input, masked and unmasked; raise ``Http404`` without one."""
    return recorded_fields(execution, step, visit), recorded_fields(
        masked_execution.unmask_execution(execution), step, visit
    )


def recorded_fields(execution: Execution, step: str, visit: str) -> dict[str, Any]:
    """Return input and variables of a visit; raise ``Http404`` without one."""
    number = visit_number(visit)
    try:
        with open_trace(execution) as trace:
            recorded_panel = panel.panel_of_state(execution, trace, step, number)
            entered = (
                traces.payload_of(recorded_panel.read, event_types.STATE_ENTRIES, "input")
                if recorded_panel
                else None
            )
            if entered is None:
                raise Http404(f"“{execution.name}” did not enter a state “{step}”.")
            variables = variables_at(execution, trace, entered[0])
    except engine.DefinitionError:
        raise Http404(f"The definition of “{execution.name}” can no longer be run.") from None
    return {"input": entered[1], "variables": variables}


def visit_number(text: str) -> int:
    """Return the number of a visit in an address, 0 without one."""
    return int(text) if re.fullmatch(r"\d{1,9}", text, re.ASCII) else 0
