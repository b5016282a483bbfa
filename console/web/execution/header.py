"""Build the header of the execution page, and its input and output."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from django.urls import reverse

import engine
from console import arns
from console.config.aws_rates import transition_rate
from console.db import clock
from console.feature import Hook, hooked
from console.statuses import UNSUCCESSFUL, ExecutionStatus
from console.store.executions import replay
from console.store.executions.transitions import transitions_of
from console.store.machines.published import executed_revision
from console.web.core import formatting
from console.web.execution.child_signs import parent_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from console.models import Execution
    from console.store.executions.replay import Origin
    from console.store.machines.published import ExecutedRevision
    from console.web.execution.child_signs import ParentExecution
    from console.web.execution.iterations import MapRuns
    from engine import LimitAhead, Trace


@dataclass(frozen=True, slots=True)
class Header:
    """Status and facts at the top of the execution page.

    ``attempts_ms``: the time without the gaps between its attempts, None if it was not redriven.
    ``limits``: the limits of AWS that it comes near. ``features``: the values that features add, by
    name, such as the cost.
    """

    status: formatting.StatusLabel
    is_express: bool
    may_be_redriven: bool
    executed: ExecutedRevision | None = None
    parent: ParentExecution | None = None
    origin: Origin | None = None
    transitions: int = 0
    attempts_ms: int | None = None
    limits: tuple[LimitAhead, ...] = ()
    features: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ExecutionPayloads:
    """Input and output of an execution. ``output``: None if there is none yet."""

    input: formatting.PayloadView
    output: formatting.PayloadView | None


def base_context(execution: Execution, machine_name: str) -> dict[str, Any]:
    """Return the template context shared by all pages of an execution."""
    return {
        "section": "executions",
        "execution": execution,
        "machine_name": machine_name,
        "base": reverse("execution", args=[machine_name, execution.name]),
        "header": header_of(execution),
    }


def header_of(execution: Execution) -> Header:
    """Return the status of an execution, without a query."""
    imported = execution.imported_ms is not None
    is_express = not imported and arns.is_express(execution.arn)
    never_again = imported or (is_express and execution.map_run_id is None)
    return Header(
        status=formatting.EXECUTION[execution.status],
        is_express=is_express,
        may_be_redriven=execution.status in UNSUCCESSFUL and not never_again,
    )


def with_starter(header: Header, execution: Execution) -> Header:
    """Add the revision of the definition, and the parent execution."""
    executed = executed_revision(execution) if execution.version_arn else None
    return replace(header, executed=executed, parent=parent_of(execution))


def with_origin(header: Header, execution: Execution) -> Header:
    """Add the execution of which this execution is a replay."""
    return replace(header, origin=replay.origin_of(execution))


def with_figures(
    header: Header, execution: Execution, trace: Trace, maps: MapRuns | None = None
) -> Header:
    """Add figures from the history: transitions, time of attempts, limits, cost.

    ``maps``: the Map Runs of the execution, if they are read.
    """
    idle_ms = sum(until - since for since, until in trace.gaps)
    # a moment in the past knows the redrives before it only
    all_gaps = 0 < len(trace.gaps) == execution.redrive_count
    took_ms = execution.stop_ms and execution.stop_ms - execution.start_ms
    return replace(
        with_features(header, execution, trace.transitions),
        transitions=transitions_of(execution, trace.transitions),
        attempts_ms=took_ms - idle_ms if took_ms and all_gaps else None,
        limits=limits_of(execution, trace, maps),
    )


def with_features(header: Header, execution: Execution, transitions: int) -> Header:
    """Add the values of features, such as the injected faults."""
    features: dict[str, Any] = {}
    for add in hooked(Hook.EXECUTION_PAGE):
        features |= add(execution, transitions)
    return replace(header, features=features)


def payloads_of(execution: Execution) -> ExecutionPayloads:
    """Return input and output of an execution as the page shows them."""
    output = execution.output
    return ExecutionPayloads(
        formatting.payload_view(execution.input, "input.json"),
        None if output is None else formatting.payload_view(output, "output.json"),
    )


_EXPRESS_MS = 300_000


def limits_of(
    execution: Execution, trace: Trace, maps: MapRuns | None = None
) -> tuple[LimitAhead, ...]:
    """Return the limits that an execution comes near, nearest first.

    ``maps``: its Map Runs; without them, distributed Maps are omitted.
    """
    imported = execution.imported_ms is not None
    express = not imported and arns.is_express(execution.arn)
    return tuple(
        engine.limits_ahead(
            trace,
            now_ms=clock.now_ms() if execution.status == ExecutionStatus.RUNNING else None,
            longest_ms=_EXPRESS_MS if express else engine.MAX_EXECUTION_S * 1000,
            children=maps.most_at_once() if maps else {},
            transition_rate=None
            if express or imported  # the rate of another account is unknown
            else transition_rate(_region(execution)).refill,
        )
    )


def _region(execution: Execution) -> str:
    return execution.arn.split(":")[3]
