"""Build the banner of an execution that failed, timed out, was stopped or is stuck."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from console.masking import masked_execution
from console.models import Execution
from console.statuses import UNSUCCESSFUL, ExecutionStatus
from console.store.executions import redrive
from console.store.state import pause
from console.web.core.formatting import Cause, cause_of
from console.web.execution import child_counts, root_cause
from console.web.execution.chosen_step import ChosenStep, ended_in, states_left_open
from console.web.history import timed_out, traces

if TYPE_CHECKING:
    from django.db.models import QuerySet

    from console.web.execution.iterations import MapRuns
    from engine import Trace


@dataclass(frozen=True, slots=True)
class Banner:
    """The outcome of an execution and its reason.

    ``parked``: why the engine stopped working on it, "" if it did not. ``failed_at``: the step in
    which it ended, with the name "" if there is none; ``attempts``: the attempts of that step;
    ``also_open``: how many other states were in progress. ``root``: the caught error that led to
    the end; ``root_cause_text``: its cause, "" if the execution has the same cause.
    ``failed_child``: the execution whose failure ended this one; ``child_failures``: how the
    children of a distributed Map failed. ``has_success``: a successful execution exists, to compare
    it with.
    """

    cause: Cause | None
    parked: str
    failed_at: ChosenStep = field(default_factory=ChosenStep)
    attempts: int = 0
    also_open: int = 0
    has_success: bool = False
    root: root_cause.RootCause | None = None
    root_cause_text: str = ""
    failed_child: Execution | None = None
    child_failures: child_counts.ChildFailures | None = None
    timed_out: timed_out.TimeoutExplanation | None = None


def banner_without_history(execution: Execution) -> Banner:
    """Return the banner of an execution whose definition cannot be parsed any more."""
    return Banner(cause_of(execution.cause), _parked_text(execution))


def banner_of(
    execution: Execution, trace: Trace, failures: child_counts.ChildFailures | None = None
) -> Banner:
    """Return the banner of an execution. ``failures``: those of a distributed Map's children."""
    culprit = trace.culprit
    root = root_cause.root_cause(execution, trace)
    cause = root.cause if root else None
    return Banner(
        cause=cause_of(execution.cause),
        parked=_parked_text(execution),
        failed_at=ended_in(execution, trace),
        attempts=culprit.attempts if culprit else 0,
        also_open=0 if culprit else max(0, len(states_left_open(execution, trace)) - 1),
        has_success=has_last_success(execution),
        root=root,
        root_cause_text=cause.text if cause and cause.raw != execution.cause else "",
        failed_child=_failed_child(execution, trace, root),
        child_failures=failures,
        timed_out=timed_out.explain_timeout(execution),
    )


def _parked_text(execution: Execution) -> str:
    if not hasattr(execution, "runrow") or execution.runrow.parked == pause.PARKED:
        return ""
    return masked_execution.masked_execution(execution).mask.words(execution.runrow.parked)


def _failed_child(
    execution: Execution, trace: Trace, root: root_cause.RootCause | None
) -> Execution | None:
    """Return the child execution whose failure ended this one: a Task waited for it."""
    culprit, arn = trace.culprit, root.child if root else ""
    if culprit is not None and "startExecution" in trace.graph.by_id[culprit.node].text:
        arn = traces.arn_started_last(traces.events_of_visit(execution, culprit))
    child = traces.children_by_arn(execution, [arn]).get(arn)
    fine = (ExecutionStatus.RUNNING, ExecutionStatus.SUCCEEDED)
    return child if child is not None and child.status not in fine else None


def failed_children(
    execution: Execution, trace: Trace, maps: MapRuns | None
) -> child_counts.ChildFailures | None:
    """Return the failures of the distributed Map that ended the execution."""
    culprit = trace.culprit
    if maps is None or culprit is None:
        return None
    run = maps.newest_of_visit(culprit.node, culprit.number)
    return child_counts.failures_of_children(execution.project, run) if run else None


def ending_stamp(
    execution: Execution, banner: Banner, *, unsettled: bool, seen_stamp: str = ""
) -> str:
    """Return a hash of the parts of the banner that may change after the end of the execution.

    A poll compares it with the stamp of the page and replaces the banner if they differ. Return ""
    while the execution runs and if nothing can change. ``unsettled``: the counts of a Map Run may
    still change; ``seen_stamp``: the stamp of the page that polls, "" without one.
    """
    if execution.status == ExecutionStatus.RUNNING or not (unsettled or seen_stamp):
        return ""
    parts = (redrive.redrive_refusal(execution), banner.child_failures, banner.timed_out)
    return hashlib.sha256(repr(parts).encode()).hexdigest()[:16]


def successes_beside(execution: Execution) -> QuerySet[Execution]:
    """Return the other successful executions of the state machine, newest first."""
    machine = execution.state_machine_id
    if machine is None:
        return Execution.objects.none()
    rows = Execution.objects.filter(state_machine=machine, status=ExecutionStatus.SUCCEEDED)
    return rows.exclude(pk=execution.pk).order_by("-start_ms", "-pk")


def has_last_success(execution: Execution) -> bool:
    """Whether an execution failed and there is a success to compare it with.

    No query is made if ``Scope.execution`` has read that together with the execution.
    """
    cached: bool | None = getattr(execution, "has_last_success", None)
    if cached is not None:
        return cached
    return execution.status in UNSUCCESSFUL and successes_beside(execution).exists()
