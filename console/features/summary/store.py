"""Evaluate and store summaries, soon after the start and after the end of executions.

Starts and steps do not wait for it: the leading worker looks for recently started or ended
executions of state machines with the tag. The expression reads masked payloads only.
"""

from __future__ import annotations

import hashlib
import threading
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from django.db.models import F, Q

from console.db import clock
from console.db.writer import write
from console.features.summary.expression import Evaluated, evaluate
from console.features.summary.models import ExecutionSummary
from console.masking import masked_execution
from console.models import Execution, StateMachine, Tag
from console.store.machines.machine_options import SUMMARY

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from django.db.models import QuerySet

    from console.masking.mask import Mask
    from console.models import Project

BATCH = 200
"""Number of executions in one transaction, whose payloads are in memory together."""
_LOOK_BACK_MS = 3_600_000
"""The past period that a new leader looks at."""
_OVERLAP_MS = 10_000
"""Overlap of periods: clocks differ, and an earlier transaction may commit later."""
_SLOW_S = 0.5
HAS_EXPRESSIONS = f"EXISTS (SELECT 1 FROM console_tag WHERE key = '{SUMMARY}')"
"""SQL condition: a state machine has the tag."""


@dataclass(slots=True)
class _Progress:
    """The time up to which executions were looked at, in epoch milliseconds."""

    lock: threading.Lock = field(default_factory=threading.Lock)
    since_ms: int = 0


_progress = _Progress()


def write_summaries() -> None:
    """Write the summaries of recently started or ended executions."""
    with _progress.lock:
        expressions = _read_expressions()
        now_ms = clock.now_ms()
        # a state machine may get the first tag long after the last one was removed
        since_ms = max(_progress.since_ms, now_ms - _LOOK_BACK_MS)
        if expressions:
            _write_lately(_recent_starts(expressions, since_ms), expressions)
            _write_lately(_recent_ends(expressions, since_ms), expressions)
        _progress.since_ms = now_ms - _OVERLAP_MS


def _write_lately(rows: QuerySet[Execution], expressions: Mapping[int, str]) -> None:
    """Write the missing summaries of a query, in batches."""
    last = 0
    while executions := list(rows.filter(pk__gt=last)[:BATCH]):
        write_all(executions, expressions)
        last = executions[-1].pk


def _read_expressions() -> dict[int, str]:
    """Return state machine number -> expression, of the machines with the tag."""
    tags = Tag.objects.filter(key=SUMMARY).values_list("arn", "value")
    by_arn = dict(tags)
    if not by_arn:
        return {}
    machines = StateMachine.objects.filter(arn__in=by_arn).values_list("pk", "arn")
    return {number: by_arn[arn] for number, arn in machines}


def _recent_starts(expressions: Mapping[int, str], since_ms: int) -> QuerySet[Execution]:
    """Return recently started executions without a summary."""
    rows = Execution.objects.filter(state_machine__in=expressions, map_run=None)
    rows = rows.filter(start_ms__gte=since_ms, summary=None)
    return rows.select_related("project").order_by("pk")


def _recent_ends(expressions: Mapping[int, str], since_ms: int) -> QuerySet[Execution]:
    """Return recently ended executions whose summary does not include their end."""
    machines = StateMachine.objects.filter(pk__in=expressions)
    rows = Execution.objects.filter(
        Q(summary__stop_ms=None) | ~Q(summary__stop_ms=F("stop_ms")),
        project__in=machines.values("project"),  # its index has the ends
        stop_ms__gte=since_ms,
        state_machine__in=expressions,
        map_run=None,
    )
    return rows.select_related("project").order_by("pk")


def write_all(executions: Sequence[Execution], expressions: Mapping[int, str]) -> None:
    """Evaluate and store the summaries of executions. ``expressions``: by state machine."""
    if not executions:
        return
    summaries = evaluate_all(executions, expressions)
    numbers = [summary.pk for summary in summaries]

    def store() -> None:
        there = set(Execution.objects.filter(pk__in=numbers).values_list("pk", flat=True))
        ExecutionSummary.objects.bulk_create(
            [summary for summary in summaries if summary.pk in there],
            update_conflicts=True,
            unique_fields=["execution"],
            update_fields=["text", "problem", "masks", "stop_ms"],
        )

    write(store)


def evaluate_all(
    executions: Sequence[Execution], expressions: Mapping[int, str]
) -> list[ExecutionSummary]:
    """Return the summaries of executions, without storing them.

    An expression that fails after a long time is not evaluated again for further executions.
    """
    masks: dict[int, Mask] = {}
    for project in {execution.project for execution in executions}:
        own = [each.pk for each in executions if each.project_id == project.pk]
        masks |= masked_execution.masks_of(project, own)
    given_up: dict[int, Evaluated] = {}
    summaries = []
    for execution in executions:
        machine = execution.state_machine_id or 0
        value = given_up.get(machine)
        if value is None:
            began = time.monotonic()
            value = _evaluate(execution, masks[execution.pk], expressions[machine])
            if value.problem and time.monotonic() - began > _SLOW_S:
                given_up[machine] = value
        summaries.append(
            ExecutionSummary(
                execution=execution,
                text=value.text,
                problem=value.problem,
                masks=masks_key(execution.project),
                stop_ms=execution.stop_ms,
            )
        )
    return summaries


def _evaluate(execution: Execution, mask: Mask, expression: str) -> Evaluated:
    output = None if execution.output is None else mask.payload(execution.output)
    return evaluate(expression, execution.name, mask.payload(execution.input), output)


def masks_key(project: Project) -> str:
    """Return a hash of the masked paths of a project; "" if nothing is masked."""
    masked = project.masked
    return hashlib.sha256(masked.encode()).hexdigest()[:16] if masked else ""


def expression_of(execution: Execution) -> str:
    """Return the expression of an execution's state machine; "" if it has none."""
    tags = Tag.objects.filter(arn=execution.state_machine_arn)
    return tag_value(tags.values_list("key", "value"))


def tag_value(tags: Iterable[tuple[str, str]]) -> str:
    """Return the value of the tag among the tags of a state machine; "" if there is none."""
    return dict(tags).get(SUMMARY, "")
