"""List the inputs of a state machine's last executions, to start another one with."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from django.db.models.functions import Left, Length

from console.masking.masked_execution import masks_of
from console.models import Execution
from console.web.core.formatting import visible_text

if TYPE_CHECKING:
    from collections.abc import Sequence

    from console.models import Project, StateMachine

_MOST_LOOKED_AT = 50
"""Among so many of the newest executions those are looked for that are no children of Map Runs."""
_MOST_READ = 20
"""Of so many executions the inputs are read."""
_LONGEST = 16_384
"""So much of each input is read: a longer one is offered by the name of its execution alone."""
_MOST = 5
_SHOWN = 120


@dataclass(frozen=True, slots=True)
class RecentInput:
    """An input and its last execution. ``text``: its beginning, "" if it is long."""

    execution: Execution
    text: str


def last_executions(machine: StateMachine) -> list[Execution]:
    """Return the newest executions that are no children of Map Runs, without their payloads."""
    rows = Execution.objects.filter(state_machine=machine).order_by("-start_ms", "-pk")
    newest = rows.only("name", "start_ms", "status", "map_run_id")[:_MOST_LOOKED_AT]
    return [execution for execution in newest if execution.map_run_id is None][:_MOST_READ]


def recent_inputs(project: Project, executions: Sequence[Execution]) -> list[RecentInput]:
    """Return the distinct inputs of executions, at most five, as they may be read.

    One query; with masked values those that read the masks of five executions.
    """
    rows = Execution.objects.filter(pk__in=[execution.pk for execution in executions])
    read = rows.annotate(length=Length("input"), beginning=Left("input", _LONGEST))
    texts: dict[int, tuple[int, str]] = {
        pk: (length, text) for pk, length, text in read.values_list("pk", "length", "beginning")
    }
    distinct: dict[tuple[int, str], Execution] = {}
    for execution in executions:
        if execution.pk in texts:
            distinct.setdefault(texts[execution.pk], execution)
    chosen = list(distinct.items())[:_MOST]
    masks = masks_of(project, [execution.pk for _, execution in chosen])
    return [
        RecentInput(
            execution,
            _beginning(masks[execution.pk].payload(text)) if length <= _LONGEST else "",
        )
        for (length, text), execution in chosen
        if execution.pk in masks
    ]


def _beginning(text: str) -> str:
    line = visible_text(" ".join(text.split()))
    return line if len(line) <= _SHOWN else f"{line[: _SHOWN - 1]}…"
