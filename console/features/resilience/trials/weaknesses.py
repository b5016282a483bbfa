"""Find the weaknesses of a state, from its trials and the targets of its Catchers."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from console.features.resilience.trials.effects import (
    call_name,
    idempotency_parameter,
    repeated_effect,
)
from console.features.resilience.trials.places import following
from console.features.resilience.trials.trials import TrialOutcome, error_for, taker_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from console.features.resilience.trials.places import TestedState
    from console.features.resilience.trials.trials import ResilienceTrial

THROTTLING = "Throttling"
TIMEOUT = "TimeoutSeconds"
HEARTBEAT = "HeartbeatSeconds"
NO_LIMIT = "No time limit"
"""``ResilienceTrial.tested`` of a trial without Retrier or Catcher."""
_MAY_HAVE_HAPPENED = {
    "States.ALL",
    "States.TaskFailed",
    "States.Timeout",
    "States.HeartbeatTimeout",
}
_JSONPATH_READ = re.compile(r"(?<![$\w])\$(?:\.(?!Error\b|Cause\b)|\[(?!'(?:Error|Cause)'))")
_JSONATA_READ = re.compile(r"\$states\.input\.(?!Error\b|Cause\b)")
_WILDCARDS = {"States.ALL", "States.TaskFailed"}
_DAY_S = 24 * 3600


@dataclass(frozen=True, slots=True)
class Weakness:
    """A weakness of a state. ``tested``: as in ``ResilienceTrial``. ``remedy``: what to change."""

    code: str
    state: str
    tested: str
    text: str
    remedy: str


def weaknesses_of(place: TestedState, trials: Sequence[ResilienceTrial]) -> list[Weakness]:
    """Return the weaknesses of a state. ``trials``: the trials of this state."""
    weaknesses = [
        *_unreachable(place),
        *_pointless_retriers(place),
        *_doubled_calls(place),
        *_lost_inputs(place),
        *_endless_catchers(place),
    ]
    for trial in trials:
        weaknesses += _of_trial(place, trial)
    return weaknesses


# -- by trials -------------------------------------------------------------------------------------


def _of_trial(place: TestedState, trial: ResilienceTrial) -> Iterator[Weakness]:
    outcome = trial.outcome
    if trial.tested == THROTTLING and outcome is not TrialOutcome.RECOVERED:
        yield Weakness(
            "no-retry-on-throttling",
            place.name,
            THROTTLING,
            f"No Retrier takes {trial.error}: a single throttled call of {call_name(place)} "
            f"{_leads_to(trial)}.",
            f"Add a Retrier for {trial.error} with a backoff.",
        )
    elif trial.tested == NO_LIMIT and outcome is TrialOutcome.STUCK:
        yield Weakness(
            "callback-never-ends",
            place.name,
            NO_LIMIT,
            "Without TimeoutSeconds and HeartbeatSeconds a lost answer leaves the execution "
            "running for a year.",
            "Set TimeoutSeconds, or HeartbeatSeconds if the worker sends heartbeats.",
        )
    elif trial.tested in (TIMEOUT, HEARTBEAT) and _gets_through(trial):
        if any(_takes_failures(each) for each in (place, *place.around)):
            yield Weakness(
                "timeout-not-caught",
                place.name,
                trial.tested,
                f"No Catcher takes the {trial.error or trial.ended_with} that {trial.tested} "
                "brings: States.TaskFailed does not match it.",
                "Add States.Timeout to ErrorEquals of the Catcher, or catch States.ALL.",
            )
    elif outcome is TrialOutcome.TIMED_OUT and trial.lasting and trial.calls > 1:
        seconds = f"{trial.seconds or 0:,.0f} s"
        yield Weakness(
            "backoff-past-timeout",
            place.name,
            trial.tested,
            f"The retries take longer than the execution may run: it times out after {seconds} and "
            f"{trial.calls:,} calls, before the last attempt and before any Catcher.",
            "Lower MaxAttempts, BackoffRate or IntervalSeconds, set MaxDelaySeconds, or raise "
            "TimeoutSeconds of the state machine.",
        )
    elif outcome is TrialOutcome.RETRYING or (trial.retries and (trial.seconds or 0) > 30 * _DAY_S):
        yield Weakness(
            "retry-endless",
            place.name,
            trial.tested,
            f"A lasting error is retried {_how_long(trial)}.",
            "Lower MaxAttempts, or set MaxDelaySeconds.",
        )


def _how_long(trial: ResilienceTrial) -> str:
    if trial.seconds is None:
        return f"and the execution has not ended after {trial.calls:,} calls"
    return f"{trial.retries:,} times over {trial.seconds / _DAY_S:,.0f} days"


def _gets_through(trial: ResilienceTrial) -> bool:
    """Return whether no Retrier or Catcher handled the error."""
    return trial.outcome is TrialOutcome.FAILED and not trial.taken_by


def _takes_failures(place: TestedState) -> bool:
    return any("States.TaskFailed" in each.get("ErrorEquals", ()) for each in place.catchers)


def _leads_to(trial: ResilienceTrial) -> str:
    if trial.taken_by:
        return f"goes to {trial.next}"
    return "fails the execution"


# -- by the definition -----------------------------------------------------------------------------


def _unreachable(place: TestedState) -> Iterator[Weakness]:
    for of, entries in (("Retry", place.retriers), ("Catch", place.catchers)):
        word = "retrier" if of == "Retry" else "catcher"
        for index in range(len(entries)):
            if not error_for(place, index, of=of):
                yield Weakness(
                    f"{word}-unreachable",
                    place.name,
                    f"{of}[{index}]",
                    "Earlier entries take all of its errors, so it is never used.",
                    "Move it before the entry that takes its errors, or remove it.",
                )


def _pointless_retriers(place: TestedState) -> Iterator[Weakness]:
    """Yield Retriers that retry nothing, unless they shield an error from a later one."""
    for index, retrier in enumerate(place.retriers):
        error = error_for(place, index, of="Retry")
        if retrier.get("MaxAttempts") != 0 or not error:
            continue
        if "retryIndex" not in taker_of(place, error, without_retrier=index):
            yield Weakness(
                "retry-never",
                place.name,
                f"Retry[{index}]",
                "MaxAttempts is 0: this Retrier never retries.",
                "Set MaxAttempts to 1 or more, or remove the Retrier.",
            )


def _doubled_calls(place: TestedState) -> Iterator[Weakness]:
    tasks = [place] if place.resource else place.tasks_inside
    call = next((call for task in tasks if (call := repeated_effect(task))), "")
    token = next((idempotency_parameter(task) for task in tasks if repeated_effect(task)), "")
    for index, retrier in enumerate(place.retriers if call else ()):
        names = [name for name in retrier.get("ErrorEquals", ()) if name in _MAY_HAVE_HAPPENED]
        if not names or retrier.get("MaxAttempts") == 0:
            continue
        yield Weakness(
            "retry-not-idempotent",
            place.name,
            f"Retry[{index}]",
            f"Each {call} has its effect again, and {names[0]} also takes errors of calls that "
            "already had it.",
            (f"Pass {token}, or " if token else "Make the receiver ignore repetitions, or ")
            + "retry only errors of calls that were refused.",
        )


def _lost_inputs(place: TestedState) -> Iterator[Weakness]:
    for index, catcher in enumerate(place.catchers):
        target = catcher.get("Next")
        if not isinstance(target, str) or not _replaces_input(catcher, jsonata=place.jsonata):
            continue
        reader = _reads_input(place, target)
        wildcard = "States.ALL" in catcher.get("ErrorEquals", ())
        if reader:
            text = f"The error replaces the input, but {reader} reads other fields of it."
        elif wildcard and not _may_fail(place, target):
            text = (
                "This Catcher takes every error and loses the input, and no Fail state follows: "
                "what failed ends as a success."
            )
        else:
            continue
        remedy = (
            "Set Output to an object with $states.input and $states.errorOutput."
            if place.jsonata
            else 'Set ResultPath, as "$.error", so that the input stays.'
        )
        yield Weakness("catch-loses-input", place.name, f"Catch[{index}]", text, remedy)


def _replaces_input(catcher: Mapping[str, Any], *, jsonata: bool) -> bool:
    if not jsonata:
        return bool(catcher.get("ResultPath", "$") == "$")
    if "Output" not in catcher:
        return True
    # A variable or the input in it: something of what was there is passed on.
    text = json.dumps(catcher["Output"]).replace("$states.errorOutput", "")
    return re.search(r"\$states\.input|\$states\.context|\$[A-Za-z_]", text) is None


def _reads_input(place: TestedState, target: str) -> str:
    """Return the first state behind a Catcher that reads fields an error output lacks."""
    waiting, seen = [target], {place.name}
    while waiting:
        name = waiting.pop(0)
        state = place.siblings.get(name)
        if name in seen or not isinstance(state, dict):
            continue
        seen.add(name)
        language = state.get("QueryLanguage")
        jsonata = place.jsonata if language is None else language == "JSONata"
        if _reads(state, jsonata=jsonata):
            return name
        if _passes_on(state, jsonata=jsonata):
            waiting += following(state, caught=False)
    return ""


def _reads(state: Mapping[str, Any], *, jsonata: bool) -> bool:
    """Return whether a state reads a field of its input other than Error and Cause."""
    after = ("Catch", "ResultPath", "ResultSelector", "OutputPath", "Branches", "Retry")
    fields = {
        name: value
        for name, value in state.items()
        if name not in (*after, "ItemProcessor", "Iterator", "Comment", "Output", "Assign")
    }
    if jsonata and state.get("Type") in ("Pass", "Choice", "Wait"):
        fields |= {name: state[name] for name in ("Output", "Assign") if name in state}
    pattern = _JSONATA_READ if jsonata else _JSONPATH_READ
    return any(pattern.search(text) for text in _texts(fields))


def _passes_on(state: Mapping[str, Any], *, jsonata: bool) -> bool:
    """Return whether a state's output contains its input."""
    kind = state.get("Type")
    if kind in ("Choice", "Wait"):
        return "Output" not in state
    if jsonata:
        return kind == "Pass" and "Output" not in state
    replaced = state.get("ResultPath", "$") == "$"
    if kind == "Pass":
        return not replaced or not ({"Result", "Parameters"} & state.keys())
    return not replaced


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for inside in value.values():
            yield from _texts(inside)
    elif isinstance(value, list):
        for inside in value:
            yield from _texts(inside)


def _may_fail(place: TestedState, target: str) -> bool:
    """Return whether a Fail state, or the state itself again, can follow."""
    waiting, seen = [target], set()
    while waiting:
        name = waiting.pop()
        state = place.siblings.get(name)
        if name == place.name or (isinstance(state, dict) and state.get("Type") == "Fail"):
            return True
        if name not in seen and isinstance(state, dict):
            seen.add(name)
            waiting += following(state, caught=False)
    return False


def _endless_catchers(place: TestedState) -> Iterator[Weakness]:
    for index, catcher in enumerate(place.catchers):
        if _WILDCARDS.isdisjoint(catcher.get("ErrorEquals", ())):
            continue  # to wait and try again after one kind of error is a way to poll
        name, seen = catcher.get("Next"), set()
        while isinstance(name, str) and name != place.name and name not in seen:
            seen.add(name)
            state = place.siblings.get(name)
            nexts = following(state, caught=False) if isinstance(state, dict) else []
            name = nexts[0] if len(nexts) == 1 else None
        if name == place.name:
            yield Weakness(
                "catch-endless",
                place.name,
                f"Catch[{index}]",
                "This Catcher leads back to the state without a Choice: a lasting error repeats it "
                "without end.",
                "Count the rounds and leave by a Choice, or use a Retrier with MaxAttempts.",
            )
