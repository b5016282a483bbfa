"""The snapshot of an execution's progress (``Run``), and its long texts (*values*) beside it.

A ``Run`` is frozen. It holds live lines of control (frames), open Parallel and Map states (groups)
and counters, and nothing of the past. Some texts must be kept, but not written again at every step:
long inputs, the items of a Map, the outputs of finished branches and iterations. These are
*values*: written once under a key, read through ``Run.values``, dropped when their group ends. So
the cost of a step does not grow with the length of the execution.
"""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Any, Protocol

import msgspec
from msgspec import Struct, field
from msgspec.structs import replace

from engine.errors import NewerFormat
from engine.execution_status import ExecutionStatus
from engine.runtime.breakpoints import DebugPlan
from engine.runtime.commands import RunTask  # noqa: TC001 - msgspec reads annotations
from engine.runtime.faults import FaultPlan

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from engine.data.expression import Json
    from engine.language.model import Resource
    from engine.runtime.commands import Command
    from engine.runtime.events import Event

FORMAT = 4
"""Version of the snapshot text; every format ever written must load.

Format 2 has ``held``, format 3 ``plan``, format 4 ``faults``. A run is written in the first format
that has all of it: earlier versions read that.
A change that an earlier version could not read, or would lose, makes a new format; even one more
field does. Examples of each format are in ``tests/engine/runtime/formats``.
"""
_HELD_FORMAT, _PLAN_FORMAT = 2, 3
INLINE = 1024
"""Longer inputs (in characters) are kept as values, so that no step writes them again."""


def input_key(entered_event: int) -> str:
    """Return the value key of a long state input, by its ...StateEntered event (0: execution)."""
    return f"in/{entered_event}/"


class Values(Protocol):
    """Write-once texts of a run, by key."""

    def many(self, keys: Sequence[str]) -> list[str]:
        """Return the texts under these keys, in that order."""
        ...


class DictValues(dict[str, str]):
    """Values in memory."""

    def many(self, keys: Sequence[str]) -> list[str]:
        """Return the texts under these keys, in that order."""
        return [self[key] for key in keys]


class Moment(Struct, frozen=True):
    """The outside world at the time of a step: clock, seed, keys.

    ``now_ms``: epoch milliseconds. ``seed``: the seed of everything random. ``token_key``: the key
    that makes task tokens. ``missing_activities``: ARNs of the machine's activities that do not
    exist. ``unusable``: a function of a Task's resource, its state's name and its parameters; it
    returns why the request would be invalid, "" if it is valid. It must be pure, as the engine is.
    ``deleting``: the state machine is being deleted, so that no further state may be entered.
    """

    now_ms: int
    seed: int = 0
    token_key: bytes = b""
    missing_activities: frozenset[str] = frozenset()
    unusable: Callable[[Resource, str, Json], str] | None = None
    deleting: bool = False


class FramePhase(StrEnum):
    """The phase of a frame. The values are in snapshots and in names of timers."""

    BEGIN = "begin"  # before its first state
    READY = "ready"  # can do the work of its state now
    SCHEDULED = "scheduled"  # its task is scheduled, and starts once no frame is ready
    TASK = "task"  # waits for the outcome of a task
    TIMER = "timer"  # waits for the timer of its Wait state
    BACKOFF = "backoff"  # waits for the end of a retry's backoff
    GROUP = "group"  # waits for its branches or iterations
    BREAK = "break"  # halted at a breakpoint until a user continues it
    DELAY = "delay"  # its task is scheduled, and a fault holds the call back


class GroupKind(StrEnum):
    """The state type of a group. The values are in snapshots."""

    PARALLEL = "parallel"  # its children are branches, which differ
    MAP = "map"  # its children are iterations of one processor


class Frame(Struct, frozen=True, gc=False, omit_defaults=True, forbid_unknown_fields=True):
    """One line of control.

    ``path``: state and branch index of each surrounding Parallel or Map, outermost first.
    ``state``, ``input``: the state it is in, "" before the first, and the state's raw input.
    ``cursor``: the event that the next event of this line points back to. ``group``, ``index``: the
    group whose child it is, 0 for the execution itself, and its number among the children.
    ``waits_for``: the number of the task (its Scheduled event) or of the group it waits for, else
    0. ``timer``: the name of its open timer, or "". ``tries``: the retries made, one count for each
    Retrier; ``retry_count``: their sum in this visit. ``variables``: JSON text of the variables
    assigned in this scope, "" for none. ``started_event``: the ...Started event of the open task, 0
    before it. ``map_run``: the ARN of the Map Run that a redrive continues.
    """

    id: int
    path: tuple[tuple[str, int], ...]
    state: str
    input: str
    cursor: int
    group: int = 0
    index: int = 0
    phase: FramePhase = FramePhase.READY
    waits_for: int = 0
    timer: str = ""
    entered_event: int = 0
    entered_ms: int = 0
    started_event: int = 0
    submitted: bool = False
    tries: tuple[int, ...] = ()
    retry_count: int = 0
    variables: str = ""
    map_run: str = ""


class Group(Struct, frozen=True, gc=False, omit_defaults=True, forbid_unknown_fields=True):
    """An open Parallel or inline Map: ``total`` children, of which ``started`` and ``done`` so far.

    ``start_event``: its ...StateStarted event. ``last_event``: where ...StateSucceeded will point
    back to. ``limit``: concurrency, 0 for none. ``size``: bytes of the outputs so far.
    """

    id: int
    owner: int
    kind: GroupKind
    total: int
    start_event: int
    last_event: int
    started: int = 0
    done: int = 0
    limit: int = 0
    size: int = 0


class Run(Struct, frozen=True):
    """The snapshot of one execution.

    ``ready``: the frames that can work without the outside world, in order. ``next_event``,
    ``next_id``: counters. ``last_ms``: the time of the last event; time never runs backwards in a
    history. ``held``: the tasks of frames in the phase SCHEDULED, by the number of the frame; only
    while a frame is ready. After a bad end, frames and groups stay as they were: a redrive goes on
    from them. ``plan``: the breakpoints, and the lines of control that stand at them; None if there
    are none. ``faults``: the plan of injected faults, None without one.
    """

    about: Mapping[str, Any]  # what Start said: ARNs, names, role, input, start; and redrive count
    frames: Mapping[int, Frame]
    groups: Mapping[int, Group]
    ready: tuple[int, ...] = ()
    next_event: int = 1
    next_id: int = 1
    last_ms: int = 0
    status: ExecutionStatus = ExecutionStatus.NEW
    held: Mapping[int, RunTask] = {}
    values: Values = field(default_factory=DictValues)
    plan: DebugPlan | None = None
    faults: FaultPlan | None = None

    def dumps(self) -> str:
        """Return the snapshot as JSON text, without the values."""
        stored: dict[str, Any] = {
            "format": self._format(),
            "about": _without_long_input(self.about),
            "frames": [_stored_frame(frame) for frame in self.frames.values()],
            "groups": [*self.groups.values()],
            "ready": self.ready,
            "next_event": self.next_event,
            "next_id": self.next_id,
            "last_ms": self.last_ms,
            "status": self.status,
        }
        if self.held:
            stored["held"] = self.held
        if self.plan is not None:
            stored["plan"] = self.plan
        if self.faults is not None:
            stored["faults"] = self.faults
        return _encode(stored).decode()

    def _format(self) -> int:
        """Return the oldest format that can hold this run."""
        if self.faults is not None:
            return FORMAT
        if self.plan is not None:
            return _PLAN_FORMAT
        return _HELD_FORMAT if self.held else 1

    def reading(self, values: Values) -> Run:
        """Return the same run with another store of values."""
        return replace(self, values=values)

    def with_plan(self, plan: DebugPlan | None) -> Run:
        """Return the same run with other breakpoints."""
        return replace(self, plan=plan)

    def with_faults(self, faults: FaultPlan | None) -> Run:
        """Return the same run with other faults."""
        return replace(self, faults=faults)

    @classmethod
    def loads(cls, text: str, values: Values) -> Run:
        """Parse a snapshot.

        Raise ``NewerFormat`` if a later version wrote it, ``ValueError`` for any other text.
        """
        raw = _decode(text)
        _check_format(raw.pop("format", None))
        _restore_inputs([raw["about"], *raw["frames"]], values)
        plan, faults = raw.pop("plan", None), raw.pop("faults", None)  # most runs have neither
        stored = msgspec.convert(raw, _Snapshot, str_keys=True)
        return cls(
            about=stored.about,
            frames={frame.id: frame for frame in stored.frames},
            groups={group.id: group for group in stored.groups},
            ready=stored.ready,
            next_event=stored.next_event,
            next_id=stored.next_id,
            last_ms=stored.last_ms,
            status=stored.status,
            held=stored.held,
            values=values,
            plan=None if plan is None else msgspec.convert(plan, DebugPlan),
            faults=None if faults is None else msgspec.convert(faults, FaultPlan, str_keys=True),
        )


NEW_RUN = Run(about={}, frames={}, groups={})
"""The run of an execution that has not started."""


class Step(Struct, frozen=True):
    """The result of a call of ``advance``.

    ``values``: values to write. ``dropped``: prefixes of values that are no longer needed.
    ``budget_left``: the remaining budget, for further messages of the same commit. An empty step
    (nothing happened) has no events, no commands and the same run.
    """

    run: Run
    events: tuple[Event, ...] = ()
    commands: tuple[Command, ...] = ()
    values: Mapping[str, str] = field(default_factory=dict)
    dropped: tuple[str, ...] = ()
    budget_left: int = 0


class _Snapshot(Struct, forbid_unknown_fields=True):
    """The parsed text of a run."""

    about: dict[str, Any]
    frames: list[Frame]
    groups: list[Group]
    ready: tuple[int, ...]
    next_event: int
    next_id: int
    last_ms: int
    status: ExecutionStatus
    held: dict[int, RunTask] = {}


# msgspec reads the types of a record on first use. If two threads do so at the same time, it
# crashes the process (0.22). So the types are read here, during the import, by one thread.
msgspec.json.Decoder(_Snapshot)
msgspec.json.Decoder(DebugPlan)
msgspec.json.Decoder(FaultPlan)
_decode = msgspec.json.Decoder(dict[str, Any]).decode


def _exact_text(value: object) -> str:
    """Convert a ``str`` subclass, which the encoder rejects, to ``str``."""
    if isinstance(value, str):
        return str.__str__(value)
    msg = f"got {type(value).__name__}, wanted a JSON value"
    raise TypeError(msg)


_encode = msgspec.json.Encoder(enc_hook=_exact_text).encode


def _stored_frame(frame: Frame) -> Frame | Mapping[str, Any]:
    """Return the snapshot's record of a frame: without defaults and long texts."""
    if len(frame.input) <= INLINE:
        return frame
    return _without_long_input(msgspec.to_builtins(frame, enc_hook=_exact_text))


def _without_long_input(record: Mapping[str, Any]) -> Mapping[str, Any]:
    """Replace a long ``input`` by ``input_at``, the event in the key of its value."""
    if len(record.get("input", "")) <= INLINE:
        return record
    short = {name: value for name, value in record.items() if name != "input"}
    return {**short, "input_at": record.get("entered_event", 0)}


def _restore_inputs(records: list[dict[str, Any]], values: Values) -> None:
    long = [record for record in records if "input_at" in record]
    if long:
        texts = values.many([input_key(record.pop("input_at")) for record in long])
        for record, text in zip(long, texts, strict=True):
            record["input"] = text


def _check_format(number: object) -> None:
    """Raise ``NewerFormat`` for an unknown format."""
    if number in (1, _HELD_FORMAT, _PLAN_FORMAT, FORMAT):
        return
    msg = f"snapshot format: got {number}, wanted {FORMAT}"
    # A team upgrades one server after another. An older one that meets the snapshot of a newer one
    # must leave the execution to it, and not treat the snapshot as broken.
    if isinstance(number, int) and number > FORMAT:
        raise NewerFormat(f"{msg} or less: a later version wrote it")
    raise ValueError(msg)


__all__ = [
    "FORMAT",
    "NEW_RUN",
    "DictValues",
    "Frame",
    "FramePhase",
    "Group",
    "GroupKind",
    "Moment",
    "Run",
    "Step",
    "Values",
]
