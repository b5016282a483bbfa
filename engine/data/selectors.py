"""The selectors of a JSONPath (``.name``, ``[0]``, ``[*]``, ``..``), with Jayway 2.0.0's results.

Names of selectors are those of RFC 9535. Where Jayway differs from the RFC, Jayway wins, because
the service uses it (docs/explanation/fidelity.md).

Each evaluation has a budget of nodes: ``$..*..*..*`` fails its own execution and slows down no
other.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from engine.data.expression import ABSENT, Json

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

MAX_TOUCHED = 1_000_000
"""The maximum number of nodes that one evaluation visits; a 256 KiB payload has at most 131,072."""


class BudgetExceededError(Exception):
    """An evaluation visits more than ``MAX_TOUCHED`` nodes."""


class InnerNamesError(Exception):
    """``['a','b']`` is not the last selector."""


class Budget:
    """The number of nodes that an evaluation may still visit."""

    __slots__ = ("left",)

    def __init__(self) -> None:
        """Start with ``MAX_TOUCHED`` nodes."""
        self.left = MAX_TOUCHED

    def spend(self, amount: int) -> None:
        """Subtract nodes; raise ``BudgetExceededError`` below 0."""
        self.left -= amount
        if self.left < 0:
            raise BudgetExceededError


class FilterTest(Protocol):
    """A compiled filter."""

    def holds(self, node: Json, root: Json, budget: Budget) -> bool:
        """Return whether the node passes the filter."""
        ...


@dataclass(frozen=True, slots=True)
class NameSelector:
    """``.name`` or ``['name']``."""

    name: str

    def __str__(self) -> str:
        return "['{}']".format(self.name.replace("\\", "\\\\").replace("'", "\\'"))


@dataclass(frozen=True, slots=True)
class IndexSelector:
    """``[0]`` or ``[-1]``; a negative index lies beyond the array."""

    index: int

    def __str__(self) -> str:
        return f"[{self.index}]"


@dataclass(frozen=True, slots=True)
class FromEndSelector:
    """``[(@.length-1)]``: an index counted from the end."""

    distance: int

    def __str__(self) -> str:
        return f"[(@.length-{self.distance})]"


@dataclass(frozen=True, slots=True)
class NamesSelector:
    """``['a','b']``: an object with only these members; allowed as the last selector only."""

    names: tuple[str, ...]

    def __str__(self) -> str:
        return "[" + ", ".join(f"'{name}'" for name in self.names) + "]"


@dataclass(frozen=True, slots=True)
class IndexesSelector:
    """``[0,2]``."""

    indexes: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class SliceSelector:
    """``[1:3]``."""

    start: int | None
    end: int | None
    step: int | None


@dataclass(frozen=True, slots=True)
class WildcardSelector:
    """``.*`` or ``[*]``."""


@dataclass(frozen=True, slots=True)
class FilterSelector:
    """``[?(...)]``."""

    test: FilterTest


@dataclass(frozen=True, slots=True)
class DescendantSelector:
    """``..`` and the selector that is applied at every level."""

    target: Selector


Selector = (
    NameSelector
    | IndexSelector
    | FromEndSelector
    | NamesSelector
    | IndexesSelector
    | SliceSelector
    | WildcardSelector
    | FilterSelector
    | DescendantSelector
)


def split_definite(
    selectors: tuple[Selector, ...],
) -> tuple[tuple[Selector, ...], tuple[Selector, ...]]:
    """Split the selectors after the last leading definite selector."""
    for number, selector in enumerate(selectors):
        merged = isinstance(selector, NamesSelector) and number == len(selectors) - 1
        if not merged and not isinstance(selector, NameSelector | IndexSelector | FromEndSelector):
            return selectors[:number], selectors[number:]
    return selectors, ()


def select_definite(selectors: Sequence[Selector], value: Json, beyond: Json = None) -> Json:
    """Return the value of a definite path.

    ``ABSENT`` if a member is missing. An index beyond the array, on either side, gives ``beyond``:
    Jackson's tree has a null there, and so the service yields null.
    """
    for selector in selectors:
        if isinstance(selector, NameSelector):
            if not isinstance(value, dict) or selector.name not in value:
                return ABSENT
            value = value[selector.name]
        elif isinstance(selector, IndexSelector | FromEndSelector):
            if not isinstance(value, list):
                return ABSENT
            index = _index(selector, value)
            value = value[index] if 0 <= index < len(value) else beyond
        elif isinstance(selector, NamesSelector):
            if not isinstance(value, dict):
                return ABSENT
            value = {name: value[name] for name in selector.names if name in value}
    return value


def _index(selector: IndexSelector | FromEndSelector, value: list[Json]) -> int:
    if isinstance(selector, FromEndSelector):
        return len(value) - selector.distance
    return selector.index


def select_all(
    selectors: Sequence[Selector], start: Json, root: Json, budget: Budget
) -> list[Json]:
    """Return everything the selectors of an indefinite path select, in document order.

    ``root``: what ``$`` means in filters. Raise ``BudgetExceededError`` or ``InnerNamesError``.
    """
    nodes = [start]
    for number, selector in enumerate(selectors, 1):
        selected: list[Json] = []
        last = number == len(selectors)
        for node in nodes:
            before = len(selected)
            selected.extend(_select(selector, node, root, budget, last=last))
            budget.spend(len(selected) - before + 1)
        nodes = selected
    return nodes


def _select(
    selector: Selector, node: Json, root: Json, budget: Budget, *, last: bool
) -> Iterable[Json]:
    match selector:
        case NameSelector(name):
            return [node[name]] if isinstance(node, dict) and name in node else []
        case NamesSelector(names):
            if not last:
                raise InnerNamesError
            return _select_names(node, names)
        case IndexSelector() | FromEndSelector():
            return (
                _select_indexes(node, (_index(selector, node),)) if isinstance(node, list) else []
            )
        case IndexesSelector(indexes):
            return _select_indexes(node, indexes)
        case SliceSelector():
            return _select_slice(selector, node) if isinstance(node, list) else []
        case WildcardSelector():
            return _children(node)
        case DescendantSelector(target):
            return _select_descendants(target, node, root, budget, last=last)
        case FilterSelector(test):
            return _select_filtered(test, node, root, budget)


def _select_names(node: Json, names: Sequence[str]) -> list[Json]:
    if not isinstance(node, dict):
        return []
    return [{name: node[name] for name in names if name in node}]


def _select_indexes(node: Json, indexes: Sequence[int]) -> list[Json]:
    """Return the elements; beyond an array, on either side, Jackson's tree has null."""
    if not isinstance(node, list):
        return []
    return [node[index] if 0 <= index < len(node) else None for index in indexes]


def _select_slice(selector: SliceSelector, node: list[Json]) -> list[Json]:
    """Return a slice of an array, as Jayway cuts it.

    Jayway counts from the end only where one bound stands alone: ``[-2:]`` are the last two. With
    both bounds it counts up from the start to the end: ``[-1:2]`` is a null, then the first two.
    """
    if selector.step is not None or selector.start is None or selector.end is None:
        return node[selector.start : selector.end : selector.step]
    return _select_indexes(node, range(selector.start, min(selector.end, len(node))))


def _children(node: Json) -> list[Json]:
    if isinstance(node, dict):
        return list(node.values())
    return node if isinstance(node, list) else []


def _select_filtered(test: FilterTest, node: Json, root: Json, budget: Budget) -> list[Json]:
    if not isinstance(node, list | dict):
        return []
    candidates = node if isinstance(node, list) else [node]
    return [candidate for candidate in candidates if test.holds(candidate, root, budget)]


def _select_descendants(
    target: Selector, node: Json, root: Json, budget: Budget, *, last: bool
) -> list[Json]:
    """Select at the node and everywhere below it, parents first, without recursion."""
    selected: list[Json] = []
    stack = [node]
    while stack:
        value = stack.pop()
        if not isinstance(value, list | dict):
            continue
        budget.spend(len(value) + 1)
        if isinstance(target, FilterSelector):
            if target.test.holds(value, root, budget):
                selected += _select_filtered(target.test, value, root, budget)
        elif (
            isinstance(target, IndexSelector | FromEndSelector | IndexesSelector | SliceSelector)
            and not last
        ):
            # Jayway goes on with every element.
            selected += value if isinstance(value, list) else ()
        else:
            selected += _select(target, value, root, budget, last=last)
        stack.extend(reversed(_children(value)))
    return selected
