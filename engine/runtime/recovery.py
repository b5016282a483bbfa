"""What happens when a state fails?  Retry first, then Catch, then the failure goes up."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from engine.errors import (
    HEARTBEAT_TIMEOUT,
    QUERY_EVALUATION,
    TIMEOUT,
    InterpreterError,
    QueryEvaluationError,
    StatesError,
    matches,
)
from engine.language.model import NO_RECOVERY, Map, Parallel, QueryLanguage, Recovery, Wait
from engine.runtime import flow
from engine.runtime.payload import Payload
from engine.runtime.run import FramePhase

if TYPE_CHECKING:
    from engine.data.expression import Json
    from engine.language.model import Catcher, Retrier, State
    from engine.runtime.run import Frame
    from engine.runtime.turn import Turn


def state_failed(turn: Turn, frame: Frame, error: StatesError) -> None:
    """Handle an error of the state the frame is in."""
    state = turn.state(frame)
    frame, error = _explain(turn, frame, state, error)
    turn.note("failure", error)
    recovery: Recovery = getattr(state, "recovery", NO_RECOVERY)
    if _retry(turn, frame, recovery.retry, error):
        return
    if isinstance(state, Parallel | Map) and _was_open(frame, error):
        frame = turn.emit(frame, type(state).__name__ + "StateFailed")
    for index, catcher in enumerate(recovery.catch):
        if matches(catcher.error_equals, error.name, of_result=error.of_result):
            turn.note("catch", {"catchIndex": index})
            try:
                _catch(turn, frame, state, catcher, error)
            except StatesError as second:  # the Catcher's own expressions failed: nobody takes that
                frame, error = _explain(turn, turn.frames[frame.id], state, second)
                break
            turn.recovered()
            return
    turn.end_line(frame, error)


def _was_open(frame: Frame, error: StatesError) -> bool:
    """A Map that failed before it began has no ...StateFailed, but by its JSONata [recorded]."""
    return bool(frame.started_event) or error.name == QUERY_EVALUATION


def _explain(
    turn: Turn, frame: Frame, state: State, error: StatesError
) -> tuple[Frame, StatesError]:
    """Prefix an interpreter error with its place; write EvaluationFailed for a JSONata one."""
    if not isinstance(error, InterpreterError):
        return frame, error
    place = f"'{frame.state}' (entered at the event id #{frame.entered_event})"
    cause = f"An error occurred while executing the state {place}. {error.cause}"
    explained = StatesError(error.name, cause)
    if isinstance(error, QueryEvaluationError):
        details = {"error": error.name, "cause": cause, "state": frame.state}
        if error.location:
            details["location"] = error.location
        previous = _event_before_evaluation(turn, frame, state)
        number = turn.record("EvaluationFailed", previous, details, frame.state)
        frame = turn.keep(frame, cursor=number)
    return frame, explained


def _event_before_evaluation(turn: Turn, frame: Frame, state: State) -> int:
    """On entry an expression fails "before" the ...Entered event, but for Wait [recorded]."""
    if isinstance(state, Wait) or frame.cursor != frame.entered_event:
        return frame.cursor
    return turn.entered_after.get(frame.id, frame.cursor)


# -- Retry -----------------------------------------------------------------------------------------


def _retry(turn: Turn, frame: Frame, retriers: tuple[Retrier, ...], error: StatesError) -> bool:
    """Arm the backoff timer if a Retrier takes the error and has attempts left."""
    for index, retrier in enumerate(retriers):
        if not matches(retrier.error_equals, error.name, of_result=error.of_result):
            continue
        tries = frame.tries or (0,) * len(retriers)
        if tries[index] >= retrier.max_attempts:
            turn.note("retry", {"retryIndex": index})
            return False
        delay = backoff_ms(turn, retrier, tries[index])
        turn.note("retry", {"retryIndex": index, "retryBackoffIntervalSeconds": delay // 1000})
        turn.recovered()
        counts = (*tries[:index], tries[index] + 1, *tries[index + 1 :])
        frame = turn.keep(frame, tries=counts, retry_count=frame.retry_count + 1, waits_for=0)
        turn.set_timer(frame, turn.now_ms + delay, FramePhase.BACKOFF)
        return True
    return False


def backoff_ms(turn: Turn, retrier: Retrier, tries: int) -> int:
    """Return the pause before the next attempt: interval x rate^tries, capped, then jitter."""
    ceiling = float(retrier.max_delay_seconds or 99_999_999)
    try:
        seconds = min(retrier.interval_seconds * retrier.backoff_rate**tries, ceiling)
    except OverflowError:
        seconds = ceiling
    if retrier.full_jitter:
        seconds = turn.rng().uniform(0, seconds)
    return round(seconds * 1000)


# -- Catch -----------------------------------------------------------------------------------------


def error_output(error: StatesError) -> dict[str, Json]:
    """Return what a Catcher sees; both keys are there even when empty [recorded]."""
    name = TIMEOUT if error.name == HEARTBEAT_TIMEOUT else error.name
    without = "" if name == TIMEOUT else None  # a timeout has an empty cause [recorded]
    return {"Error": name, "Cause": without if error.cause is None else error.cause}


def _catch(turn: Turn, frame: Frame, state: Any, catcher: Catcher, error: StatesError) -> None:
    caught = Payload.of(error_output(error))
    frame = turn.keep(frame, phase=FramePhase.READY, waits_for=0, timer="")
    data = catcher.data
    if state.language is QueryLanguage.JSONATA:
        seen = flow.evaluation_scope(
            turn, frame, turn.input(frame).value, error_output=caught.value
        )
        payload = caught if data.output is None else Payload.of(data.output.evaluate(seen))
        values = flow.evaluate_assign(
            turn, frame, state, data, caught, plain=True, error_output=caught.value
        )
    else:
        payload = flow.apply_result(turn, frame, state, data, caught)
        values = flow.evaluate_assign(turn, frame, state, data, caught)
    flow.leave(turn, frame, payload, values, catcher.next)
