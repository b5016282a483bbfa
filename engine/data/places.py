"""Which places of a value do some JSONPaths name?  Told on the way down, before a value is seen.

``Path`` asks a value and gives what it found; this is asked of each place while a text is read, so
it holds for texts a value has lost something of: each of several equal keys, for example.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

from engine.data.pathtext import PathSyntaxError, read_steps
from engine.data.steps import Deep, Element, Elements, Member, Several, Step, Wildcard

if TYPE_CHECKING:
    from collections.abc import Iterable

_Left = frozenset[tuple[Step, ...]]


@dataclass(frozen=True, slots=True)
class Places:
    """What is left to go of each path. ``here``: one of them has arrived."""

    left: _Left = frozenset()

    @property
    def here(self) -> bool:
        """Tell whether this place is named."""
        return () in self.left

    def __bool__(self) -> bool:
        """Tell whether this place or one below it may be named."""
        return bool(self.left)

    def into(self, key: str | int) -> Places:
        """Return what is named from a member (its name) or an element (its index) on."""
        return _into(self, key)

    @property
    def names(self) -> tuple[frozenset[str], ...]:
        """Return, of each path, the member names that a value must have to be named by it."""
        return tuple(frozenset(_names(path)) for path in self.left)


def places(paths: Iterable[str]) -> Places:
    """Read paths that begin with ``$``; raise ``PathSyntaxError``.

    They have names, indexes from 0, ``*`` and ``..``: what says where, not what is there.
    """
    return Places(frozenset(_steps(path) for path in paths))


def _steps(path: str) -> tuple[Step, ...]:
    if not path.startswith("$") or path[1:2] not in ("", ".", "["):
        raise PathSyntaxError(f"{path!r}: wanted a path that begins with '$.', '$..' or '$['")
    steps, function = read_steps(path[1:])
    if function or not all(_tells_where(step) for step in steps):
        raise PathSyntaxError(f"{path!r}: wanted names, indexes from 0, '*' and '..' only")
    return steps


def _tells_where(step: Step) -> bool:
    match step:
        case Deep(target):
            return _tells_where(target)
        case Element(index):
            return index >= 0
        case Elements(indexes):
            return min(indexes) >= 0
    return isinstance(step, Member | Several | Wildcard)


@lru_cache(maxsize=8192)
def _into(here: Places, key: str | int) -> Places:
    left: set[tuple[Step, ...]] = set()
    for path in here.left:
        step = path[0] if path else None
        if isinstance(step, Deep):
            left.add(path)
            step = step.target
        if step is not None and _takes(step, key):
            left.add(path[1:])
    return Places(frozenset(left))


def _takes(step: Step, key: str | int) -> bool:
    match step:
        case Member(name):
            return key == name
        case Several(names):
            return key in names
        case Element(index):
            return key == index
        case Elements(indexes):
            return key in indexes
    return isinstance(step, Wildcard)


def _names(path: tuple[Step, ...]) -> Iterable[str]:
    for step in path:
        inner = step.target if isinstance(step, Deep) else step
        if isinstance(inner, Member):
            yield inner.name
