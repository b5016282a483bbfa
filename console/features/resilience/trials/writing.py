"""Write resilience reports as text, JSON or JUnit."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from console.features.deploy.junit import JUnitCase, write_junit
from console.features.resilience.trials.trials import TrialOutcome

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from console.features.resilience.trials.report import Report
    from console.features.resilience.trials.trials import ResilienceTrial
    from console.features.resilience.trials.weaknesses import Weakness

_MINUTE, _HOUR, _DAY = 60, 3_600, 86_400


def write_text(reports: Sequence[Report]) -> str:
    """Return the reports as lines to read."""
    return "\n\n".join("\n".join(_lines(report)) for report in reports)


def write_json(reports: Sequence[Report]) -> str:
    """Return the reports as a JSON list."""
    return json.dumps([_as_json(report) for report in reports], indent=2, ensure_ascii=False)


WRITERS: dict[str, Callable[[Sequence[Report]], str]] = {
    "text": write_text,
    "json": write_json,
    "junit": lambda reports: write_junit((each.machine, _junit_cases(each)) for each in reports),
}
"""Format -> the function that writes it."""


# -- words -----------------------------------------------------------------------------------------


def outcome_words(trial: ResilienceTrial) -> str:
    """Return the outcome in words: "caught by Charge/Catch[0] after 3 s and 3 calls"."""
    words = str(trial.outcome)
    if trial.outcome is TrialOutcome.STUCK:
        words = "stuck: nothing ends the task"
    elif trial.outcome is TrialOutcome.FAILED:
        words = f"failed with {trial.ended_with}"
    if trial.taken_by:
        caught = f"caught by {trial.taken_by}, continues at {trial.next}"
        words = caught if trial.outcome is TrialOutcome.CAUGHT else f"{caught}, {words}"
    after = f"{trial.calls:,} call{'' if trial.calls == 1 else 's'}"
    if trial.seconds is not None:
        after = f"{duration_words(trial.seconds)} and {after}"
    return f"{words}, after {after}"


def trial_words(trial: ResilienceTrial) -> str:
    """Return the injected failure in words: "every call fails with States.Timeout"."""
    if not trial.error:
        return "no answer"
    return f"{'every call' if trial.lasting else 'the first call'} fails with {trial.error}"


def repeated_words(trial: ResilienceTrial) -> str:
    """Return the other states that the retries called again, as "Charge 2x, Ship 1x"."""
    others = [each for each in trial.repeated.items() if each[0] != trial.state]
    return ", ".join(f"{state} {count:,}x" for state, count in others)


def duration_words(seconds: float) -> str:
    """Return seconds as "93 s", "12 min", "5 h" or "30 d"."""
    for unit, name in ((_DAY, "d"), (_HOUR, "h"), (_MINUTE, "min")):
        if seconds >= 2 * unit:
            return f"{seconds / unit:,.0f} {name}"
    return f"{seconds:,.0f} s"


def _lines(report: Report) -> list[str]:
    count = len(report.weaknesses)
    own = f"the named input {report.input_name} and the" if report.input_name else "the input and"
    source = (
        f"with {own} answers of execution {report.rehearsal}"
        if report.rehearsal
        else "each state by itself, with made-up data"
    )
    lines = [
        f"{report.machine}: {count} weakness{'' if count == 1 else 'es'}",
        f"  {_counts(report)}, {source}",
    ]
    for trial in report.trials:
        lines.append(f"  {trial.state} {trial.tested}: {trial_words(trial)}")
        lines.append(f"    {outcome_words(trial)}{_costs(trial)}")
    for weakness in report.weaknesses:
        lines.append(f"  WEAKNESS {weakness.code}: {weakness.state} {weakness.tested}")
        lines += [f"    {weakness.text}", f"    {weakness.remedy}"]
    return lines


def _counts(report: Report) -> str:
    counts = {
        "Retrier": report.retriers,
        "Catcher": report.catchers,
        "timeout": report.timeouts,
        "trial": len(report.trials),
    }
    return ", ".join(f"{n} {name}{'' if n == 1 else 's'}" for name, n in counts.items())


def _costs(trial: ResilienceTrial) -> str:
    if not trial.retries:
        return ""
    price = "" if trial.dollars is None else f", retries cost ${trial.dollars:f}"
    others = repeated_words(trial)
    return f"{price}; called again: {others}" if others else price


# -- JSON ------------------------------------------------------------------------------------------


def _as_json(report: Report) -> Mapping[str, Any]:
    return {
        "machine": report.machine,
        "execution": report.rehearsal or None,
        "inputName": report.input_name or None,
        "retriers": report.retriers,
        "catchers": report.catchers,
        "timeouts": report.timeouts,
        "trials": [_trial_json(trial) for trial in report.trials],
        "weaknesses": [
            {
                "code": weakness.code,
                "state": weakness.state,
                "field": weakness.tested,
                "text": weakness.text,
                "remedy": weakness.remedy,
            }
            for weakness in report.weaknesses
        ],
    }


def _trial_json(trial: ResilienceTrial) -> Mapping[str, Any]:
    return {
        "state": trial.state,
        "field": trial.tested,
        "error": trial.error or None,
        "lasting": trial.lasting,
        "data": "recorded" if trial.whole else "made up",
        "reached": trial.reached,
        "outcome": str(trial.outcome),
        "caughtBy": trial.taken_by or None,
        "next": trial.next or None,
        "endedWith": trial.ended_with or None,
        "seconds": trial.seconds,
        "calls": trial.calls,
        "repeatedCalls": dict(trial.repeated),
        "retryDollars": None if trial.dollars is None else str(trial.dollars),
    }


# -- JUnit -----------------------------------------------------------------------------------------


def _junit_cases(report: Report) -> list[JUnitCase]:
    """Return a test case for each tested field, failed by its weaknesses."""
    cases: dict[tuple[str, str], list[Weakness]] = {
        (trial.state, trial.tested): [] for trial in report.trials
    }
    for weakness in report.weaknesses:
        cases.setdefault((weakness.state, weakness.tested), []).append(weakness)
    seconds = {(each.state, each.tested): each.seconds or 0 for each in report.trials}
    return [
        JUnitCase(
            " ".join(case),
            "failure" if weaknesses else "",
            ", ".join(weakness.code for weakness in weaknesses),
            "\n".join(f"{weakness.text} {weakness.remedy}" for weakness in weaknesses),
            seconds.get(case, 0),
        )
        for case, weaknesses in cases.items()
    ]
