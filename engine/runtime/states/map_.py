"""The Map state: run the processor for each item, inline or in child executions."""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.data.expression import EvaluationScope
from engine.errors import InterpreterError
from engine.language.model import INLINE_FAULT
from engine.runtime import fault_strikes, flow, groups
from engine.runtime.context import context_object
from engine.runtime.payload import Payload, ensure_within_limit
from engine.runtime.states import distributed, map_items

if TYPE_CHECKING:
    from engine.language.model import Map
    from engine.runtime.run import Frame
    from engine.runtime.turn import Turn


def enter(turn: Turn, frame: Frame, state: Map) -> None:
    """Open the group of iterations, or start a Map Run if the Map is distributed."""
    if state.distributed is not None:
        distributed.enter(turn, frame, state, state.distributed)
        return
    attempt, struck = 0, list[int]()
    if turn.faults is not None:
        attempt, struck = fault_strikes.count_group_attempt(turn, frame)
    if state.unusable:
        raise InterpreterError(INLINE_FAULT)
    payload = flow.apply_input_path(turn, frame, state.data)
    limit = map_items.evaluate_concurrency(turn, frame, state, payload.value)
    items = map_items.evaluate_items(turn, frame, state, payload.value)
    groups.open_map(turn, frame, items, limit)
    if struck:
        fault_strikes.choose_children(turn, turn.frames[frame.id], attempt, struck)


def item_input(turn: Turn, frame: Frame, owner: Frame, state: Map) -> Payload:
    """Return the input of the iteration ``frame``: its item, with ItemSelector applied.

    ``owner``: the frame in the Map. ItemSelector sees the input, the variables and the context
    object of the Map state, and in the latter also the item.
    """
    # It is evaluated when the iteration starts, not when the Map does: with MaxConcurrency 1 and a
    # thousand items, a thousand inputs would be kept for nothing if the first iteration fails.
    item = turn.item(turn.groups[frame.group], frame.index)
    if state.selector is None:
        return Payload.of(item)
    scope = EvaluationScope(
        input=flow.apply_input_path(turn, owner, state.data).value,
        context=lambda: (
            context_object(turn, owner) | {"Map": {"Item": {"Index": frame.index, "Value": item}}}
        ),
        variables=turn.variables.visible(owner),
        rng=turn.rng,
    )
    return ensure_within_limit(Payload.of(state.selector.evaluate(scope)), state.name)
