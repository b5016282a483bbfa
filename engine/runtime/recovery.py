"""Handle errors of states: Retry first, then Catch, else fail the enclosing state.

Source: "Handling errors in workflows". The first Retrier whose ErrorEquals matches decides: if its
attempts are spent, no later Retrier is asked. The first Catcher that matches handles the error.
"""

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
from engine.runtime import flow, halts
from engine.runtime.payload import Payload
from engine.runtime.run import FramePhase

if TYPE_CHECKING:
    from engine.data.expression import Json
    from engine.language.model import Catcher, Retrier, State
    from engine.runtime.run import Frame
    from engine.runtime.turn import Turn


def state_failed(turn: Turn, frame: Frame, error: StatesError) -> None:
    """Retry the frame's state, follow a Catcher, or end its line with the error."""
    state = turn.state(frame)
    # The prefix is added before any matching and stays with the error: a Catcher of an outer state
    # sees the name of the state in which the expression failed.
    frame, error = _explain(turn, frame, state, error)
    if turn.plan is None or not halts.stops_at_error(turn, frame, error):
        recover(turn, frame, state, error)


def recover(turn: Turn, frame: Frame, state: State, error: StatesError) -> None:
    """Apply the Retriers and Catchers of a failed state, regardless of its breakpoints."""
    turn.note("failure", error)
    recovery: Recovery = getattr(state, "recovery", NO_RECOVERY)
    if _retry(turn, frame, recovery.retry, error):
        return
    if isinstance(state, Parallel | Map) and not error.fatal and _was_open(frame, error):
        frame = turn.emit(frame, type(state).__name__ + "StateFailed")
    for index, catcher in enumerate(recovery.catch):
        if matches(catcher.error_equals, error.name, of_result=error.of_result):
            turn.note("catch", {"catchIndex": index})
            try:
                _catch(turn, frame, state, catcher, error)
            except StatesError as second:
                # The Catcher's own expressions failed. AWS asks no further Catcher: the new error
                # replaces the first one, and goes up.
                frame, error = _explain(turn, turn.frames[frame.id], state, second)
                break
            turn.recovered()
            return
    turn.end_line(frame, error)


def _was_open(frame: Frame, error: StatesError) -> bool:
    """Return whether ...StateFailed is written for a failed Parallel or Map.

    AWS writes none for a Map that failed before it began, as when ItemsPath yields no array; but it
    does write one when a JSONata expression was the reason.
    """
    return bool(frame.started_event) or error.name == QUERY_EVALUATION


def _explain(
    turn: Turn, frame: Frame, state: State, error: StatesError
) -> tuple[Frame, StatesError]:
    """Add the place of an interpreter's error to its cause, as AWS does.

    Also write EvaluationFailed if a JSONata expression was the reason.
    """
    if not isinstance(error, InterpreterError):
        return frame, error
    place = f"'{frame.state}' (entered at the event id #{frame.entered_event})"
    cause = f"An error occurred while executing the state {place}. {error.cause}"
    explained = StatesError(error.name, cause, fatal=error.fatal)
    if isinstance(error, QueryEvaluationError):
        details = {"error": error.name, "cause": explained.cause, "state": frame.state}
        if error.location:
            details["location"] = error.location
        previous = _event_before_evaluation(turn, frame, state)
        number = turn.record("EvaluationFailed", previous, details, frame.state)
        frame = turn.keep(frame, cursor=number)
    return frame, explained


def _event_before_evaluation(turn: Turn, frame: Frame, state: State) -> int:
    """Return the previousEventId of EvaluationFailed.

    AWS lets an expression that fails on entry point at the event before ...StateEntered, as if the
    state had not been entered. A Wait is the exception: there it points at WaitStateEntered.
    """
    if isinstance(state, Wait) or frame.cursor != frame.entered_event:
        return frame.cursor
    return turn.entered_after.get(frame.id, frame.cursor)


# -- Retry -----------------------------------------------------------------------------------------


def _retry(turn: Turn, frame: Frame, retriers: tuple[Retrier, ...], error: StatesError) -> bool:
    """Set the backoff timer if a Retrier handles the error; return whether it did."""
    for index, retrier in enumerate(retriers):
        if not matches(retrier.error_equals, error.name, of_result=error.of_result):
            continue
        tries = frame.tries or (0,) * len(retriers)
        # Each Retrier counts its own attempts, and a count survives errors that others take.
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
    """Return the pause before the next attempt, in milliseconds.

    ASL: IntervalSeconds times BackoffRate to the power of the retries so far, at most
    MaxDelaySeconds. With JitterStrategy FULL it is a random number from 0 to that.
    """
    ceiling = float(retrier.max_delay_seconds or 99_999_999)
    try:
        seconds = min(retrier.interval_seconds * retrier.backoff_rate**tries, ceiling)
    except OverflowError:  # a rate such as 1e308 is legal
        seconds = ceiling
    if retrier.full_jitter:
        seconds = turn.rng().uniform(0, seconds)
    return round(seconds * 1000)


# -- Catch -----------------------------------------------------------------------------------------


def error_output(error: StatesError) -> dict[str, Json]:
    """Return the error as a Catcher's data; AWS gives both keys, even empty."""
    name = TIMEOUT if error.name == HEARTBEAT_TIMEOUT else error.name
    without = "" if name == TIMEOUT else None  # AWS: a timeout's cause is "", another's is null
    return {"Error": name, "Cause": without if error.cause is None else error.cause}


def _catch(turn: Turn, frame: Frame, state: Any, catcher: Catcher, error: StatesError) -> None:
    # In JSONPath the error is the result, which ResultPath puts into the raw input. In JSONata it
    # is $states.errorOutput, and without Output it replaces the input.
    caught = Payload.of(error_output(error))
    frame = turn.keep(frame, phase=FramePhase.READY, waits_for=0, timer="")
    data = catcher.data
    if state.language is QueryLanguage.JSONATA:
        scope = flow.evaluation_scope(
            turn, frame, turn.input(frame).value, error_output=caught.value
        )
        payload = caught if data.output is None else Payload.of(data.output.evaluate(scope))
        values = flow.evaluate_assign(
            turn, frame, state, data, caught, plain=True, error_output=caught.value
        )
    else:
        payload = flow.apply_result(turn, frame, state, data, caught)
        values = flow.evaluate_assign(turn, frame, state, data, caught)
    flow.leave(turn, frame, payload, values, catcher.next, succeeded=False)


def takes_error(turn: Turn, frame: Frame, error: StatesError) -> bool:
    """Return whether a Retrier or Catcher of the frame's state would handle an error."""
    recovery: Recovery = getattr(turn.state(frame), "recovery", NO_RECOVERY)
    for index, retrier in enumerate(recovery.retry):
        if matches(retrier.error_equals, error.name, of_result=error.of_result):
            tries = frame.tries[index] if frame.tries else 0
            if tries < retrier.max_attempts:
                return True
            break
    return any(
        matches(catcher.error_equals, error.name, of_result=error.of_result)
        for catcher in recovery.catch
    )
