"""Match many JSONPaths while a JSON text is read, for example to mask secrets.

A ``Path`` selects from a parsed value. A ``PathSet`` is asked at each place of a text instead, so
it also covers data that parsing drops, such as the first of two equal keys of an object.

Start with ``compile_path_set(paths)``, go down with ``child(key)``, and ask ``matches``::

    >>> paths = compile_path_set(["$.card.number"])
    >>> paths.child("card").child("number").matches
    True
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

from engine.data.path_parser import read_selectors
from engine.data.path_syntax import PathSyntaxError
from engine.data.selectors import (
    DescendantSelector,
    IndexesSelector,
    IndexSelector,
    NameSelector,
    NamesSelector,
    Selector,
    WildcardSelector,
)

if TYPE_CHECKING:
    from collections.abc import Iterable

_Remaining = frozenset[tuple[Selector, ...]]


@dataclass(frozen=True, slots=True)
class PathSet:
    """A set of paths, relative to a place in a value. ``remaining``: the selectors still ahead.

    An empty tuple of selectors means that the path ends at this place.
    """

    remaining: _Remaining = frozenset()

    @property
    def matches(self) -> bool:
        """Return whether one of the paths ends at this place."""
        return () in self.remaining

    def __bool__(self) -> bool:
        """Return whether a path ends at this place or may end below it."""
        return bool(self.remaining)

    def child(self, key: str | int) -> PathSet:
        """Return the paths relative to a member (by name) or an element (by index)."""
        return _child(self, key)

    @property
    def names(self) -> tuple[frozenset[str], ...]:
        """Return for each path the member names that a matching value contains."""
        return tuple(frozenset(_required_names(path)) for path in self.remaining)


def compile_path_set(paths: Iterable[str]) -> PathSet:
    """Compile paths that begin with ``$``; raise ``PathSyntaxError``.

    A path may have names, indexes from 0, ``*`` and ``..``. It may not have filters, slices or
    indexes from the end: these depend on the value, which is not known yet.
    """
    return PathSet(frozenset(_read_path(path) for path in paths))


def _read_path(path: str) -> tuple[Selector, ...]:
    if not path.startswith("$") or path[1:2] not in ("", ".", "["):
        raise PathSyntaxError(f"{path!r}: wanted a path that begins with '$.', '$..' or '$['")
    selectors = read_selectors(path[1:])
    if not all(_is_static(selector) for selector in selectors):
        raise PathSyntaxError(f"{path!r}: wanted names, indexes from 0, '*' and '..' only")
    return selectors


def _is_static(selector: Selector) -> bool:
    match selector:
        case DescendantSelector(target):
            return _is_static(target)
        case IndexSelector(index):
            return index >= 0
        case IndexesSelector(indexes):
            return min(indexes) >= 0
        case NameSelector(name):
            return not name.endswith("()")
    return isinstance(selector, NamesSelector | WildcardSelector)


@lru_cache(maxsize=8192)
def _child(parent: PathSet, key: str | int) -> PathSet:
    remaining: set[tuple[Selector, ...]] = set()
    for path in parent.remaining:
        selector = path[0] if path else None
        if isinstance(selector, DescendantSelector):
            remaining.add(path)
            selector = selector.target
        if selector is not None and _selects(selector, key):
            remaining.add(path[1:])
    return PathSet(frozenset(remaining))


def _selects(selector: Selector, key: str | int) -> bool:
    match selector:
        case NameSelector(name):
            return key == name
        case NamesSelector(names):
            return key in names
        case IndexSelector(index):
            return key == index
        case IndexesSelector(indexes):
            return key in indexes
    return isinstance(selector, WildcardSelector)


def _required_names(path: tuple[Selector, ...]) -> Iterable[str]:
    for selector in path:
        inner = selector.target if isinstance(selector, DescendantSelector) else selector
        if isinstance(inner, NameSelector):
            yield inner.name
