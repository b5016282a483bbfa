"""Breakpoints of one execution, and the lines of control that stand at them.

A ``DebugPlan`` is a part of the run: it is stored with the snapshot, and lives and dies with it.
The run of an execution without breakpoints has none, and its text is as it was before there were
any. A line that stands at a breakpoint has a ``Halt`` in the plan and the phase BREAK. It waits for
one of the messages ``Release``, ``AnswerTask``, ``Skip`` and ``FailState``; the other lines go on.
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
    from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

    from engine.language.model import Block, Machine, State

MOST_BREAKPOINTS = 50
"""So many breakpoints an execution may have at most."""
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

    ``condition``: JSONata without marks, over ``$states`` and the variables; "" always holds.
    ``hits``: at how manieth time it stops a line first; it stops each later one, too.
    """

    state: str
    when: BreakTime = BreakTime.BEFORE
    condition: str = ""
    hits: int = 1


class Halt(Struct, frozen=True, gc=False, omit_defaults=True, forbid_unknown_fields=True):
    """A line of control that stands at a breakpoint.

    ``number``: no other halt of the execution has it. ``state``: whose breakpoint it is: that of
    the frame, or with ERROR one around it. ``stepped``: no breakpoint, but a step or a run to the
    state led here. ``entered_after``: the event before ...StateEntered, -1 if a former step wrote
    it. ``problem``: why the condition
    has no value. AFTER has the ``output``, the JSON text of what is ``assigned``, and the
    ``following`` state (None: the line ends). ERROR has the error, as ``StatesError`` has it.
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
    """A state to which a line of control runs, to stop before its work once.

    The ``frame``, or a line within it, stops there. ``depth``: how many Parallel and Map states
    are around both the frame and the state; a frame that ends deeper hands it to its owner.
    """

    frame: int
    state: str
    depth: int = 0


class DebugPlan(Struct, frozen=True, gc=False, omit_defaults=True, forbid_unknown_fields=True):
    """The breakpoints of an execution, and what has come of them.

    ``reached``: how often each breakpoint was reached with its condition true. ``stepping``: the
    frames that stop before the next state that they enter. ``entering``: the frames whose branches
    or iterations stop before their first state. ``destinations``: of lines that run to a state.
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
        """Return a plan that has these breakpoints, and no line of control at them yet."""
        places = tuple(breakpoints)
        return cls(places, (0,) * len(places))

    def with_breakpoints(self, breakpoints: Iterable[Breakpoint]) -> DebugPlan:
        """Return the plan with other breakpoints.

        Lines that stand at one stay there. A breakpoint that remains keeps its count.
        """
        counts = dict(zip(self.breakpoints, self.reached, strict=True))
        places = tuple(breakpoints)
        reached = tuple(counts.get(place, 0) for place in places)
        return replace(self, breakpoints=places, reached=reached)

    def halt_of(self, frame: int) -> Halt | None:
        """Return where a frame stands, None if it stands at no breakpoint."""
        return next((halt for halt in self.halts if halt.frame == frame), None)

    def halt(self, number: int) -> Halt | None:
        """Return the halt of a number, None if that line has gone on."""
        return next((halt for halt in self.halts if halt.number == number), None)

    def forget(self, frame: int) -> DebugPlan:
        """Return the plan without all that it has of a frame."""
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
        """Return the plan once a line has come to where its step, or its run to a state, ends.

        ``around``: the frame and those that own the groups it is in. A step into a state ends
        here, too, whether its group was opened or not.
        """
        rest = tuple(
            place
            for place in self.destinations
            if place.state != state or place.frame not in around
        )
        stepping, entering = _without(self.stepping, frame), _without(self.entering, frame)
        return replace(self, stepping=stepping, entering=entering, destinations=rest)

    def step_outwards(self, frame: int, owner: int, depth: int) -> DebugPlan:
        """Let the owner of a group go on as a line that ends in the group should have.

        ``depth``: how many Parallel and Map states are around the line.
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
        """Let a line that steps into a group without children stop at its next state."""
        if children or owner not in self.entering:
            return self
        entering = _without(self.entering, owner)
        return replace(self, entering=entering, stepping=(*self.stepping, owner))

    def begin_child(self, owner: int, child: int) -> DebugPlan:
        """Let a branch or iteration stop at its first state if its owner is stepped into."""
        if owner not in self.entering:
            return self
        return replace(self, stepping=(*self.stepping, child))

    def at_rest(self) -> DebugPlan:
        """Return what a redrive goes on with, once the execution has ended: the breakpoints."""
        return replace(self, halts=(), stepping=(), entering=(), destinations=())


def _without(frames: tuple[int, ...], frame: int) -> tuple[int, ...]:
    return tuple(number for number in frames if number != frame)


def _outwards(place: LineDestination, frame: int, owner: int, depth: int) -> LineDestination:
    """Return the destination of a line that has ended, for its owner if it may be reached there."""
    if place.frame != frame or depth <= place.depth:
        return place
    return replace(place, frame=owner)


# -- reading ---------------------------------------------------------------------------------------


def read_breakpoints(text: str, machine: Machine) -> tuple[Breakpoint, ...]:
    """Return the breakpoints of a JSON array of objects; raise ``BreakpointError`` for others.

    Each object has a ``state`` and may have ``when``, ``condition`` and ``hits``.
    """
    try:
        entries = jsontext.loads(text)
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
    """Return the breakpoints, each once; raise ``BreakpointError`` for one that never stops."""
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
    """Return the JSON text that ``read_breakpoints`` reads."""
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
    """Yield name and state of all that an execution of the machine enters itself.

    The states of a distributed Map are those of its child executions.
    """
    blocks = [machine.block]
    while blocks:
        block = blocks.pop()
        for name, state in block.states.items():
            yield name, state
            blocks.extend(_inner_blocks(state))


def states_ahead(machine: Machine, path: Sequence[tuple[str, int]]) -> Iterator[tuple[str, int]]:
    """Yield the states that a line of control on this path may come to, each with a depth.

    The depth is how many Parallel and Map states are around both the line and the state. Left out
    are the states of the other branches of a Parallel: their own lines enter them.
    """
    blocks: list[tuple[Block, int, bool]] = [(machine.block, 0, True)]
    while blocks:
        block, depth, is_around = blocks.pop()
        for name, state in block.states.items():
            yield name, depth
            is_on_path = is_around and depth < len(path) and path[depth][0] == name
            for index, inner in enumerate(_inner_blocks(state)):
                if not is_on_path:
                    blocks.append((inner, depth, False))
                elif path[depth][1] == index:
                    blocks.append((inner, depth + 1, True))


def _inner_blocks(state: Any) -> Iterable[Block]:
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
    """Return a condition without blanks around it and without the marks of JSONata."""
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
    """Return a condition, compiled; raise ``JsonataSyntaxError`` if it is none."""
    return compile_jsonata(f"{OPEN}{text}{CLOSE}", field="Condition")
