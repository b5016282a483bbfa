"""Find the states that a halted line of control may still enter: the choices of *Run to*."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from engine.errors import matches
from engine.language.model import NO_RECOVERY, Choice, Fail, Parallel, Succeed
from engine.runtime.breakpoints import BreakTime, inner_blocks

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from engine.language.model import Block, Machine, Recovery, State
    from engine.runtime.breakpoints import Halt
    from engine.runtime.run import Frame


def states_ahead(machine: Machine, frame: Frame, halt: Halt) -> dict[str, int]:
    """Return the states that a halted line may still enter, each with a depth.

    The depth is the number of Parallel and Map states around both the line and the state. Only
    transitions count, not data: each rule of a Choice may hold, and each state may fail. The
    current state is included only if the line may enter it again; a retry does not enter it.
    """
    blocks = [machine.block]
    for name, index in frame.path:
        owner: Any = blocks[-1].states[name]
        blocks.append(owner.branches[index] if isinstance(owner, Parallel) else owner.processor)
    depths: dict[str, int] = {}
    names, inner, may_succeed = _out_of_halt(blocks[-1].states[frame.state], halt)
    for depth in range(len(frame.path), -1, -1):
        block = blocks[depth]
        level = _reachable(block, names)
        for name in (*level, *_names_in(inner), *_inside(block, level)):
            depths.setdefault(name, depth)
        if depth:
            owner = blocks[depth - 1].states[frame.path[depth - 1][0]]
            inner = inner_blocks(owner) if _recovery(owner).retry else ()
            ends_well = any(_may_end_well(block.states[name]) for name in level)
            may_succeed = bool(may_succeed or ends_well or inner)  # a retry may succeed
            names = {catcher.next for catcher in _recovery(owner).catch}
            names.update(_following(owner) if may_succeed else ())
            may_succeed = may_succeed and _may_end_well(owner)
    return depths


def _out_of_halt(state: State, halt: Halt) -> tuple[set[str], Iterable[Block], bool]:
    """Return the next states, the blocks to enter, and whether the line may end well."""
    recovery = _recovery(state)
    catches = {catcher.next for catcher in recovery.catch}
    match halt.when:
        case BreakTime.AFTER:
            return (set(), (), True) if halt.following is None else ({halt.following}, (), False)
        case BreakTime.ERROR:
            if halt.state != state.name:  # its own Retriers and Catchers have been asked
                return set(), (), False
            if not any(_takes(each.error_equals, halt) for each in recovery.retry):
                catcher = next((c for c in recovery.catch if _takes(c.error_equals, halt)), None)
                return {catcher.next} if catcher else set(), (), False
    return {*_following(state), *catches}, inner_blocks(state), _may_end_well(state)


def _takes(names: tuple[str, ...], halt: Halt) -> bool:
    return matches(names, halt.error, of_result=halt.of_result)


def _recovery(state: State) -> Recovery:
    return getattr(state, "recovery", NO_RECOVERY)


def _following(state: State) -> Iterator[str]:
    """Yield the states that follow without an error."""
    if isinstance(state, Choice):
        yield from (rule.next for rule in state.rules)
        following = state.default
    else:
        following = getattr(state, "next", None)
    if following is not None:
        yield following


def _may_end_well(state: State) -> bool:
    """Return whether a line may end at a state without an error."""
    if isinstance(state, Choice | Fail):
        return False
    return isinstance(state, Succeed) or getattr(state, "next", None) is None


def _reachable(block: Block, names: Iterable[str]) -> set[str]:
    """Return the states of a block reachable from some states, with those states."""
    reached: set[str] = set()
    waiting = list(names)
    while waiting:
        name = waiting.pop()
        if name not in reached:
            reached.add(name)
            state = block.states[name]
            waiting += [*_following(state), *(each.next for each in _recovery(state).catch)]
    return reached


def _inside(block: Block, names: Iterable[str]) -> Iterator[str]:
    """Yield the states inside some Parallel and Map states."""
    for name in names:
        yield from _names_in(inner_blocks(block.states[name]))


def _names_in(blocks: Iterable[Block]) -> Iterator[str]:
    for block in blocks:
        yield from block.states
        yield from _inside(block, block.states)
