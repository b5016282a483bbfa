"""Make the resilience report of a state machine: all trials, and the resulting weaknesses."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import engine
from console.features.resilience.trials import trials
from console.features.resilience.trials.effects import throttling_error
from console.features.resilience.trials.places import TestedState, is_distributed, list_places
from console.features.resilience.trials.trials import TrialOutcome
from console.features.resilience.trials.weaknesses import (
    HEARTBEAT,
    NO_LIMIT,
    THROTTLING,
    TIMEOUT,
    weaknesses_of,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from console.features.resilience.trials.rehearsal import Rehearsal
    from console.features.resilience.trials.trials import ResilienceTrial
    from console.features.resilience.trials.weaknesses import Weakness

_ALL_LAST = "States.ALL must appear alone and at end of list"


@dataclass(frozen=True, slots=True)
class Report:
    """The report of a state machine. ``retriers``, ``catchers``, ``timeouts``: their numbers.

    ``rehearsal``: the name of the execution whose input and answers were used, "" for none.
    ``untried``: number of states omitted for lack of time. ``input_name``: the named input used
    instead of the execution's.
    """

    machine: str
    trials: tuple[ResilienceTrial, ...]
    weaknesses: tuple[Weakness, ...]
    retriers: int
    catchers: int
    timeouts: int
    rehearsal: str = ""
    untried: int = 0
    input_name: str = ""


def examine(
    text: str,
    *,
    name: str = "",
    kind: str = "STANDARD",
    rehearsal: Rehearsal | None = None,
    most_seconds: float = math.inf,
) -> Report:
    """Test each Retrier, Catcher and timeout of a definition; raise ``DefinitionError`` if invalid.

    ``kind``: STANDARD or EXPRESS. An entry after States.ALL is a weakness, not an error.
    ``most_seconds``: no further state is tried after this time.
    """
    until = time.monotonic() + most_seconds
    errors = [
        problem
        for problem in engine.check(text, kind)
        if problem.severity == "ERROR" and _ALL_LAST not in problem.message
    ]
    definition = engine.loads(text) if not errors else None
    if not isinstance(definition, dict):
        raise engine.DefinitionError(errors)
    places = list_places(definition, kind)
    recording = _recording_of(definition, places, rehearsal)
    results: list[ResilienceTrial] = []
    weaknesses: list[Weakness] = []
    untried = 0
    for number, place in enumerate(places):
        if time.monotonic() > until:
            untried = len(places) - number
            break
        tested = [_rehearse_in_machine(recording, place, each) for each in _trials_of(place)]
        results += tested
        weaknesses += weaknesses_of(place, tested)
    return Report(
        name,
        tuple(results),
        tuple(dict.fromkeys(weaknesses)),
        sum(len(place.retriers) for place in places),
        sum(len(place.catchers) for place in places),
        sum(len(_limits(place)) for place in places),
        recording.rehearsal.name if recording is not None else "",
        untried,
        recording.rehearsal.input_name if recording is not None else "",
    )


def _recording_of(
    definition: dict[str, Any], places: Sequence[TestedState], rehearsal: Rehearsal | None
) -> trials.Recording | None:
    """Return the recorded execution if it fits the current definition."""
    usual = rehearsal.usual_calls(definition) if rehearsal is not None else {}
    if rehearsal is None or not usual:
        return None
    callers = [place.name for place in places if place.resource or is_distributed(place.state)]
    return trials.Recording(definition, rehearsal, usual, callers)


def _rehearse_in_machine(
    recording: trials.Recording | None, place: TestedState, trial: ResilienceTrial
) -> ResilienceTrial:
    """Repeat a trial in the whole definition, if the recorded answers lead to the state."""
    if recording is None or not place.resource or place.child or not trial.reached:
        return trial
    if trial.outcome in (TrialOutcome.STUCK, TrialOutcome.RETRYING) or trial.tested == TIMEOUT:
        return trial
    in_machine = trials.run_whole(recording, place, trial)
    return trial if in_machine is None else in_machine


def _trials_of(place: TestedState) -> Iterator[ResilienceTrial]:
    yield from _of_retriers(place)
    for index in range(len(place.catchers)):
        tested = f"Catch[{index}]"
        error = trials.error_for(place, index, of="Catch")
        if error:
            trial = trials.run_isolated(place, tested, error)
            reached = trial.taken_by == f"{place.name}/{tested}" or (
                # The time limit of the execution can end it before the Catcher is tried.
                trial.outcome is TrialOutcome.TIMED_OUT
            )
            yield replace(trial, reached=reached)
    if not place.resource:
        return
    for limit in _limits(place):
        drop = [HEARTBEAT] if limit == TIMEOUT else []
        yield trials.run_isolated(place, limit, "", drop=drop)
    if not _limits(place) and _waits_for_worker(place):
        yield trials.run_isolated(place, NO_LIMIT, "")
    error = throttling_error(place)
    if error:
        yield trials.run_isolated(place, THROTTLING, error, lasting=False)


def _of_retriers(place: TestedState) -> Iterator[ResilienceTrial]:
    for index, retrier in enumerate(place.retriers):
        tested = f"Retry[{index}]"
        error = trials.error_for(place, index, of="Retry")
        if not error:
            continue
        for lasting in (False, True):
            trial = trials.run_isolated(place, tested, error, lasting=lasting)
            takes = trials.taker_of(place, error).get("retryIndex") == index
            is_used = trial.retries > 0 or retrier.get("MaxAttempts") == 0
            yield replace(trial, reached=takes and is_used)


def _limits(place: TestedState) -> list[str]:
    """Return the timeouts of a Task."""
    if not place.resource:
        return []
    return [
        name for name in (TIMEOUT, HEARTBEAT) if name in place.state or f"{name}Path" in place.state
    ]


def _waits_for_worker(place: TestedState) -> bool:
    resource = engine.parse_resource(place.resource)
    return resource is not None and (
        resource.kind == engine.TaskKind.ACTIVITY
        or resource.pattern == engine.IntegrationPattern.WAIT_FOR_TASK_TOKEN
    )
