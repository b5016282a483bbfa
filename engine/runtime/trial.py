"""TestState: run one state with one input, without an execution and without a history.

The state's code runs in a ``Turn`` of a made-up run with one frame. Each data stage leaves a note
in ``Turn.trial``; the notes become the inspection data of TestState's answer.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from engine import jsontext
from engine.errors import EXCEED_TOLERATED_FAILURE, RUNTIME, InterpreterError, StatesError
from engine.execution_status import ExecutionStatus
from engine.language.model import (
    INLINE_FAULT,
    NO_RECOVERY,
    Fail,
    Map,
    Parallel,
    QueryLanguage,
    Task,
)
from engine.runtime import commands, flow, recovery
from engine.runtime.messages import Message, TaskFailed, TaskSucceeded, TaskTimedOut
from engine.runtime.payload import Payload
from engine.runtime.run import Frame, FramePhase, Moment, Run
from engine.runtime.states import ENTER, distributed, map_items, task
from engine.runtime.turn import Turn

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from engine.language.model import Machine

_JSONPATH_ONLY = (
    "afterInputPath",
    "afterParameters",
    "afterItemsPath",
    "afterResultSelector",
    "afterResultPath",
)
_STAGES = (
    *_JSONPATH_ONLY,
    "afterItemsPointer",
    "afterItemSelector",
    "afterItemBatcher",
    "afterArguments",
    "result",
)
_NUMBERS = ("maxConcurrency", "toleratedFailureCount", "toleratedFailurePercentage")
_EXCEEDED = "The specified tolerated failure threshold was exceeded"


class TrialStatus(StrEnum):
    """How a trial ended: AWS's ``TestExecutionStatus``."""

    SUCCEEDED = "SUCCEEDED"  # the state would be left with an output
    FAILED = "FAILED"  # an error without a matching Retrier or Catcher
    RETRIABLE = "RETRIABLE"  # a Retrier matches: the state would run again
    CAUGHT_ERROR = "CAUGHT_ERROR"  # a Catcher matches


class TrialError(Exception):
    """TestState cannot run the request; the text says why, in the service's words."""


@dataclass(frozen=True, slots=True)
class Mock:
    """The replacement for the work of a Task, Map or Parallel: a result (JSON text) or an error.

    Of a Map also ``failures``: how many iterations failed; ``items``: the items that its ItemReader
    would have read; ``pointed``: the value that its ItemsPointer found.
    """

    result: str | None = None
    error: str | None = None
    cause: str | None = None
    failures: int = 0
    items: Sequence[Any] | None = None
    pointed: Any = None


@dataclass(frozen=True, slots=True)
class Trial:
    """The result of a trial.

    ``stages``: the value after each stage as JSON text, and ``errorDetails`` where there are any.
    """

    status: TrialStatus
    output: str | None = None
    error: str | None = None
    cause: str | None = None
    next_state: str | None = None
    stages: dict[str, Any] = field(default_factory=dict)


def try_state(
    machine: Machine,
    name: str,
    text: str,
    moment: Moment,
    *,
    about: Mapping[str, Any],
    mock: Mock | None = None,
    retries: int = 0,
    variables: str = "",
    call: Callable[[commands.RunTask], Message] | None = None,
) -> Trial:
    """Run one state of a machine's top level; return its output or error, and the next state.

    ``text``: the input as JSON. ``about``: as ``Run.about``; with ``context`` it is the context
    object itself. ``retries``: the retries so far. ``variables``: JSON object. ``call``
    does the work of a Task that is not mocked.
    """
    turn = Turn(
        machine, Run(about=about, frames={}, groups={}, status=ExecutionStatus.RUNNING), moment, 1
    )
    turn.trial = {}
    state = machine.block.states[name]
    count = len(getattr(state, "recovery", NO_RECOVERY).retry)
    frame = Frame(
        1, (), name, text, 0, entered_event=1, entered_ms=moment.now_ms, variables=variables
    )
    turn.frames[1] = frame = turn.keep(frame, tries=(retries,) * count, retry_count=retries)
    try:
        _run_state(turn, frame, state, mock, call)
    except StatesError as error:
        recovery.state_failed(turn, turn.frames[1], error)
    initial = jsontext.loads(variables) if variables else {}
    turn.note("variables", {**initial, **turn.trial.get("variables", {})})
    return _make_trial(turn, state, text)


def _run_state(turn: Turn, frame: Frame, state: Any, mock: Mock | None, call: Any) -> None:
    if isinstance(state, Fail):
        turn.note("afterInputPath", turn.input(frame))
    if mock is not None and isinstance(state, Map | Parallel):
        flow.effective_input(turn, frame, state.data)
        notes = turn.trial if turn.trial is not None else {}
        if isinstance(state, Map):
            notes.pop("afterParameters", None)  # a Map has no such stage: its items have one
            _note_map(turn, frame, state, mock)
        else:
            notes.clear()  # of a mocked Parallel the service shows the stages of the result only
        if mock.result is None:
            raise StatesError(mock.error, mock.cause)
        flow.complete(turn, frame, state, state.data, Payload(mock.result))
        return
    ENTER[type(state)](turn, frame, state)
    if isinstance(state, Task):
        task.start_held(turn)
        scheduled = next(
            command for command in turn.commands if isinstance(command, commands.RunTask)
        )
        message = call(scheduled) if mock is None else _mocked_outcome(scheduled.task, mock)
        if isinstance(message, TaskTimedOut):
            raise task.time_out(turn, turn.frames[1], heartbeat=message.heartbeat)
        task.resume(turn, turn.frames[1], state, message)


def _note_map(turn: Turn, frame: Frame, state: Map, mock: Mock) -> None:
    """Record the items and inputs of a Map; raise if too many iterations failed."""
    if state.unusable:
        raise InterpreterError(INLINE_FAULT)
    value = flow.apply_input_path(turn, frame, state.data).value
    limit = map_items.evaluate_concurrency(turn, frame, state, value)
    extra = state.distributed
    items = mock.items
    if mock.pointed is not None:
        turn.note("afterItemsPointer", Payload.of(mock.pointed))
    if items is None and (extra is None or extra.item_reader is None):
        items = _evaluate_items(turn, frame, state, value)
        turn.note("afterItemsPath", Payload.of(map_items.as_inputs(items)))
    if items is not None and mock.failures > len(items):
        raise TrialError(
            "Map iteration failure count must be less than or equal to the number of Map iterations"
        )
    _note_inputs(turn, frame, state, value, items or [])
    turn.note("maxConcurrency", limit)
    if extra is None:
        return
    count, percentage = distributed.tolerated_failures(turn, frame, state, extra, value)
    turn.note("toleratedFailureCount", count)
    turn.note("toleratedFailurePercentage", percentage)
    if mock.result is not None and _exceeds_tolerance(
        mock.failures, len(items or ()), count, percentage
    ):
        raise StatesError(EXCEED_TOLERATED_FAILURE, _EXCEEDED)


def _evaluate_items(turn: Turn, frame: Frame, state: Map, value: Any) -> list[Any]:
    """Return the items; for a missing array the cause is shorter than in an execution."""
    try:
        return map_items.evaluate_items(turn, frame, state, value)
    except InterpreterError:
        path = getattr(state.items, "text", "$")
        path = path[1:] if path.startswith("$$") else path  # the service shows "$$.a" as "$.a"
        raise StatesError(RUNTIME, f'Reference path "{path}" must point to array.') from None


def _note_inputs(turn: Turn, frame: Frame, state: Map, value: Any, items: Sequence[Any]) -> None:
    inputs = list(distributed.apply_item_selector(turn, frame, state, value, items))
    if state.selector is not None:
        turn.note("afterItemSelector", Payload.of(inputs))
    if state.distributed is not None and state.distributed.item_batcher is not None:
        batches = list(distributed.apply_item_batcher(turn, frame, state, value, inputs))
        turn.note("afterItemBatcher", Payload.of(batches))


def _exceeds_tolerance(
    failures: int, total: int, count: int | None, percentage: float | None
) -> bool:
    """Return whether too many failed; False without a threshold."""
    over_count = count is not None and failures > count
    over_share = percentage is not None and failures * 100 > percentage * max(total, 1)
    return over_count or over_share


def _mocked_outcome(number: int, mock: Mock) -> Message:
    if mock.result is not None:
        return TaskSucceeded(number, mock.result)
    return TaskFailed(number, mock.error, mock.cause)


def _make_trial(turn: Turn, state: Any, text: str) -> Trial:
    notes = turn.trial or {}
    stages = _collect_stages(notes, state, text)
    failure: StatesError | None = notes.get("failure")
    error_texts = {"error": failure.name, "cause": failure.cause} if failure is not None else {}
    if "left" in notes:
        caught = "catch" in notes
        status = TrialStatus.CAUGHT_ERROR if caught else TrialStatus.SUCCEEDED
        return Trial(
            status, notes["left"].text, next_state=notes["following"], stages=stages, **error_texts
        )
    if "retry" in notes and turn.frames[1].phase is FramePhase.BACKOFF:
        return Trial(TrialStatus.RETRIABLE, stages=stages, **error_texts)
    # A Wait has set its timer and would leave with its input. TestState does not wait for it.
    if turn.frames[1].phase is FramePhase.TIMER:
        return Trial(TrialStatus.SUCCEEDED, text, next_state=state.next, stages=stages)
    outcome = turn.line_ends[0][1]
    if not isinstance(outcome, StatesError):
        return Trial(TrialStatus.SUCCEEDED, outcome.text, stages=stages)
    return Trial(TrialStatus.FAILED, error=outcome.name, cause=outcome.cause, stages=stages)


def _collect_stages(notes: dict[str, Any], state: Any, text: str) -> dict[str, Any]:
    stages: dict[str, Any] = {"input": text}
    for name in _STAGES:
        hidden = state.language is QueryLanguage.JSONATA and name in _JSONPATH_ONLY
        if name in notes and not hidden:
            stages[name] = notes[name].text
    stages |= {name: notes[name] for name in _NUMBERS if notes.get(name) is not None}
    details = {**notes.get("retry", {}), **notes.get("catch", {})}
    if details:
        stages["errorDetails"] = details
    if notes.get("variables"):
        stages["variables"] = jsontext.dumps(notes["variables"])
    return stages
