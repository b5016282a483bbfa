"""The loop of the interpreter, ``advance``: one message in, one step out.

``advance`` is pure: the same machine, run, message and moment give the same step. It works through
a queue of ready frames, without recursion, until every frame waits for the outside world. The
theory of operation is in ``engine.runtime``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, assert_never

from engine.errors import RUNTIME, TIMEOUT, EngineBug, StatesError
from engine.execution_status import ExecutionStatus
from engine.language.model import Fail, Map, Pass, Succeed, Task, Wait
from engine.runtime import (
    commands,
    fault_strikes,
    flow,
    groups,
    halts,
    messages,
    recovery,
    redrive,
    release,
)
from engine.runtime.payload import Payload
from engine.runtime.run import Frame, FramePhase, Moment, Run, Step
from engine.runtime.states import ENTER, distributed, map_, task, wait
from engine.runtime.turn import MAX_EVENTS, HistoryFullError, MachineDeletingError, Turn

if TYPE_CHECKING:
    from collections.abc import Callable

    from engine.language.model import Machine
    from engine.runtime.messages import Message

BUDGET = 2_000
"""The maximum number of states that a step enters: about 4,000 events, to keep commits short."""
HELD_EVENTS = 1_000
"""The maximum number of events between the scheduling of a task and its start."""
EXECUTION_TIMER = "execution"
MAX_EXECUTION_S = 365 * 24 * 3600
"""AWS: a Standard execution runs for a year at most."""
# Python 3.11 calls a function to look a member up on its enum. The loop asks once a state.
_BEGIN, _READY, _TASK = FramePhase.BEGIN, FramePhase.READY, FramePhase.TASK
_OPEN = frozenset({ExecutionStatus.NEW, ExecutionStatus.RUNNING})
_REDRIVABLE = frozenset(
    {ExecutionStatus.FAILED, ExecutionStatus.TIMED_OUT, ExecutionStatus.ABORTED}
)


def advance(
    machine: Machine,
    run: Run,
    message: Message,
    moment: Moment,
    *,
    budget: int = BUDGET,
    enough: Callable[[], bool] | None = None,
) -> Step:
    """Compute the step that a message causes.

    A message that no frame waits for gives an empty step: no events, no commands, the same run.

    ``budget``: how many states may be entered. With 0 a ``Start`` only writes event 1.
    ``enough``: called after each state; once it returns True the step ends, as it does when the
    budget is spent. Where a step ends does not change the events that follow.

    Raise ``EngineBug`` if the run contradicts the machine. Errors of the language do not raise:
    they go to Retry and Catch, or end the execution.
    """
    if not _expects(run, message):
        return Step(run, budget_left=budget)
    turn = Turn(machine, run, moment, budget)
    try:
        _receive(turn, message)
        _run_ready_frames(turn, enough, to_the_end=budget > 0)
    except HistoryFullError:
        # The events up to number 24,999 stay. The last event that AWS allows is ExecutionFailed.
        _fail_history_full(turn)
    except MachineDeletingError:
        _stop(turn, messages.Stop())
    # The message found no frame. The run is returned as it came, so that the caller sees that there
    # is no snapshot to write.
    if not turn.events and not turn.commands and turn.plan is run.plan:
        return Step(run, budget_left=budget)
    return turn.step()


def _expects(run: Run, message: Message) -> bool:
    """Return whether a run accepts a message: Start first, Redrive after a bad end."""
    # A run without frames cannot be redriven.
    if isinstance(message, messages.Redrive):
        return run.status in _REDRIVABLE and bool(run.frames)
    return run.status in _OPEN and (run.status is ExecutionStatus.NEW) == isinstance(
        message, messages.Start
    )


def abandon(machine: Machine, run: Run, cause: str, moment: Moment) -> Step:
    """End an execution that the engine cannot continue: FAILED, ``States.Runtime``.

    The caller uses it after an ``EngineBug``, or when a user gives up an execution.
    """
    turn = Turn(machine, run, moment, 0)
    groups.fail_execution(turn, turn.next_event - 1, StatesError(RUNTIME, cause))
    return turn.step()


# -- messages --------------------------------------------------------------------------------------


def _receive(turn: Turn, message: Message) -> None:
    match message:
        case messages.Start():
            _start(turn, message)
        case messages.Stop():
            _stop(turn, message)
        case messages.TimerFired(timer=timer):
            _timer_fired(turn, timer)
        case (
            messages.TaskStarted()
            | messages.TaskSubmitted()
            | messages.TaskSucceeded()
            | messages.TaskFailed()
        ):
            _resume_task(turn, message)
        case messages.TaskTimedOut():
            _time_out_tasks(turn, message)
        case messages.Continue():
            pass  # the ready frames are in the queue of the run already
        case messages.Redrive():
            _redrive(turn)
        case (
            messages.SetBreakpoints()
            | messages.Release()
            | messages.AnswerTask()
            | messages.Skip()
            | messages.FailState()
        ):
            _debug(turn, message)
        case _:
            assert_never(message)


def _debug(turn: Turn, message: messages.SetBreakpoints | release.ReleaseMessage) -> None:
    """Set breakpoints, or release a line of control from one."""
    if isinstance(message, messages.SetBreakpoints):
        release.set_breakpoints(turn, message)
        return
    frame = release.frame_to_release(turn, message)
    if frame is not None:
        _with_recovery(turn, frame, release.resume, message)


def _start(turn: Turn, start: messages.Start) -> None:
    about = {name: getattr(start, name) for name in start.__struct_fields__}
    turn.about = {name: value for name, value in about.items() if value is not None}
    turn.status = ExecutionStatus.RUNNING
    details = {"input": start.input, "roleArn": start.role_arn}
    if start.alias_arn:
        details["stateMachineAliasArn"] = start.alias_arn
    if start.version_arn:
        details["stateMachineVersionArn"] = start.version_arn
    turn.record("ExecutionStarted", 0, details)
    _set_execution_timer(turn)
    # AWS writes previousEventId 0 for the first ...StateEntered, as if it came
    # first. So the first frame's cursor is 0, not the number of ExecutionStarted.
    first = Frame(turn.new_id(), (), "", start.input, 0, phase=_BEGIN)
    turn.frames[first.id] = first
    if start.start_at is None:
        turn.ready.append(first.id)
    else:  # a partial run: its first state is not the machine's StartAt, so it is entered here
        first = turn.keep(first, variables=start.variables or "")
        flow.enter(turn, first, start.start_at, Payload(start.input))


def _set_execution_timer(turn: Turn) -> None:
    """Set the timer of TimeoutSeconds.

    An execution without TimeoutSeconds gets no timer: few live for ``MAX_EXECUTION_S``, and a timer
    would cost each of them a row. For a machine with a limit, the caller sends ``TimerFired`` with
    ``EXECUTION_TIMER``.
    """
    if _time_limit(turn) is not None:
        due_ms = _clock_start_ms(turn) + _timeout_seconds(turn) * 1000
        turn.command(commands.SetTimer(EXECUTION_TIMER, due_ms))


def _clock_start_ms(turn: Turn) -> int:
    """Return the start of the TimeoutSeconds clock, in epoch milliseconds.

    A redrive starts the clock anew ("Restarting state machine executions with redrive").
    """
    begun: int = turn.about.get("redrive_ms") or turn.about["start_ms"]
    return begun


def _redrive(turn: Turn) -> None:
    redrive.begin(turn)
    _set_execution_timer(turn)


def _time_limit(turn: Turn) -> int | None:
    """Return the time limit of the execution in seconds, of its start or else its machine."""
    seconds: int | None = turn.about.get("timeout_seconds")
    return turn.machine.timeout_seconds if seconds is None else seconds


def _timeout_seconds(turn: Turn) -> int:
    """Return the number of seconds after which the execution times out."""
    limit = _time_limit(turn)
    return MAX_EXECUTION_S if limit is None else min(limit, MAX_EXECUTION_S)


def _stop(turn: Turn, stop: messages.Stop) -> None:
    details = {"error": stop.error, "cause": stop.cause}
    present = {key: value for key, value in details.items() if value is not None}
    # AWS writes no ...Aborted event for the states that are open: only the execution has one.
    turn.record("ExecutionAborted", 0, present)
    groups.stop_everything(turn)
    turn.finish(ExecutionStatus.ABORTED, error=stop.error, cause=stop.cause)


def _timer_fired(turn: Turn, timer: str) -> None:
    if timer == EXECUTION_TIMER:
        _execution_timed_out(turn)
        return
    frame = next((frame for frame in turn.frames.values() if frame.timer == timer), None)
    if frame is None:
        return
    if frame.phase is FramePhase.BACKOFF:
        # A retry does the work of the state again, without a second ...StateEntered.
        turn.keep(frame, phase=_READY, timer="")
        turn.ready.append(frame.id)
        return
    answer = fault_strikes.take_late(turn, frame) if turn.faults is not None else None
    if answer is not None:
        turn.keep(frame, phase=_TASK, timer="")
        _resume_task(turn, answer)
    else:
        waited = task.end_delay if frame.phase is FramePhase.DELAY else wait.resume
        _with_recovery(turn, frame, waited, messages.TimerFired(timer))


def _execution_timed_out(turn: Turn) -> None:
    """End the execution as TIMED_OUT.

    AWS gives it a stopDate of exactly startDate plus TimeoutSeconds, and DescribeExecution shows no
    error. The timer may fire later than it is due, so the time is computed, not read.
    """
    turn.record("ExecutionTimedOut", 0, {"error": TIMEOUT})
    groups.stop_everything(turn)
    turn.finish(
        ExecutionStatus.TIMED_OUT, stop_ms=_clock_start_ms(turn) + _timeout_seconds(turn) * 1000
    )


def _resume_task(turn: Turn, message: Any) -> None:
    frame = _frame_of_task(turn, message.task)
    if frame is None:
        return
    is_repeated = False
    if turn.faults is not None and _is_answer(message):
        if fault_strikes.hold_answer(turn, frame, message):
            return
        is_repeated = fault_strikes.repeats_answer(turn, frame)
    run = distributed if isinstance(turn.state(frame), Map) else task
    _with_recovery(turn, frame, run.resume, message)
    if is_repeated and turn.status is ExecutionStatus.RUNNING:
        _resume_task(turn, message)  # the task has ended: no frame waits for it


def _is_answer(message: Any) -> bool:
    """Tell whether a message is an outcome; a call that was refused handed out no token."""
    outcomes = (messages.TaskSucceeded, messages.TaskFailed)
    return isinstance(message, outcomes) and not getattr(message, "refused", False)


def _frame_of_task(turn: Turn, number: int) -> Frame | None:
    # The phase is compared, too: in the phase GROUP ``waits_for`` is the number of a group, which
    # may be equal to the number of a task.
    waiting = (frame for frame in turn.frames.values() if frame.phase is _TASK)
    return next((frame for frame in waiting if frame.waits_for == number), None)


def _time_out_tasks(turn: Turn, message: messages.TaskTimedOut) -> None:
    """Write ...TimedOut for all tasks that timed out together, then fail each, in order.

    AWS: when the tasks of several iterations time out in one instant, each has its event, although
    the first failure aborts the other iterations.
    """
    errors: dict[int, StatesError] = {}
    for number, heartbeat in ((message.task, message.heartbeat), *message.also):
        frame = _frame_of_task(turn, number)
        if frame is not None and isinstance(turn.state(frame), Task):
            errors[frame.id] = task.time_out(turn, frame, heartbeat=heartbeat)
    for failed, error in errors.items():
        # A failure before it may have aborted the frame, or ended the execution: then the frames
        # are back in the run, for a redrive.
        if failed in turn.frames and turn.status is ExecutionStatus.RUNNING:
            recovery.state_failed(turn, turn.frames[failed], error)
            groups.settle(turn)


# -- the ready queue -------------------------------------------------------------------------------


def _run_ready_frames(turn: Turn, enough: Callable[[], bool] | None, *, to_the_end: bool) -> None:
    """Do the work of the queued frames, in order, while the budget lasts.

    ``to_the_end``: once the budget is spent, also run frames that enter no further state.
    """
    while turn.ready and (turn.budget > 0 or (to_the_end and _is_free(turn))):
        frame = turn.frames.get(turn.ready.popleft())
        if frame is None:
            continue
        if frame.phase is _BEGIN:
            frame = _enter_first_state(turn, frame)
            # Entering the first state spent the last of the budget: its work is the next step's.
            if frame is not None and turn.budget <= 0:
                turn.ready.appendleft(frame.id)
                continue
        if (
            frame is not None
            and frame.phase is _READY
            and (turn.plan is None or not halts.stops_before(turn, frame))
        ):
            _with_recovery(turn, frame, _enter_state)
        if (enough is not None and enough()) or (turn.held and _is_overdue(turn)):
            break
    # A task starts when all that is ready has worked. AWS writes ...Started there, too, and none
    # for a task that a failing sibling ends before: the call is not made, so that nothing has
    # started. Where a step ends changes nothing: what is held is in the run.
    if turn.held and (not turn.ready or _is_overdue(turn)):
        task.start_held(turn)
    if turn.ready and turn.status is ExecutionStatus.RUNNING:
        turn.command(commands.Proceed())


def _is_overdue(turn: Turn) -> bool:
    """Return whether a task has waited too long for its start, because a branch loops.

    The step ends then, so the call is made, whatever its siblings do next.
    """
    return turn.next_event - next(iter(turn.held.values())).task > HELD_EVENTS


def _is_free(turn: Turn) -> bool:
    """Return whether the next frame can do its work without entering another state.

    A Task and a Wait stop to wait, a Succeed and a Fail end their line of control, and so does a
    Pass without Next. Letting them work at the end of a step saves the commit of another step.
    """
    # A Task can still enter a state, when scheduling it fails and a Catcher leads on. The budget is
    # negative then. Stopping there keeps a loop through a Catcher from filling one endless step.
    frame = turn.frames.get(turn.ready[0])
    if turn.budget < 0 or frame is None or frame.phase is not _READY:
        return False
    state = turn.state(frame)
    last = isinstance(state, Pass) and state.next is None
    return last or isinstance(state, Task | Wait | Succeed | Fail)


def _enter_first_state(turn: Turn, frame: Frame) -> Frame | None:
    """Enter the first state of the machine or of an iteration and let it act at once."""
    payload = Payload(frame.input)
    if frame.group:
        owner = turn.frames[turn.groups[frame.group].owner]
        state = turn.state(owner)
        if not isinstance(state, Map):
            raise EngineBug("only iterations of a Map begin later than their group")
        try:
            payload = map_.item_input(turn, frame, owner, state)
        except StatesError as error:
            groups.selector_failed(turn, frame, owner, error)
            groups.settle(turn)
            return None
    entered = flow.enter(turn, frame, turn.block(frame).start_at, payload)
    # ``flow.enter`` has put the frame at the end of the queue. The caller lets it act at once, so
    # that entry and work of an iteration's first state are adjacent in the history.
    turn.ready.pop()
    return entered


def _enter_state(turn: Turn, frame: Frame) -> None:
    if turn.faults is not None and fault_strikes.fails_child(turn, frame):
        return
    state = turn.state(frame)
    ENTER[type(state)](turn, frame, state)


def _with_recovery(turn: Turn, frame: Frame, action: Any, message: Message | None = None) -> None:
    """Run a state's code; pass an ASL error to Retry, to Catch and then up."""
    try:
        if message is None:
            action(turn, frame)
        else:
            action(turn, frame, turn.state(frame), message)
    except StatesError as error:
        # Frames are frozen: the action may have stored a newer one, with a later cursor.
        recovery.state_failed(turn, turn.frames[frame.id], error)
    groups.settle(turn)


def _fail_history_full(turn: Turn) -> None:
    cause = f"The execution reached the maximum number of history events ({MAX_EVENTS})."
    groups.fail_execution(turn, turn.next_event - 1, StatesError(RUNTIME, cause))


__all__ = ["BUDGET", "EXECUTION_TIMER", "MAX_EXECUTION_S", "abandon", "advance"]
