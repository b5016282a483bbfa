"""Breakpoints of one execution: where its lines of control stop, and which lines stand there now.

A line of control is the execution itself, a branch or an iteration; the engine calls it a frame.
The ``DebugPlan`` with the breakpoints is part of the run and is stored in its snapshot. A run
without breakpoints has no plan. A frame that stops gets a ``Halt`` in the plan and the phase BREAK.
It waits for a message ``Release``, ``AnswerTask``, ``Skip`` or ``FailState``; other frames
continue. ``halts`` stops frames, ``release`` continues them, and ``console.store.executions``
stores breakpoints that a user sets.
"""

from __future__ import annotations

from enum import StrEnum
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from msgspec import Struct
from msgspec.structs import replace

from engine import jsontext
from engine.data.jsonata import CLOSE, OPEN, JsonataSyntaxError, compile_jsonata
from engine.errors import JsonTextError
from engine.language.model import Fail, Map

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping

    from engine.language.model import Block, Machine, State

MOST_BREAKPOINTS = 50
"""The maximum number of breakpoints of an execution."""
_LONGEST_CONDITION = 4_096
_MOST_HITS = 1_000_000
_FIELDS = ("state", "when", "condition", "hits")


class BreakpointError(ValueError):
    """A breakpoint cannot be set; the text says why."""


class BreakTime(StrEnum):
    """When a line of control stops at a state. The values stand in snapshots and in forms."""

    BEFORE = "before"  # the state is entered, and has done nothing; also before each retry
    AFTER = "after"  # it has succeeded, and is not left yet
    ERROR = "error"  # an error has reached it, and no Retrier or Catcher was asked


class Breakpoint(Struct, frozen=True, gc=False, omit_defaults=True, forbid_unknown_fields=True):
    """A place where lines of control stop.

    ``condition``: a JSONata expression without ``{% %}`` that reads ``$states`` and the variables;
    "" is always true. ``hits``: the number of the visit, from 1, at which a line stops for the
    first time; later visits stop, too.
    """

    state: str
    when: BreakTime = BreakTime.BEFORE
    condition: str = ""
    hits: int = 1


class Halt(Struct, frozen=True, gc=False, omit_defaults=True, forbid_unknown_fields=True):
    """A line of control that stands at a breakpoint.

    ``number``: unique within the execution. ``state``: the state with the breakpoint; for ERROR it
    may be a Parallel or Map around the frame's state. ``stepped``: the line stopped because of a
    step or *Run to*, not a breakpoint. ``entered_after``: the event before ...StateEntered, -1 if
    an earlier step of the engine wrote it. ``problem``: why the condition could not be evaluated.
    AFTER has the ``output``, the ``assigned`` variables (JSON text), and the ``following`` state
    (None: the line ends). ERROR has the fields of its ``StatesError``.
    """

    number: int
    frame: int
    state: str
    when: BreakTime
    since_ms: int
    stepped: bool = False
    entered_after: int = -1
    problem: str = ""
    output: str = ""
    assigned: str = ""
    following: str | None = None
    error: str | None = None
    cause: str | None = None
    fatal: bool = False
    of_result: bool = False


class LineDestination(
    Struct, frozen=True, gc=False, omit_defaults=True, forbid_unknown_fields=True
):
    """The target of *Run to*: a state before whose work a line of control stops once.

    The ``frame``, or a line within it, stops there. ``depth``: the number of Parallel and Map
    states around both the frame and the state; if the frame ends deeper, its owner takes the
    destination over.
    """

    frame: int
    state: str
    depth: int = 0


class DebugPlan(Struct, frozen=True, gc=False, omit_defaults=True, forbid_unknown_fields=True):
    """The breakpoints of an execution, the halted lines, and the stops that were requested once.

    ``reached``: for each breakpoint, how often it was reached with a true condition. ``stepping``:
    frames that stop before the next state they enter. ``entering``: frames whose branches or
    iterations stop before their first state. ``destinations``: the targets of *Run to*.
    """

    breakpoints: tuple[Breakpoint, ...] = ()
    reached: tuple[int, ...] = ()
    halts: tuple[Halt, ...] = ()
    stepping: tuple[int, ...] = ()
    next_halt: int = 1
    entering: tuple[int, ...] = ()
    destinations: tuple[LineDestination, ...] = ()

    @classmethod
    def of(cls, breakpoints: Iterable[Breakpoint]) -> DebugPlan:
        """Return a plan with these breakpoints and without halts."""
        places = tuple(breakpoints)
        return cls(places, (0,) * len(places))

    def with_breakpoints(self, breakpoints: Iterable[Breakpoint]) -> DebugPlan:
        """Return the plan with other breakpoints.

        Halted lines stay halted. An unchanged breakpoint keeps its count.
        """
        counts = dict(zip(self.breakpoints, self.reached, strict=True))
        places = tuple(breakpoints)
        reached = tuple(counts.get(place, 0) for place in places)
        return replace(self, breakpoints=places, reached=reached)

    def halt_of(self, frame: int) -> Halt | None:
        """Return the halt of a frame, None if the frame is not halted."""
        return next((halt for halt in self.halts if halt.frame == frame), None)

    def halt(self, number: int) -> Halt | None:
        """Return the halt with a number, None if its line has continued."""
        return next((halt for halt in self.halts if halt.number == number), None)

    def forget(self, frame: int) -> DebugPlan:
        """Return the plan without the halts and requested stops of a frame."""
        ends = (place.frame for place in self.destinations)
        if self.halt_of(frame) is None and frame not in (*self.stepping, *self.entering, *ends):
            return self
        return replace(
            self,
            halts=tuple(halt for halt in self.halts if halt.frame != frame),
            stepping=_without(self.stepping, frame),
            entering=_without(self.entering, frame),
            destinations=tuple(place for place in self.destinations if place.frame != frame),
        )

    def arrive(self, frame: int, state: str, around: Collection[int]) -> DebugPlan:
        """Return the plan after a line has reached the end of its step or of its *Run to*.

        ``around``: the frame and the owners of the groups around it. A step into a state ends here,
        too, whether its group was opened or not.
        """
        rest = tuple(
            place
            for place in self.destinations
            if place.state != state or place.frame not in around
        )
        stepping, entering = _without(self.stepping, frame), _without(self.entering, frame)
        return replace(self, stepping=stepping, entering=entering, destinations=rest)

    def step_outwards(self, frame: int, owner: int, depth: int) -> DebugPlan:
        """Pass the requested stop of a line that ended in a group to the owner of the group.

        ``depth``: the number of Parallel and Map states around the line.
        """
        plan = self
        if frame in self.stepping:
            others = _without(_without(self.stepping, frame), owner)
            plan = replace(plan, stepping=(*others, owner))
        if self.destinations:
            moved = (_outwards(place, frame, owner, depth) for place in self.destinations)
            plan = replace(plan, destinations=tuple(moved))
        return plan

    def open_group(self, owner: int, children: int) -> DebugPlan:
        """Make a line that steps into a group without children stop at its next state."""
        if children or owner not in self.entering:
            return self
        entering = _without(self.entering, owner)
        return replace(self, entering=entering, stepping=(*self.stepping, owner))

    def begin_child(self, owner: int, child: int) -> DebugPlan:
        """Make a new branch or iteration stop at its first state if its owner is stepped into."""
        if owner not in self.entering:
            return self
        return replace(self, stepping=(*self.stepping, child))

    def at_rest(self) -> DebugPlan:
        """Return the plan to keep for a redrive after the end: the breakpoints alone."""
        return replace(self, halts=(), stepping=(), entering=(), destinations=())


def _without(frames: tuple[int, ...], frame: int) -> tuple[int, ...]:
    return tuple(number for number in frames if number != frame)


def _outwards(place: LineDestination, frame: int, owner: int, depth: int) -> LineDestination:
    """Return the destination for the owner of the ended line ``frame``, else unchanged."""
    if place.frame != frame or depth <= place.depth:
        return place
    return replace(place, frame=owner)


# -- reading ---------------------------------------------------------------------------------------


def read_breakpoints(text: str, machine: Machine) -> tuple[Breakpoint, ...]:
    """Parse breakpoints from a JSON array of objects; raise ``BreakpointError`` for invalid ones.

    Each object has a ``state`` and may have ``when``, ``condition`` and ``hits``.
    """
    try:
        entries = jsontext.loads(text, unique=True)
    except JsonTextError as error:
        raise BreakpointError(f"breakpoints: got no JSON ({error}), wanted an array") from None
    if not isinstance(entries, list):
        raise BreakpointError(f"breakpoints: got {type(entries).__name__}, wanted an array")
    return check_breakpoints(
        (_read_entry(entry, f"breakpoints[{index}]") for index, entry in enumerate(entries)),
        machine,
    )


def check_breakpoints(
    breakpoints: Iterable[Breakpoint], machine: Machine
) -> tuple[Breakpoint, ...]:
    """Return the distinct breakpoints; raise ``BreakpointError`` for one that can never stop."""
    places = tuple(dict.fromkeys(breakpoints))
    if len(places) > MOST_BREAKPOINTS:
        problem = f"breakpoints: got {len(places)}, wanted at most {MOST_BREAKPOINTS}"
        raise BreakpointError(problem)
    states = dict(own_states(machine))
    for place in places:
        _check_state(place, states)
        _check_condition(place)
        if not 1 <= place.hits <= _MOST_HITS:
            where = f"the breakpoint at {place.state}, hits"
            raise BreakpointError(f"{where}: got {place.hits}, wanted 1 to {_MOST_HITS:,}")
    return places


def breakpoints_text(breakpoints: Iterable[Breakpoint]) -> str:
    """Return breakpoints as JSON text for ``read_breakpoints``."""
    entries = []
    for place in breakpoints:
        entry: dict[str, Any] = {"state": place.state, "when": str(place.when)}
        if place.condition:
            entry["condition"] = place.condition
        if place.hits > 1:
            entry["hits"] = place.hits
        entries.append(entry)
    return jsontext.dumps(entries)


def own_states(machine: Machine) -> Iterator[tuple[str, State]]:
    """Yield name and state of each state that runs in the execution itself.

    The states inside a distributed Map run in child executions.
    """
    blocks = [machine.block]
    while blocks:
        block = blocks.pop()
        for name, state in block.states.items():
            yield name, state
            blocks.extend(inner_blocks(state))


def inner_blocks(state: Any) -> Iterable[Block]:
    """Return the branches or item processor of a state that run in the same execution."""
    if isinstance(state, Map):
        return () if state.distributed is not None else (state.processor,)
    return getattr(state, "branches", ())


def _read_entry(entry: Any, where: str) -> Breakpoint:
    if not isinstance(entry, dict) or not isinstance(entry.get("state"), str):
        raise BreakpointError(f"{where}.state: got {jsontext.dumps(entry)}, wanted a state's name")
    for name in entry:
        if name not in _FIELDS:
            raise BreakpointError(f"{where}: got {name!r}, wanted {', '.join(_FIELDS)}")
    when, condition = entry.get("when", "before"), entry.get("condition", "")
    hits = entry.get("hits", 1)
    if when not in tuple(BreakTime):
        problem = f"{where}.when: got {jsontext.dumps(when)}, wanted {', '.join(BreakTime)}"
        raise BreakpointError(problem)
    if not isinstance(condition, str):
        raise BreakpointError(f"{where}.condition: got {jsontext.dumps(condition)}, wanted JSONata")
    if not isinstance(hits, int) or isinstance(hits, bool):
        raise BreakpointError(f"{where}.hits: got {jsontext.dumps(hits)}, wanted an integer")
    return Breakpoint(entry["state"], BreakTime(when), without_marks(condition), hits)


def without_marks(condition: str) -> str:
    """Return a condition without surrounding blanks and ``{% %}``."""
    text = condition.strip()
    if text.startswith(OPEN) and text.endswith(CLOSE):
        text = text[len(OPEN) : -len(CLOSE)].strip()
    return text


def _check_state(place: Breakpoint, states: Mapping[str, State]) -> None:
    if place.state not in states:
        raise BreakpointError(
            f"breakpoint: got the state {place.state!r}, wanted one of the state machine's own:"
            f" {', '.join(sorted(states))}"
        )
    if place.when is BreakTime.AFTER and isinstance(states[place.state], Fail):
        problem = (
            f"the breakpoint at {place.state}: got after, wanted before: a Fail never succeeds"
        )
        raise BreakpointError(problem)


def _check_condition(place: Breakpoint) -> None:
    where = f"the breakpoint at {place.state}, condition"
    if len(place.condition) > _LONGEST_CONDITION:
        length = len(place.condition)
        problem = f"{where}: got {length:,} characters, wanted at most {_LONGEST_CONDITION:,}"
        raise BreakpointError(problem)
    if place.condition:
        try:
            compiled_condition(place.condition)
        except JsonataSyntaxError as error:
            problem = f"{where}: got {place.condition!r}, wanted JSONata: {error}"
            raise BreakpointError(problem) from None


@lru_cache(maxsize=256)
def compiled_condition(text: str) -> Any:
    """Return a compiled condition; raise ``JsonataSyntaxError`` for invalid JSONata."""
    return compile_jsonata(f"{OPEN}{text}{CLOSE}", field="Condition")
