"""Collect the changes of one call of ``advance``, and build its ``Step``.

``advance`` applies a message to the snapshot of an execution (``Run``) and returns a ``Step``: the
new snapshot with its events and commands. A frame is a line of control: the main flow, a branch or
an iteration, with its current state. A group is an open Parallel or inline Map state.

A ``Turn`` copies the frames and groups of the run and collects events and commands; it decides
nothing. The decisions are in ``flow`` (data), ``recovery`` (Retry, Catch), ``groups`` (Parallel,
Map) and ``states``. Each of these modules uses only later ones in the order states -> groups ->
recovery -> flow -> turn.
"""

from __future__ import annotations

import random
from collections import deque
from functools import cached_property
from itertools import islice
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from engine.execution_status import ExecutionStatus
from engine.history.event_types import EXECUTION_ENDS
from engine.runtime import commands as out
from engine.runtime.events import Event
from engine.runtime.payload import Payload
from engine.runtime.run import INLINE, Frame, FramePhase, Group, Moment, Run, Step, input_key
from engine.runtime.variables import Variables

if TYPE_CHECKING:
    from collections.abc import Mapping

    from engine.data.expression import Json
    from engine.errors import StatesError
    from engine.language.model import Block, Machine, State

MAX_EVENTS = 25_000
"""AWS: an execution's history has at most 25,000 events; the last one is its end."""


BYTES_A_STATE = 2_048
"""Characters of event details that cost as much budget as entering one state."""
_MOST_AHEAD = 255
"""Maximum number of items of a Map that are read ahead."""


class MachineDeletingError(Exception):
    """A state cannot be entered because the state machine is being deleted."""


class HistoryFullError(Exception):
    """The next event would be number 25,000 and is not the execution's end."""


class Turn:
    """The mutable state of one step while ``advance`` computes it."""

    # More attributes than the 30 whose names Python shares between instances would be slower.
    __slots__ = (
        "__dict__",
        "_inputs",
        "_items_ahead",
        "_items_read",
        "_rng",
        "about",
        "before",
        "budget",
        "commands",
        "dropped",
        "entered_after",
        "events",
        "execution_context",
        "faults",
        "frames",
        "groups",
        "held",
        "items",
        "line_ends",
        "lost_frames",
        "lost_groups",
        "machine",
        "moment",
        "next_event",
        "next_id",
        "now_ms",
        "outputs",
        "plan",
        "ready",
        "released",
        "status",
        "trial",
    )

    def __init__(self, machine: Machine, run: Run, moment: Moment, budget: int) -> None:
        """Copy the maps of the run; ``budget``: the number of states that may be entered.

        Long texts cost the budget, too, so that a commit stays small whatever it carries.
        """
        self.machine = machine
        self.before = run
        self.moment = moment
        # The clock of another process may be behind the one that computed the last step. Events of
        # one history must not run backwards in time, so the later of both counts.
        self.now_ms = max(moment.now_ms, run.last_ms)
        self.budget = budget
        self.about = run.about
        self.status = run.status
        self.frames = dict(run.frames)
        self.groups = dict(run.groups)
        self.ready = deque(run.ready)
        self.held = dict(run.held)
        self.plan = run.plan
        self.faults = run.faults
        self.next_event = run.next_event
        self.next_id = run.next_id
        self.events: list[Event] = []
        self.commands: list[out.Command] = []
        self.dropped: list[str] = []
        # Values created in this turn are not in ``before.values`` yet, so look here first.
        self.items: dict[int, list[Json]] = {}  # group -> items
        self.outputs: dict[int, dict[int, str]] = {}  # group -> index -> output
        self.execution_context: tuple[Mapping[str, Any], dict[str, Json]] | None = None
        self.trial: dict[str, Any] | None = None  # notes of a state that is only tried
        self.line_ends: deque[tuple[Frame, Payload | StatesError]] = deque()
        # Frames and groups that failed or were aborted in this turn. If a Retrier or Catcher takes
        # the error they are forgotten; if none does, the execution ends, and they go back into the
        # run, because a redrive continues from them.
        self.lost_frames: dict[int, Frame] = {}
        self.lost_groups: dict[int, Group] = {}
        self.released = (0, "")  # the frame that a user continued, and its breakpoint's state
        self.entered_after: dict[int, int] = {}  # frame -> event before its ...Entered of this turn
        self._inputs: dict[int, Payload] = {}
        self._items_read: dict[tuple[int, int], Payload] = {}
        self._items_ahead = 0
        self._rng: random.Random | None = None

    @cached_property
    def variables(self) -> Variables:
        """Return the workflow variables; most steps ask for none."""
        return Variables(self)

    # -- reading -----------------------------------------------------------------------------------

    def block(self, frame: Frame) -> Block:
        """Return the machine level, branch or item processor in which the frame runs."""
        block = self.machine.block
        for name, index in frame.path:
            owner: Any = block.states[name]
            # The iterations of a Map share one processor; the branches of a Parallel differ.
            block = owner.branches[index] if hasattr(owner, "branches") else owner.processor
        return block

    def state(self, frame: Frame) -> State:
        """Return the state the frame is in."""
        return self.block(frame).states[frame.state]

    def input(self, frame: Frame) -> Payload:
        """Return the frame's raw state input."""
        payload = self._inputs.get(frame.id)
        if payload is None:
            payload = self._inputs[frame.id] = Payload(frame.input)
        return payload

    def item(self, group: Group, index: int) -> Json:
        """Return item ``index`` of a Map."""
        if group.id in self.items:
            return self.items[group.id][index]
        if (group.id, index) not in self._items_read:
            self._read_items(group, index)
        return self._items_read[group.id, index].value

    def _read_items(self, group: Group, index: int) -> None:
        """Read item ``index`` of a Map, and some items of later iterations ahead of demand.

        Each read is twice as long as the one before: a step that starts one iteration reads one
        item, and a step that starts a thousand makes ten reads.
        """
        live = {frame.index for frame in self.frames.values() if frame.group == group.id}
        unfinished = (n for n in range(index + 1, group.total) if n >= group.started or n in live)
        indices = [index, *islice(unfinished, self._items_ahead)]
        self._items_ahead = min(2 * self._items_ahead + 1, _MOST_AHEAD)
        texts = self.before.values.many([item_key(group.id, number) for number in indices])
        for number, text in zip(indices, texts, strict=True):
            self._items_read[group.id, number] = Payload(text)

    def rng(self) -> random.Random:
        """Return the random source of this step."""
        if self._rng is None:
            self._rng = random.Random(self.moment.seed)  # noqa: S311 - not for secrets
        return self._rng

    # -- writing -----------------------------------------------------------------------------------

    def record(
        self, kind: str, previous: int, details: dict[str, Any] | None = None, state: str = ""
    ) -> int:
        """Append an event and return its id.

        ``previous``: the event it follows. Raise ``HistoryFullError`` if the event would be the
        last that AWS allows, and is not the end of the execution.
        """
        number = self.next_event
        if number >= MAX_EVENTS and kind not in EXECUTION_ENDS:
            raise HistoryFullError
        self.next_event = number + 1
        # The size of a commit depends on its texts, too: a payload of 256 KiB costs as much as 32
        # state entries, so that a loop over large payloads commits as often as it should.
        if details:
            size = 0
            for value in details.values():
                if type(value) is str:
                    size += len(value)
            self.budget -= size // BYTES_A_STATE
        self.events.append(Event(number, previous, self.now_ms, kind, details, state))
        return number

    def emit(self, frame: Frame, kind: str, details: dict[str, Any] | None = None) -> Frame:
        """Append an event after the frame's last one; return the frame with the new ``cursor``."""
        number = self.record(kind, frame.cursor, details, frame.state)
        return self.keep(frame, cursor=number)

    def keep(self, frame: Frame, **changes: Any) -> Frame:
        """Store the frame with these changes and return it."""
        frame = replace(frame, **changes)
        self.frames[frame.id] = frame
        return frame

    def new_id(self) -> int:
        """Return a number no frame or group of this execution has had."""
        self.next_id += 1
        return self.next_id - 1

    def set_input(self, frame: Frame, payload: Payload) -> None:
        """Remember the parsed form of the frame's input for the rest of the turn."""
        self._inputs[frame.id] = payload

    def note(self, name: str, value: Any) -> None:
        """Record a value for TestState's answer; an execution records none."""
        if self.trial is not None:
            self.trial[name] = value

    def end_line(self, frame: Frame, outcome: Payload | StatesError) -> None:
        """Queue the end of a line of control, with its output or error, for ``groups.settle``."""
        # Not handled at once: the caller is in the middle of a state, and the end of a line may
        # abort the very group that it works on.
        self.line_ends.append((frame, outcome))

    def command(self, command: out.Command) -> None:
        """Add a command to the step."""
        self.commands.append(command)

    def set_timer(self, frame: Frame, due_ms: int, phase: FramePhase) -> Frame:
        """Set the frame's one timer; the frame waits for it in ``phase``."""
        # The number of the next event makes the name unique: a timer of an earlier wait of the same
        # frame, which fires late, has another name and finds no frame.
        timer = f"{phase}-{frame.id}-{self.next_event}"
        self.command(out.SetTimer(timer, due_ms))
        return self.keep(frame, phase=phase, timer=timer)

    def remove(self, frame: Frame, *, done: bool = False) -> None:
        """Drop a line of control, and cancel its timer or task.

        ``done``: it ended normally. Else it is kept for a redrive until the error is handled.
        """
        del self.frames[frame.id]
        self._inputs.pop(frame.id, None)
        if frame.timer:
            self.command(out.CancelTimer(frame.timer))
        if frame.phase is FramePhase.TASK:
            self.command(out.CancelTask(frame.waits_for))
        if self.held.pop(frame.id, None):  # its task never started, and a redrive schedules another
            frame = replace(frame, phase=FramePhase.READY, waits_for=0)
        if self.plan is not None:
            self.plan = self.plan.forget(frame.id)
            if frame.phase is FramePhase.BREAK:  # a redrive does the work of its state again
                frame = replace(frame, phase=FramePhase.READY)
        if self.faults is not None:
            self.faults = self.faults.forget(frame.id)
            if frame.phase is FramePhase.DELAY:  # as above
                frame = replace(frame, phase=FramePhase.READY, waits_for=0, timer="")
        if not done:
            self.lost_frames[frame.id] = frame

    def close_group(self, group: Group, *, done: bool = False) -> None:
        """Drop a group; if ``done``, also its stored values."""
        del self.groups[group.id]
        if self.faults is not None:
            self.faults = self.faults.forget_group(group.id)
        if done:
            self._drop_values(group)
        else:
            self.lost_groups[group.id] = group

    def recovered(self) -> None:
        """Forget the failed lines of this turn: a Retrier or Catcher handled the error."""
        for group in self.lost_groups.values():
            self._drop_values(group)
        self.lost_frames.clear()
        self.lost_groups.clear()

    def _drop_values(self, group: Group) -> None:
        self.items.pop(group.id, None)
        self.outputs.pop(group.id, None)
        if group.id in self.before.groups:
            self.dropped.append(f"{group.id}/")

    def finish(self, status: ExecutionStatus, **ending: Any) -> None:
        """End the execution; no frame is ready afterwards, and no task or timer is open.

        Unless it succeeded, its frames and groups stay in the run as they were, for a redrive.
        ``ending``: fields of ``Finish``; the time of the end is now unless it says otherwise.
        """
        self.ready.clear()
        self.line_ends.clear()
        if status is ExecutionStatus.SUCCEEDED:
            for group in tuple(self.groups.values()):
                self.close_group(group, done=True)
            self.frames.clear()
            self.dropped = [""]  # every key begins with the empty prefix: all values go
        else:
            self.frames = {**self.lost_frames, **self.frames}
            self.groups = {**self.lost_groups, **self.groups}
        if self.plan is not None:
            ended_well = status is ExecutionStatus.SUCCEEDED
            self.plan = None if ended_well else self.plan.at_rest()
        self.faults = None  # a redrive has none
        self.status = status
        self.command(out.Finish(status, **{"stop_ms": self.now_ms, **ending}))

    # -- the result --------------------------------------------------------------------------------

    def step(self) -> Step:
        """Return the finished step."""
        run = Run(
            about=self.about,
            frames=self.frames,
            groups=self.groups,
            ready=tuple(self.ready),
            next_event=self.next_event,
            next_id=self.next_id,
            last_ms=self.now_ms if self.events else self.before.last_ms,
            status=self.status,
            held=self.held,
            values=self.before.values,
            plan=self.plan,
            faults=self.faults,
        )
        values = self._new_values()  # adds to ``dropped``, which is therefore read after it
        events, dropped = tuple(self.events), tuple(self.dropped)
        return Step(run, events, tuple(self.commands), values, dropped, max(self.budget, 0))

    def _new_values(self) -> dict[str, str]:
        """Return the values that later turns will read."""
        values = self._long_inputs()
        for number, items in self.items.items():
            # An iteration that succeeded never asks for its item again.
            ended = self.outputs[number]
            for index, item in enumerate(items):
                if index not in ended:
                    values[item_key(number, index)] = Payload.of(item).text
        for number, texts in self.outputs.items():
            for index, text in texts.items():
                values[output_key(number, index)] = text
        return values

    def _long_inputs(self) -> dict[str, str]:
        """Return the inputs that are new in the snapshot and too long for it.

        Also note the inputs to drop, because the execution has left their state.
        """
        values = {}
        if (
            not self.before.about
            and self.status is ExecutionStatus.RUNNING
            and len(self.about["input"]) > INLINE
        ):
            values[input_key(0)] = self.about["input"]
        for frame in self.frames.values():
            before = self.before.frames.get(frame.id)
            is_same = before is not None and before.entered_event == frame.entered_event
            if is_same and before is not None and before.input is not frame.input:
                # A user has edited the input at a breakpoint. Its earlier text is dropped first.
                is_same = before.input == frame.input
                if not is_same and len(before.input) > INLINE:
                    self.dropped.append(input_key(frame.entered_event))
            if len(frame.input) > INLINE and not is_same:
                values[input_key(frame.entered_event)] = frame.input
        # After a success ``finish`` has dropped everything, and after a bad end a redrive needs it.
        if self.status is not ExecutionStatus.RUNNING:
            return values
        for before in self.before.frames.values():
            now = self.frames.get(before.id)
            has_left = now is None or now.entered_event != before.entered_event
            if has_left and before.entered_event and len(before.input) > INLINE:
                self.dropped.append(input_key(before.entered_event))
        return values


def item_key(group: int, index: int) -> str:
    """Return the key under which an item is kept."""
    return f"{group}/i/{index}"


def output_key(group: int, index: int) -> str:
    """Return the key under which the output of a finished branch or iteration is kept."""
    return f"{group}/o/{index}"
