"""View of the injected faults of an execution, and of the faults that occurred."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from django.views.decorators.http import require_safe

from console.features.faults.execution_page import injected_faults
from console.masking.masked_execution import masked_execution
from console.store.executions.faults import MOST_STRIKES
from console.web.core import formatting
from console.web.core.scope import render, scope_of
from console.web.execution.header import base_context

if TYPE_CHECKING:
    from django.http import HttpRequest, HttpResponse

    from console.store.executions.faults import FaultStrike


@dataclass(frozen=True, slots=True)
class ShownStrike:
    """A fault that struck. ``replaced``: the replaced result, masked, or None."""

    strike: FaultStrike
    replaced: formatting.PayloadView | None


@require_safe
def faults_page(request: HttpRequest, machine_name: str, execution_name: str) -> HttpResponse:
    """Show ``…/faults/``: the injected faults and their strikes."""
    execution = scope_of(request).execution(machine_name, execution_name)
    hidden = masked_execution(execution).mask
    injected = injected_faults(execution)
    strikes = [
        ShownStrike(
            strike,
            formatting.payload_view(hidden.payload(strike.replaced)) if strike.replaced else None,
        )
        for strike in injected.strikes
    ]
    context = base_context(execution, machine_name) | {
        "injected": injected,
        "strikes": strikes,
        "most": MOST_STRIKES,
    }
    return render(request, "faults/page.html", context)
