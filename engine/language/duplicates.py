"""Check that no state name occurs twice in one ``States`` object.

JSON parsers keep the last of two equal keys, so the first state would silently disappear.
"""

from __future__ import annotations

import json
from collections import Counter
from typing import TYPE_CHECKING

from engine.language.diagnostics import DiagnosticCode, Problems

if TYPE_CHECKING:
    from collections.abc import Iterator

    from engine.data.expression import Json


class _JsonObject(dict[str, "Json"]):
    """A JSON object that remembers its duplicate keys."""

    repeated: tuple[str, ...] = ()


def check_repeated_names(text: str, problems: Problems) -> None:
    """Report each duplicate state name in a valid JSON text."""
    objects: list[_JsonObject] = []

    def keep(pairs: list[tuple[str, Json]]) -> _JsonObject:
        json_object = _JsonObject(pairs)
        if len(json_object) < len(pairs):
            counts = Counter(key for key, _ in pairs)
            json_object.repeated = tuple(key for key, count in counts.items() if count > 1)
            objects.append(json_object)
        return json_object

    # Numbers stay texts: their values do not matter here, and a long one takes long to read.
    value = json.loads(text, object_pairs_hook=keep, parse_int=str, parse_float=str)
    if not objects:
        return
    for pointer, states in _blocks(value):
        for name in states.repeated:
            message = f"Duplicate State name: {name}"
            problems.newer_error(f"{pointer}/{name}", message, DiagnosticCode.DUPLICATE_STATE)


def _blocks(value: Json) -> Iterator[tuple[str, _JsonObject]]:
    """Yield the pointer and the value of each ``States`` object."""
    waiting = [("", value)]
    while waiting:
        pointer, block = waiting.pop()
        states = block.get("States") if isinstance(block, dict) else None
        if not isinstance(states, _JsonObject):
            continue
        yield f"{pointer}/States", states
        for name, state in states.items():
            inner = state if isinstance(state, dict) else {}
            place = f"{pointer}/States/{name}"
            nested = [(field, inner.get(field)) for field in ("ItemProcessor", "Iterator")]
            branches = inner.get("Branches")
            if isinstance(branches, list):
                nested += [(f"Branches[{index}]", branch) for index, branch in enumerate(branches)]
            waiting += [(f"{place}/{field}", child) for field, child in nested]
