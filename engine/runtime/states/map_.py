"""Map: the processor runs once for each item."""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.data.expression import ROOT, Json, Scope
from engine.errors import InterpreterError, QueryEvaluationError
from engine.language.model import QueryLanguage
from engine.runtime import flow, groups
from engine.runtime.payload import Payload, limited
from engine.runtime.states.numbers import unexpected_type, whole_number

if TYPE_CHECKING:
    from engine.language.model import Map
    from engine.runtime.run import Frame
    from engine.runtime.turn import Turn


def enter(turn: Turn, frame: Frame, state: Map) -> None:
    """Open the group of iterations."""
    if state.distributed is not None:
        msg = "A distributed Map cannot run here yet: only Maps with an INLINE processor do."
        raise InterpreterError(msg)
    payload = flow.selected(turn, frame, state.data)
    limit = _concurrency(turn, frame, state, payload.value)
    groups.open_map(turn, frame, _items(turn, frame, state, payload.value), limit)


def _concurrency(turn: Turn, frame: Frame, state: Map, value: Json) -> int:
    if state.max_concurrency is None:
        return 0
    limit = state.max_concurrency.evaluate(flow.scope(turn, frame, value))
    if isinstance(limit, str) and limit.isdecimal() and state.max_concurrency_path is not None:
        limit = int(limit)  # a number as text is taken [recorded]
    if whole_number(limit) and limit >= 0:
        return int(limit)
    if state.max_concurrency_path is None:
        raise unexpected_type(state.max_concurrency, "MaxConcurrency", "number", limit)
    shown = limit if isinstance(limit, str) else Payload.of(limit).text
    msg = (
        f'The MaxConcurrencyPath field refers to value "{shown}" which is not a valid integer: '
        f"{state.max_concurrency_path}"
    )
    raise InterpreterError(msg)


def _items(turn: Turn, frame: Frame, state: Map, value: Json) -> list[Json]:
    items = state.items.evaluate(flow.scope(turn, frame, value))
    if isinstance(items, list):
        return items
    if state.language is QueryLanguage.JSONATA and state.items is not ROOT:
        raise unexpected_type(state.items, "Items", "array", items)
    msg = f"Map state input must be an array but was: {Payload.of(items).text}"
    if state.language is QueryLanguage.JSONATA:
        raise QueryEvaluationError(msg)
    raise InterpreterError(msg)


def item_input(turn: Turn, frame: Frame, owner: Frame, state: Map) -> Payload:
    """Return the input of the iteration ``frame``: its item, or what ItemSelector makes of it.

    ItemSelector sees what the Map state sees, and the item in the context object.
    """
    item = turn.item(turn.groups[frame.group], frame.index)
    if state.selector is None:
        return Payload.of(item)
    seen = Scope(
        input=flow.selected(turn, owner, state.data).value,
        context=lambda: (
            turn.context(owner) | {"Map": {"Item": {"Index": frame.index, "Value": item}}}
        ),
        variables=turn.variables.visible(owner),
        rng=turn.rng,
    )
    return limited(Payload.of(state.selector.evaluate(seen)), state.name)
