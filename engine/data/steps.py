"""What does each step of a JSONPath select?  As Jayway's library does over Jackson's tree.

A walk is bounded: every node it touches is taken from a budget, so that ``$..*..*..*`` costs its
own execution an error and nobody anything else.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Protocol

from engine.data.expression import ABSENT, Json
from engine.errors import InterpreterError

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

MAX_TOUCHED = 1_000_000
"""Nodes one evaluation may touch; a 256 KiB payload has at most 131,072."""


class BudgetExceededError(Exception):
    """A path touches more than ``MAX_TOUCHED`` nodes."""


class Budget:
    """What is left to touch in one evaluation."""

    __slots__ = ("left",)

    def __init__(self) -> None:
        """Full."""
        self.left = MAX_TOUCHED

    def spend(self, amount: int) -> None:
        """Take from the budget; raise ``BudgetExceededError`` when nothing is left."""
        self.left -= amount
        if self.left < 0:
            raise BudgetExceededError


class Test(Protocol):
    """A compiled filter."""

    def holds(self, node: Json, root: Json, budget: Budget) -> bool:
        """Tell whether the node passes."""
        ...


@dataclass(frozen=True, slots=True)
class Member:
    """``.name`` or ``['name']``."""

    name: str

    def __str__(self) -> str:
        return "['{}']".format(self.name.replace("\\", "\\\\").replace("'", "\\'"))


@dataclass(frozen=True, slots=True)
class Element:
    """``[0]`` or ``[-1]``."""

    index: int

    def __str__(self) -> str:
        return f"[{self.index}]"


@dataclass(frozen=True, slots=True)
class Several:
    """``['a','b']``: an object with just these members; before other steps, each of them."""

    names: tuple[str, ...]

    def __str__(self) -> str:
        return "[" + ",".join(f"'{name}'" for name in self.names) + "]"


@dataclass(frozen=True, slots=True)
class Elements:
    """``[0,2]``."""

    indexes: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Slice:
    """``[1:3]``."""

    start: int | None
    end: int | None
    step: int | None


@dataclass(frozen=True, slots=True)
class Wildcard:
    """``.*`` or ``[*]``."""


@dataclass(frozen=True, slots=True)
class Filter:
    """``[?(...)]``."""

    test: Test


@dataclass(frozen=True, slots=True)
class Deep:
    """``..`` with the step that is looked for at every level."""

    target: Step


Step = Member | Element | Several | Elements | Slice | Wildcard | Filter | Deep


def split(steps: tuple[Step, ...]) -> tuple[tuple[Step, ...], tuple[Step, ...]]:
    """Return the definite beginning and what follows it.

    Jayway: several members make one object at the end of a path, and several values before it.
    """
    for number, step in enumerate(steps):
        merged = isinstance(step, Several) and number == len(steps) - 1
        if not merged and not isinstance(step, Member | Element):
            return steps[:number], steps[number:]
    return steps, ()


def walk_definite(steps: Sequence[Step], value: Json, beyond: Json = None) -> Json:
    """Return the value a definite path leads to.

    ``ABSENT`` if a member is missing; an index beyond the array gives ``beyond``, null [measured].
    """
    for step in steps:
        if isinstance(step, Member):
            if not isinstance(value, dict) or step.name not in value:
                return ABSENT
            value = value[step.name]
        elif isinstance(step, Element):
            if not isinstance(value, list):
                return ABSENT
            value = value[step.index] if -len(value) <= step.index < len(value) else beyond
        elif isinstance(step, Several):
            if not isinstance(value, dict):
                return ABSENT
            value = {name: value[name] for name in step.names if name in value}
    return value


def walk(steps: Sequence[Step], start: Json, root: Json, budget: Budget) -> list[Json]:
    """Return everything the steps of an indefinite path select, in document order.

    ``root``: what ``$`` means in filters. Raise ``BudgetExceededError``.
    """
    nodes = [start]
    for number, step in enumerate(steps, 1):
        found: list[Json] = []
        last = number == len(steps)
        for node in nodes:
            before = len(found)
            found.extend(_select(step, node, root, budget, last=last))
            budget.spend(len(found) - before + 1)
        nodes = found
    return nodes


def _select(step: Step, node: Json, root: Json, budget: Budget, *, last: bool) -> Iterable[Json]:
    match step:
        case Member(name):
            return [node[name]] if isinstance(node, dict) and name in node else []
        case Several(names):
            return _several(node, names, last=last)
        case Element(index):
            return _elements(node, (index,))
        case Elements(indexes):
            return _elements(node, indexes)
        case Slice():
            return _sliced(step, node) if isinstance(node, list) else []
        case Wildcard():
            return _children(node)
        case Deep(target):
            return _deep(target, node, root, budget, last=last)
        case Filter(test):
            return _filtered(test, node, root, budget)


def _several(node: Json, names: Sequence[str], *, last: bool) -> list[Json]:
    if not isinstance(node, dict):
        return []
    found = {name: node[name] for name in names if name in node}
    return [found] if last else list(found.values())


def _elements(node: Json, indexes: Sequence[int]) -> list[Json]:
    """Jackson's tree has null beyond an array, on either side."""
    if not isinstance(node, list):
        return []
    return [node[index] if -len(node) <= index < len(node) else None for index in indexes]


def _sliced(step: Slice, node: list[Json]) -> list[Json]:
    """Jayway counts from the end only where one bound stands alone; with both it goes from-to."""
    if step.step is not None or step.start is None or step.end is None:
        return node[step.start : step.end : step.step]
    return _elements(node, range(step.start, min(step.end, len(node))))


def _children(node: Json) -> list[Json]:
    if isinstance(node, dict):
        return list(node.values())
    return node if isinstance(node, list) else []


def _filtered(test: Test, node: Json, root: Json, budget: Budget) -> list[Json]:
    if not isinstance(node, list | dict):
        return []
    candidates = node if isinstance(node, list) else [node]
    return [one for one in candidates if test.holds(one, root, budget)]


def _deep(target: Step, node: Json, root: Json, budget: Budget, *, last: bool) -> list[Json]:
    """Select at the node and everywhere below it, parents first, without recursion."""
    found: list[Json] = []
    stack = [node]
    while stack:
        one = stack.pop()
        if not isinstance(one, list | dict):
            continue
        budget.spend(len(one) + 1)
        if isinstance(target, Filter):
            if target.test.holds(one, root, budget):
                found += _filtered(target.test, one, root, budget)
        elif isinstance(target, Element | Elements | Slice) and not last:
            found += one if isinstance(one, list) else ()  # Jayway goes on with every element
        else:
            found += _select(target, one, root, budget, last=last)
        stack.extend(reversed(_children(one)))
    return found


# -- functions at the end of a path ----------------------------------------------------------------


def apply_function(function: str, value: Json) -> Json:
    """Apply a closing function of Jayway's to what the path found; null where it makes no sense."""
    if value is ABSENT:
        return ABSENT
    if function in ("length", "size"):
        return len(value) if isinstance(value, list | dict | str) else None
    if function == "keys":
        return list(value) if isinstance(value, dict) else None
    if not isinstance(value, list) or not value:
        return None
    if function in ("first", "last"):
        return value[0 if function == "first" else -1]
    numbers = [n for n in value if isinstance(n, int | float) and not isinstance(n, bool)]
    return _finite(function, numbers) if numbers else None


def _finite(function: str, numbers: list[float]) -> float:
    """Compute with numbers; raise ``InterpreterError`` beyond a double, which JSON cannot tell."""
    try:
        found: float = _NUMERIC[function](numbers)
        if function in ("min", "max") or abs(found) <= sys.float_info.max:
            return found
    except OverflowError:
        pass
    raise InterpreterError(f"The function '{function}()' of the path leads beyond all numbers.")


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
