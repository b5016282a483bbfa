"""Evaluate the items of a Map state, and its MaxConcurrency."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from engine.data.expression import ROOT, Json
from engine.data.result_types import unexpected_type_error
from engine.errors import InterpreterError, QueryEvaluationError
from engine.language.model import QueryLanguage
from engine.runtime import flow
from engine.runtime.payload import Payload
from engine.runtime.states.numbers import LARGEST, is_whole_number

if TYPE_CHECKING:
    from collections.abc import Iterable

    from engine.language.model import Map
    from engine.runtime.run import Frame
    from engine.runtime.turn import Turn

_DIGITS = re.compile(r"\d{1,400}")  # a few more digits than the largest double has


@dataclass(frozen=True, slots=True)
class DatasetItem:
    """An item of a distributed Map with its key and source, for ``$$.Map.Item``.

    ``key``: the name of the member, for an item of a JSON object. ``source``: where it was read:
    ``STATE_DATA``, or the address of a bucket or file.
    """

    value: Json
    key: str | None = None
    source: str = "STATE_DATA"

    def as_input(self) -> Json:
        """Return the child's input without ItemSelector."""
        return self.value if self.key is None else {"Key": self.key, "Value": self.value}

    def as_context(self, index: int) -> dict[str, Json]:
        """Return ``Map.Item`` of the context object."""
        key = {} if self.key is None else {"Key": self.key}
        return {"Index": index, **key, "Value": self.value, "Source": self.source}


def as_inputs(items: Iterable[Json | DatasetItem]) -> list[Json]:
    """Return the children's inputs without ItemSelector."""
    return [item.as_input() if isinstance(item, DatasetItem) else item for item in items]


def evaluate_concurrency(turn: Turn, frame: Frame, state: Map, value: Json) -> int:
    """Return MaxConcurrency, 0 for no limit; raise unless the value is a number."""
    if state.max_concurrency is None:
        return 0
    limit = state.max_concurrency.evaluate(flow.evaluation_scope(turn, frame, value))
    if isinstance(limit, str) and _DIGITS.fullmatch(limit) and state.max_concurrency_path:
        limit = int(limit)  # AWS takes a number as text from MaxConcurrencyPath
    if is_whole_number(limit) and limit >= 0:
        return min(int(limit), LARGEST)
    if state.max_concurrency_path is None:
        raise unexpected_type_error(state.max_concurrency, "MaxConcurrency", "number", limit)
    text = limit if isinstance(limit, str) else Payload.of(limit).text
    msg = (
        f'The MaxConcurrencyPath field refers to value "{text}" which is not a valid integer: '
        f"{state.max_concurrency_path}"
    )
    raise InterpreterError(msg)


def evaluate_items(turn: Turn, frame: Frame, state: Map, value: Json) -> list[Json]:
    """Return the items; raise unless the field's value is an array.

    A distributed Map accepts an object, too: its members are the items (``DatasetItem``).
    """
    items = state.items.evaluate(flow.evaluation_scope(turn, frame, value))
    if isinstance(items, list):
        return items
    if isinstance(items, dict) and state.distributed is not None:
        return [DatasetItem(inner, key) for key, inner in items.items()]
    if state.language is QueryLanguage.JSONATA and state.items is not ROOT:
        raise unexpected_type_error(state.items, "Items", "array", items)
    msg = f"Map state input must be an array but was: {Payload.of(items).text}"
    if state.language is QueryLanguage.JSONATA:
        raise QueryEvaluationError(msg)
    raise InterpreterError(msg)
