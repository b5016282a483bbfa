"""Run trials: inject an error into a state in place of its answer, and observe the outcome.

A trial runs a small definition: the state as a Task with its Retriers, Catchers and timeouts,
inside the Parallel and Map states around it. Which entry handles an error does not depend on data,
so data fields are omitted, and each Catcher leads to its own final state. With a recorded execution
(``Rehearsal``) the whole definition runs instead, with recorded input and answers.
"""

from __future__ import annotations

import copy
import itertools
from dataclasses import dataclass, field, replace
from decimal import Decimal
from enum import StrEnum
from typing import TYPE_CHECKING, Any

import engine

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from console.features.resilience.trials.places import TestedState
    from console.features.resilience.trials.rehearsal import Rehearsal

EXAMPLE_ERROR = "Example.Error"
"""An error name that no definition has: only wildcards match it."""
TRANSITION_DOLLARS = Decimal("0.000025")
"""AWS's price of a state transition in a Standard execution; a retry is one."""
_MOST_STEPS = 4_000
_SPENT = 1_000_000_000
_SECONDS_INSTEAD = 60
_FUNCTION = "arn:aws:lambda:us-east-1:123456789012:function:example"
_ABOUT = {
    "execution_arn": "arn:aws:states:us-east-1:123456789012:execution:example:run",
    "execution_name": "run",
    "state_machine_arn": "arn:aws:states:us-east-1:123456789012:stateMachine:example",
    "state_machine_name": "example",
    "role_arn": "arn:aws:iam::123456789012:role/example",
    "input": "{}",
    "start_ms": 0,
}
_WILDCARDS = {
    "States.ALL": (EXAMPLE_ERROR, "States.Timeout", "States.HeartbeatTimeout"),
    "States.TaskFailed": (EXAMPLE_ERROR,),
    "States.Timeout": ("States.Timeout", "States.HeartbeatTimeout"),
}


class TrialOutcome(StrEnum):
    """The outcome of a trial, in the words of the report."""

    RECOVERED = "recovered"  # a retry succeeded
    CAUGHT = "caught"  # a Catcher took the error
    FAILED = "failed"  # nothing took the error
    TIMED_OUT = "timed out"  # the time limit of the execution ended it
    STUCK = "stuck"  # no limit of time ends the task
    RETRYING = "still retrying"  # after so many calls that the trial was ended


@dataclass(frozen=True, slots=True)
class ResilienceTrial:
    """A trial and its result.

    ``state``, ``tested``: the tested entry, as ``Charge`` and ``Retry[0]``. ``error``: the injected
    error, "" if the call never answered. ``lasting``: every call failed, not only the first.
    ``whole``: the whole definition ran, with a recorded input. ``reached``: the tested Retrier or
    Catcher handled the error. ``taken_by``: the handling Catcher, as ``Outer/Catch[0]``; ``next``:
    its target. ``ended_with``: the error of a failed run. ``seconds``: None if it never ends.
    ``calls``: how often the state was called. ``repeated``: Task state -> calls made only by
    retries.
    """

    state: str
    tested: str
    error: str
    outcome: TrialOutcome
    calls: int
    seconds: float | None
    lasting: bool = True
    whole: bool = False
    reached: bool = True
    taken_by: str = ""
    next: str = ""
    ended_with: str = ""
    repeated: Mapping[str, int] = field(default_factory=dict)
    express: bool = False

    @property
    def retries(self) -> int:
        """Return the number of calls after the first."""
        return max(self.calls - 1, 0)

    @property
    def dollars(self) -> Decimal | None:
        """Return AWS's price of the retries; None for Express, where they are free."""
        return None if self.express else self.retries * TRANSITION_DOLLARS


# -- who takes an error ----------------------------------------------------------------------------


def taker_of(
    place: TestedState, error: str, *, without_retrier: int | None = None
) -> dict[str, int]:
    """Return ``retryIndex`` and ``catchIndex`` of the entries that handle an error."""
    definition, _ = isolated(place)
    block = _innermost(definition, place)
    state = block["States"][place.name]
    if without_retrier is not None:
        del state["Retry"][without_retrier]
    one_state = {"StartAt": place.name, "States": block["States"]}
    machine = engine.parse(engine.dumps(one_state))
    mock = engine.Mock(error=error, cause="")
    # All attempts are spent, so that the answer names the Retrier and also the Catcher behind it.
    trial = engine.try_state(
        machine, place.name, "{}", engine.Moment(0), about=_ABOUT, mock=mock, retries=_SPENT
    )
    details = trial.stages.get("errorDetails", {})
    return {name: details[name] for name in ("retryIndex", "catchIndex") if name in details}


def error_for(place: TestedState, index: int, *, of: str) -> str:
    """Return an error that an entry handles, "" if earlier entries handle all its errors.

    ``of``: Retry or Catch.
    """
    entries = place.retriers if of == "Retry" else place.catchers
    key = "retryIndex" if of == "Retry" else "catchIndex"
    if index >= len(_up_to_all(entries)):
        return ""
    errors = [error for name in _names(entries[index]) for error in _WILDCARDS.get(name, (name,))]
    return next((error for error in errors if taker_of(place, error).get(key) == index), "")


@dataclass(frozen=True)
class Recording:
    """A recorded execution with the definition that it fits.

    ``usual``: state -> number of its calls without errors. ``callers``: all states that call.
    """

    definition: Mapping[str, Any]
    rehearsal: Rehearsal
    usual: Mapping[str, int]
    callers: Sequence[str]


# -- one trial -------------------------------------------------------------------------------------


@dataclass
class _Injection:
    """The mock of the tested Task: counts its calls, and fails the first one or all."""

    error: str
    lasting: bool
    answers: Iterator[Any]
    calls: int = 0
    silent: bool = False

    def __call__(self, _input: Any) -> Any:
        self.calls += 1
        self.silent = False
        if not self.lasting and self.calls > 1:
            return next(self.answers)
        if not self.error:
            self.silent = True
            raise engine.NoAnswer
        cause = "Injected by the resilience report."
        raise engine.StatesError(self.error, cause)


def isolated(
    place: TestedState, *, drop: Sequence[str] = ()
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the definition of a trial, and final state -> its Catcher and the Catcher's target.

    ``drop``: fields of the state to omit, such as HeartbeatSeconds.
    """
    ends: dict[str, Any] = {}
    state = _as_task(place, drop)
    block = _block_of(place, len(place.around), state, ends)
    for depth in range(len(place.around) - 1, -1, -1):
        outer = place.around[depth]
        block = _block_of(outer, depth, {"Type": "Parallel", "Branches": [block]}, ends)
    if place.limit_s is not None:
        block["TimeoutSeconds"] = place.limit_s
    return block, ends


def run_isolated(
    place: TestedState,
    tested: str,
    error: str,
    *,
    lasting: bool = True,
    drop: Sequence[str] = (),
) -> ResilienceTrial:
    """Run a trial of a state with dummy data. ``tested``: as in ``ResilienceTrial``."""
    definition, ends = isolated(place, drop=drop)
    mock = _Injection(error, lasting, itertools.repeat({}))
    common: dict[str, Any] = {
        "state": place.name,
        "tested": tested,
        "error": error,
        "lasting": lasting,
        "express": place.express,
    }
    try:
        result = engine.run(definition, {}, {place.name: mock}, max_steps=_MOST_STEPS)
    except engine.EngineBug:
        return ResilienceTrial(**common, outcome=_unfinished(mock), calls=mock.calls, seconds=None)
    taken_by, following = ends.get(result.path[-1], ("", ""))
    called = [place] if place.resource else place.tasks_inside
    repeated = {task.name: mock.calls - 1 for task in called if mock.calls > 1}
    return ResilienceTrial(
        **common,
        outcome=_outcome(result, caught=bool(taken_by)),
        calls=mock.calls,
        seconds=result.slept,
        taken_by=taken_by,
        next=following,
        ended_with=result.error or "",
        repeated=repeated,
    )


def run_whole(
    recording: Recording, place: TestedState, trial: ResilienceTrial
) -> ResilienceTrial | None:
    """Repeat a trial in the whole definition; None if recorded answers do not reach its state.

    An unrecorded Task, such as one behind a Catcher, answers ``{}``. If the execution then fails,
    that answer may be the reason, and the trial is inconclusive.
    """
    usual, rehearsal = recording.usual, recording.rehearsal
    if not usual.get(place.name):
        return None
    mock = _Injection(trial.error, trial.lasting, rehearsal.answers(place.name))
    unknown = {state: _made_up for state in recording.callers if state not in rehearsal.recorded}
    tasks: dict[str, Callable[[Any], Any]] = {**unknown, **rehearsal.tasks(), place.name: mock}
    limit = {} if place.limit_s is None else {"TimeoutSeconds": place.limit_s}
    definition = {**recording.definition, **limit}
    try:
        result = engine.run(definition, rehearsal.input, tasks, max_steps=_MOST_STEPS)
    except engine.EngineBug:
        outcome = _unfinished(mock)
        return replace(trial, whole=True, outcome=outcome, calls=mock.calls, seconds=None)
    if result.status == "FAILED" and any(call.state in unknown for call in result.calls):
        return None
    calls: dict[str, int] = {}
    for call in result.calls:
        calls[call.state] = calls.get(call.state, 0) + 1
    repeated = {
        state: count - max(usual.get(state, 0), 1)
        for state, count in calls.items()
        if count > max(usual.get(state, 0), 1)
    }
    return replace(
        trial,
        whole=True,
        outcome=_outcome(result, caught=bool(trial.taken_by)),
        calls=mock.calls,
        seconds=result.slept,
        ended_with=result.error or "",
        repeated=repeated,
    )


def _made_up(_input: Any) -> Any:
    return {}


def _outcome(result: engine.Result, *, caught: bool) -> TrialOutcome:
    if result.status == "TIMED_OUT":
        return TrialOutcome.TIMED_OUT
    if result.status != "SUCCEEDED":
        return TrialOutcome.FAILED
    return TrialOutcome.CAUGHT if caught else TrialOutcome.RECOVERED


def _unfinished(mock: _Injection) -> TrialOutcome:
    return TrialOutcome.STUCK if mock.silent else TrialOutcome.RETRYING


# -- the definition of a trial ---------------------------------------------------------------------


def _as_task(place: TestedState, drop: Sequence[str]) -> dict[str, Any]:
    """Return a state as a Task without data fields; for errors, a Parallel or Map is like one."""
    resource = place.resource or _FUNCTION
    task: dict[str, Any] = {"Type": "Task", "Resource": resource}
    if resource.endswith(".waitForTaskToken"):
        task["Parameters"] = {"Token.$": "$$.Task.Token"}
    for name in ("TimeoutSeconds", "HeartbeatSeconds"):
        value = place.state.get(name, place.state.get(f"{name}Path"))
        if value is not None and name not in drop and place.resource:
            task[name] = value if isinstance(value, int) else _SECONDS_INSTEAD
    if task.get("HeartbeatSeconds", 0) >= task.get("TimeoutSeconds", engine.MAX_EXECUTION_S):
        task["HeartbeatSeconds"] = max(task["TimeoutSeconds"] - 1, 1)
    return task


def _block_of(
    place: TestedState, depth: int, state: dict[str, Any], ends: dict[str, Any]
) -> dict[str, Any]:
    """Return the block of a state: the state, and a final state for each of its Catchers."""
    states: dict[str, Any] = {place.name: {**state, "End": True}}
    retriers = [dict(entry) for entry in _up_to_all(place.retriers)]
    if retriers:
        states[place.name]["Retry"] = retriers
    catchers = _up_to_all(place.catchers)
    for index, catcher in enumerate(catchers):
        end = f"caught:{depth}.{index}"
        states[end] = {"Type": "Succeed"}
        ends[end] = (f"{place.name}/Catch[{index}]", str(catcher.get("Next", "")))
        catcher_copy = {"ErrorEquals": copy.copy(catcher.get("ErrorEquals")), "Next": end}
        states[place.name].setdefault("Catch", []).append(catcher_copy)
    return {"StartAt": place.name, "States": states}


def _innermost(definition: dict[str, Any], place: TestedState) -> dict[str, Any]:
    block = definition
    for outer in place.around:
        block = block["States"][outer.name]["Branches"][0]
    return block


def _up_to_all(entries: Sequence[Mapping[str, Any]]) -> Sequence[Mapping[str, Any]]:
    """Return the entries up to the first States.ALL, which handles every error."""
    for index, entry in enumerate(entries):
        if _names(entry) == ["States.ALL"]:
            return entries[: index + 1]
    return entries


def _names(entry: Mapping[str, Any]) -> list[str]:
    names = entry.get("ErrorEquals")
    return [name for name in names if isinstance(name, str)] if isinstance(names, list) else []
