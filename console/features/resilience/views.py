"""View of the resilience report of a state machine, made by ``trials``."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from django.views.decorators.http import require_safe

import engine
from console.errors import ServiceError, ValidationException
from console.features.resilience.trials import TrialOutcome, examine, read_rehearsal
from console.features.resilience.trials.writing import duration_words, repeated_words, trial_words
from console.masking.mask import MASK
from console.statuses import ExecutionStatus, MachineType
from console.store.executions.find import list_executions
from console.store.state import history
from console.web.core.formatting import StatusLabel
from console.web.core.scope import render, scope_of
from console.web.machines.start_views import named_inputs_of
from console.web.machines.views import machine_context

if TYPE_CHECKING:
    from django.http import HttpRequest, HttpResponse

    from console.features.resilience.trials import Rehearsal, Report, ResilienceTrial, Weakness
    from console.models import Execution, StateMachine

MOST_SECONDS = 3.0
"""Time limit of a page, after which no further state is tried; the command tries all."""
MOST_LINES = 500
MOST_EVENTS = 1_000
"""The longest history whose answers a page uses; the command uses any."""
_OUTCOMES = {
    TrialOutcome.RECOVERED: StatusLabel("succeeded", "Recovered"),
    TrialOutcome.CAUGHT: StatusLabel("caught", "Caught"),
    TrialOutcome.FAILED: StatusLabel("failed", "Failed"),
    TrialOutcome.TIMED_OUT: StatusLabel("failed", "Timed out"),
    TrialOutcome.STUCK: StatusLabel("failed", "Stuck"),
    TrialOutcome.RETRYING: StatusLabel("running", "Still retrying"),
}
TITLES = {
    "no-retry-on-throttling": "No retry on throttling",
    "retry-not-idempotent": "Retry of a call that is not idempotent",
    "backoff-past-timeout": "Retries outlast the execution",
    "retry-endless": "Retries for weeks",
    "retry-never": "No retries",
    "retrier-unreachable": "Unreachable Retrier",
    "catcher-unreachable": "Unreachable Catcher",
    "catch-loses-input": "Input lost",
    "catch-endless": "Endless loop",
    "timeout-not-caught": "Timeout not caught",
    "callback-never-ends": "No time limit",
}
"""Code of a weakness -> its heading."""


@dataclass(frozen=True, slots=True)
class TrialRow:
    """A line of the table of trials."""

    trial: ResilienceTrial
    status: StatusLabel
    injected: str
    details: str
    took: str
    dollars: str
    repeated: str


@dataclass(frozen=True, slots=True)
class WeaknessGroup:
    """The weaknesses of a kind, with the remedy of the first."""

    title: str
    weaknesses: tuple[Weakness, ...]


@dataclass(frozen=True, slots=True)
class SuccessPart:
    """The last successful execution. ``is_long``: its history is too long for a page."""

    execution: Execution
    is_long: bool
    rehearsal: Rehearsal | None = None


@require_safe
def resilience_page(request: HttpRequest, machine_name: str) -> HttpResponse:
    """Show ``/machines/<name>/resilience/``: weaknesses and trials of its definition.

    ``?input=``: a named input in place of that of the last successful execution.
    """
    machine = scope_of(request).machine(machine_name)
    success = _last_success(machine)
    offered = named_inputs_of(machine)
    name = request.GET.get("input", "")
    report, problem = None, ""
    try:
        report = _report_of(machine, _rehearsal_of(success, offered, name), name)
    except ServiceError as error:
        problem = error.message
    context = machine_context(machine) | {
        "tab": "resilience",
        "report": report,
        "problem": problem,
        "success": success,
        "input_names": offered.names if offered is not None else [],
        "input_name": name,
    }
    if report is not None:
        context |= {
            "groups": list_groups(report),
            "rows": [_row_of(trial) for trial in report.trials[:MOST_LINES]],
            "more_rows": max(len(report.trials) - MOST_LINES, 0),
        }
    is_unknown = bool(name) and name not in context["input_names"]
    return render(request, "resilience/page.html", context, status=404 if is_unknown else 200)


def _last_success(machine: StateMachine) -> SuccessPart | None:
    """Return the last successful execution with its answers, as the command chooses it."""
    if machine.type == MachineType.EXPRESS:
        return None  # the command has no list of Express executions
    for execution in list_executions(machine, status=ExecutionStatus.SUCCEEDED, limit=1):
        rows = history.list_events(execution.pk, limit=MOST_EVENTS + 1)
        if len(rows) > MOST_EVENTS:
            return SuccessPart(execution, is_long=True)
        events = [history.aws_event(row) for row in rows]
        rehearsal = read_rehearsal(execution.name, execution.input, events)
        return SuccessPart(execution, is_long=False, rehearsal=rehearsal)
    return None


def _rehearsal_of(success: SuccessPart | None, offered: Any, name: str) -> Rehearsal | None:
    """Return the answers of the last success, with a named input if there is a name.

    Raise ServiceError for a named input that cannot be used.
    """
    rehearsal = success.rehearsal if success is not None else None
    if not name:
        return rehearsal
    if offered is None:
        raise ValidationException("This server has no named inputs.")
    text = offered.text(name)
    if rehearsal is None:
        reason = "The history of the last success is too long for this page."
        if success is None:
            reason = "No execution has succeeded, so there are no answers."
        raise ValidationException(f"The named input “{name}” cannot be used. {reason}")
    return replace(rehearsal, input=engine.loads(text), input_name=name)


def _report_of(machine: StateMachine, rehearsal: Rehearsal | None, name: str) -> Report | None:
    """Return the report of a state machine; raise ValidationException for an unsuitable input.

    None for an invalid definition of an earlier release.
    """
    text = machine.definition.text
    try:
        report = examine(
            text,
            name=machine.name,
            kind=machine.type,
            rehearsal=rehearsal,
            most_seconds=MOST_SECONDS,
        )
    except engine.DefinitionError:
        return None
    if name and not report.rehearsal:
        raise ValidationException(
            f"With the named input “{name}” and the answers of its last success, the state machine"
            " does not succeed."
        )
    if not machine.project.masked:
        return report
    trials = tuple(replace(trial, ended_with=_masked_error(trial, text)) for trial in report.trials)
    return replace(report, trials=trials)


def _masked_error(trial: ResilienceTrial, definition: str) -> str:
    """Return the error of a trial, masked if it may come from recorded data (ErrorPath)."""
    error = trial.ended_with
    is_known = error in ("", trial.error) or error.startswith("States.")
    return error if is_known or engine.dumps(error) in definition else MASK


def list_groups(report: Report) -> list[WeaknessGroup]:
    """Return the weaknesses by kind, in the order of the headings."""
    groups = []
    for code, title in TITLES.items():
        weaknesses = tuple(each for each in report.weaknesses if each.code == code)
        if weaknesses:
            groups.append(WeaknessGroup(title, weaknesses))
    return groups


def _row_of(trial: ResilienceTrial) -> TrialRow:
    details = ""
    if trial.taken_by:
        details = f"by {trial.taken_by}, continues at {trial.next}"
        if trial.ended_with:
            details = f"caught {details}, with {trial.ended_with}"
    elif trial.ended_with:
        details = f"with {trial.ended_with}"
    elif trial.outcome is TrialOutcome.STUCK:
        details = "nothing ends the task"
    return TrialRow(
        trial,
        _OUTCOMES[trial.outcome],
        trial_words(trial),
        details,
        "-" if trial.seconds is None else duration_words(trial.seconds),
        "-" if trial.dollars is None or not trial.retries else f"${trial.dollars:f}",
        repeated_words(trial),
    )
