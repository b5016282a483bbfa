"""Answer the page of the resilience report."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from django.views.decorators.http import require_safe

import engine
from console.resilience import TrialOutcome, examine
from console.resilience.writing import duration_words, trial_words
from console.web.core.formatting import StatusLabel
from console.web.core.scope import render, scope_of
from console.web.machines.machine_views import machine_context

if TYPE_CHECKING:
    from django.http import HttpRequest, HttpResponse

    from console.resilience import Report, ResilienceTrial, Weakness

MOST_SECONDS = 3.0
"""After so long a page tries no further state; the command tries all."""
MOST_LINES = 500
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
"""Code of a weakness -> the heading of its lines."""


@dataclass(frozen=True, slots=True)
class TrialRow:
    """A line of the table of trials."""

    trial: ResilienceTrial
    status: StatusLabel
    injected: str
    details: str
    took: str
    dollars: str


@dataclass(frozen=True, slots=True)
class WeaknessGroup:
    """The weaknesses of a kind, with their remedy as the first one has it."""

    title: str
    weaknesses: tuple[Weakness, ...]


@require_safe
def resilience_page(request: HttpRequest, machine_name: str) -> HttpResponse:
    """Answer ``/machines/<name>/resilience/``: the weaknesses and the trials of its definition."""
    machine = scope_of(request).machine(machine_name)
    report = _report_of(machine.definition.text, machine.type)
    context = machine_context(machine) | {"tab": "resilience", "report": report}
    if report is not None:
        context |= {
            "groups": list_groups(report),
            "rows": [_row_of(trial) for trial in report.trials[:MOST_LINES]],
            "more_rows": max(len(report.trials) - MOST_LINES, 0),
        }
    return render(request, "resilience/page.html", context)


def _report_of(text: str, kind: str) -> Report | None:
    """Return the report of a definition; None for one that a former version stored unchecked."""
    try:
        return examine(text, kind=kind, most_seconds=MOST_SECONDS)
    except engine.DefinitionError:
        return None


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
    )
