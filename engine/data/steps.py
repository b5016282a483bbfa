"""What does each step of a JSONPath select?"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from engine.data.expression import ABSENT, Json

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence


@dataclass(frozen=True, slots=True)
class Member:
    """``.name`` or ``['name']``."""

    name: str


@dataclass(frozen=True, slots=True)
class Element:
    """``[0]`` or ``[-1]``."""

    index: int


@dataclass(frozen=True, slots=True)
class Several:
    """``['a','b']``: an object with just these members."""

    names: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Elements:
    """``[0,2]``."""

    indexes: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Slice:
    """``[1:3]``."""

    part: slice


@dataclass(frozen=True, slots=True)
class Wildcard:
    """``.*`` or ``[*]``."""


@dataclass(frozen=True, slots=True)
class Deep:
    """``..``: what follows is looked for at every level."""


@dataclass(frozen=True, slots=True)
class Filter:
    """``[?(...)]``."""

    tests: Any


Step = Member | Element | Several | Elements | Slice | Wildcard | Deep | Filter


def walk_definite(steps: Sequence[Step], value: Json, beyond: Json = None) -> Json:
    """Return the value a definite path leads to.

    ``ABSENT`` if a member is missing; an index beyond the array gives ``beyond``, null [measured].
    """
    for step in steps:
        if isinstance(step, Member):
            if not isinstance(value, dict) or step.name not in value:
                return ABSENT
            value = value[step.name]
        elif isinstance(step, Several):
            if not isinstance(value, dict):
                return ABSENT
            value = {name: value[name] for name in step.names if name in value}
        elif isinstance(step, Element):
            if not isinstance(value, list):
                return ABSENT
            value = value[step.index] if -len(value) <= step.index < len(value) else beyond
    return value


def walk(steps: Sequence[Step], root: Json) -> list[Json]:
    """Return everything an indefinite path selects, in document order."""
    nodes = [root]
    for step in steps:
        nodes = [found for node in nodes for found in _select(step, node, root)]
    return nodes


def _select(step: Step, node: Json, root: Json) -> Iterable[Json]:
    match step:
        case Member(name):
            return [node[name]] if isinstance(node, dict) and name in node else []
        case Several(names):
            return [{n: node[n] for n in names if n in node}] if isinstance(node, dict) else []
        case Element(index):
            return _elements(node, (index,))
        case Elements(indexes):
            return _elements(node, indexes)
        case Slice(part):
            return node[part] if isinstance(node, list) else []
        case Wildcard():
            return _children(node)
        case Deep():
            return _descend(node)
        case Filter(tests):
            candidates = node if isinstance(node, list) else [node]
            return [one for one in candidates if _holds(tests, one, root)]


def _elements(node: Json, indexes: Sequence[int]) -> list[Json]:
    if not isinstance(node, list):
        return []
    return [node[i] for i in indexes if -len(node) <= i < len(node)]


def _children(node: Json) -> list[Json]:
    if isinstance(node, dict):
        return list(node.values())
    return node if isinstance(node, list) else []


def _descend(node: Json) -> list[Json]:
    """Return the node and all below it, parents first, without recursion."""
    found, stack = [], [node]
    while stack:
        one = stack.pop()
        found.append(one)
        stack.extend(reversed(_children(one)))
    return found


def _holds(test: Any, node: Json, root: Json) -> bool:
    return bool(test.holds(node, root))


def apply_function(function: str, value: Json) -> Json:
    """Apply a closing function of Jayway's to what the path found."""
    if value is ABSENT:
        return ABSENT
    if function in ("length", "size"):
        return len(value) if isinstance(value, list | dict | str) else None
    if function == "keys":
        return list(value) if isinstance(value, dict) else None
    if function in ("first", "last"):
        return (value or [None])[0 if function == "first" else -1]
    numbers = [n for n in value if isinstance(n, int | float)] if isinstance(value, list) else []
    return _NUMERIC[function](numbers) if numbers else None


def _mean(numbers: list[float]) -> float:
    return sum(numbers) / len(numbers)


def _deviation(numbers: list[float]) -> float:
    mean = _mean(numbers)
    return float(_mean([(n - mean) ** 2 for n in numbers]) ** 0.5)


_NUMERIC: Final[dict[str, Any]] = {
    "min": min,
    "max": max,
    "sum": sum,
    "avg": _mean,
    "stddev": _deviation,
}
