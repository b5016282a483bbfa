"""Show the log of each function call of a step, if a feature stores such logs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from console.feature import Hook, hooked

if TYPE_CHECKING:
    from console.models import Execution
    from console.web.execution.panel import Panel


@dataclass(frozen=True, slots=True)
class ShownCall:
    """One call with its log. ``attempt``: its number among the attempts of the visit."""

    attempt: int
    function: str
    request: str
    started_ms: int
    duration: str
    error: str
    log: str


def has_logs() -> bool:
    """Whether a feature stores function logs."""
    return bool(hooked(Hook.FUNCTION_LOGS))


def calls_of_step(execution: Execution, panel: Panel | None) -> list[ShownCall]:
    """Return the finished calls of one visit, oldest first.

    One that runs is left out: which values its outcome hides is not known yet.
    """
    if panel is None:
        return []
    attempts = {
        attempt.task: attempt.number
        for attempt in panel.attempts
        if attempt.task and attempt.until_ms is not None
    }
    last = max((event.id for event in panel.with_failures), default=0)
    show = hooked(Hook.FUNCTION_LOGS) if attempts else ()
    return [call for calls_of in show for call in calls_of(execution, attempts, last)]
