"""What of a payload may be read?  The texts of an execution, without what its project hides.

A value is hidden at every place that the project's paths name, in every payload on its own. What
was found there is hidden also wherever else it turns up in the same execution: under another name,
within a sentence, within a JSON text inside a text. Everything else keeps its text.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

import engine

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

MASK = "(masked)"
WITHIN = 4
"""From this length on, a hidden value is looked for within texts; one shorter only as a whole."""
SHORTEST = 3
"""Values shorter than this are hidden at their places only: "1" is everywhere."""
FEW = 20
MOST = 20_000
"""How many hidden values of one execution are looked for elsewhere; few are so one by one."""
_BEGINS_JSON = tuple('{["-0123456789')


class WrittenNumber(str):
    """A number as it was written."""

    __slots__ = ()


class Members(list[tuple[str, Any]]):
    """An object's members in their order, duplicates included."""


@dataclass(frozen=True)
class Mask:
    """What is hidden. ``values``: the texts of strings and numbers that hidden places held."""

    places: engine.PathSet = field(default_factory=engine.PathSet)
    values: frozenset[str] = frozenset()

    def payload(self, text: str, found: set[str] | None = None) -> str:
        """Return a payload as it may be read. ``found`` takes what was hidden by its place."""
        return self._payload(text, self.places, found)

    def details(self, text: str, found: set[str] | None = None) -> str:
        """Return the details of an event: an object whose texts are payloads, names and words."""
        if not text or not self._may_hide(text, self.places):
            return text
        parsed = _parsed(text)
        if not isinstance(parsed, Members):
            return self.words(text)
        try:
            shown = self._texts(parsed, found)
        except RecursionError:
            return _DEEP
        return text if shown == parsed else _written(shown)

    def words(self, text: str) -> str:
        """Return a text that is no payload without the values that are hidden."""
        if text in self._wholes:
            return MASK
        shown, end = [], 0
        for start, stop in _merged(self._spans(text)):
            shown += [text[end:start], MASK]
            end = stop
        return "".join((*shown, text[end:])) if shown else text

    def _spans(self, text: str) -> Iterable[tuple[int, int]]:
        """Yield where hidden values stand in a text, from its beginning to its end."""
        if len(self._parts) <= FEW:
            return sorted((at, at + len(one)) for one in self._parts for at in _places(text, one))
        return (
            (at, at + len(one))
            for at in range(len(text) - WITHIN + 1)
            for one in self._beginnings.get(text[at : at + WITHIN], ())
            if text.startswith(one, at)
        )

    def _payload(self, text: str, places: engine.PathSet, found: set[str] | None) -> str:
        if not self._may_hide(text, places):
            return text
        parsed = _parsed(text)
        if parsed is _NO_JSON:
            return MASK if places.matches else self.words(text)
        try:
            shown = self._hidden(parsed, places, found)
            return text if shown == parsed else _written(shown)
        except RecursionError:  # so deep that nobody can tell what is in it
            return _written(MASK)

    def _hidden(self, value: Any, places: engine.PathSet, found: set[str] | None) -> Any:
        """Return a value without what is hidden in it."""
        if places.matches:
            if found is not None:
                found |= _leaves(value)
            return MASK
        if isinstance(value, Members):
            below = ((key, one, places.child(key)) for key, one in value)
            return Members(
                (self.words(key), self._hidden(one, to, found)) for key, one, to in below
            )
        if isinstance(value, list):
            if not places:
                return [self._hidden(one, places, found) for one in value]
            return [self._hidden(one, places.child(at), found) for at, one in enumerate(value)]
        if isinstance(value, WrittenNumber):
            return MASK if value in self.values and len(value) >= SHORTEST else value
        return self._text(value, found) if isinstance(value, str) else value

    def _text(self, text: str, found: set[str] | None) -> str:
        """Return a string, which may be a payload itself."""
        if text.lstrip()[:1] in ("{", "["):
            return self._payload(text, self.places, found)
        return self.words(text)

    def _texts(self, value: Any, found: set[str] | None) -> Any:
        """Return what stands in the details of an event: their own names name no places."""
        if isinstance(value, Members):
            return Members(
                (key, (self._variables if key == _ASSIGNED else self._texts)(one, found))
                for key, one in value
            )
        if isinstance(value, list):
            return [self._texts(one, found) for one in value]
        if isinstance(value, str) and not isinstance(value, WrittenNumber):
            return self.payload(value, found)
        return value

    def _variables(self, value: Any, found: set[str] | None) -> Any:
        """Return assigned variables: ``$.name`` names the variable ``name``, too."""
        if not isinstance(value, Members):
            return self._texts(value, found)
        return Members(
            (name, self._payload(str(text), self.places.child(name), found)) for name, text in value
        )

    def _may_hide(self, text: str, places: engine.PathSet) -> bool:
        """Tell quickly whether there may be something to hide; an escape can stand for anything."""
        if places.matches or self._odd or "\\u" in text:
            return bool(places or self.values)
        if any(all(_plainly(name, text) for name in names) for names in places.names):
            return True
        if len(self._parts) > FEW and any(self._spans(text)):
            return True
        return any(one in text for one in (*self._parts[:FEW], *self._wholes))

    @cached_property
    def _odd(self) -> bool:
        """Tell whether JSON writes a value in another way than it is; each level adds to that."""
        return any(json.dumps(one, ensure_ascii=False)[1:-1] != one for one in self._parts)

    @cached_property
    def _wholes(self) -> frozenset[str]:
        return frozenset(one for one in self.values if SHORTEST <= len(one) < WITHIN)

    @cached_property
    def _parts(self) -> tuple[str, ...]:
        """Return what is looked for within texts, also as a JSON text has it; the longest first."""
        long = sorted((one for one in self.values if len(one) >= WITHIN), key=len, reverse=True)
        forms = (
            form
            for one in long[:MOST]
            for form in (one, json.dumps(one, ensure_ascii=False)[1:-1], json.dumps(one)[1:-1])
        )
        return tuple(dict.fromkeys(forms))

    @cached_property
    def _beginnings(self) -> dict[str, list[str]]:
        """Return what is looked for by how it begins: so many are not looked for one by one."""
        found: dict[str, list[str]] = {}
        for one in self._parts:
            found.setdefault(one[:WITHIN], []).append(one)
        return found


OPEN = Mask()
"""Hides nothing."""
_ASSIGNED = "assignedVariables"
_NO_JSON = object()
_DEEP = json.dumps({"details": MASK})


def _places(text: str, part: str) -> Iterator[int]:
    at = text.find(part)
    while at >= 0:
        yield at
        at = text.find(part, at + 1)


def _merged(spans: Iterable[tuple[int, int]]) -> Iterator[tuple[int, int]]:
    """Yield spans, in order, that do not overlap."""
    start = stop = 0
    for one, other in spans:
        if one >= stop and stop:
            yield start, stop
            start, stop = one, other
        else:
            start, stop = (start if stop else one), max(stop, other)
    if stop:
        yield start, stop


def _plainly(name: str, text: str) -> bool:
    """Tell whether a member's name may stand in a text; an unusual one has many spellings."""
    return name in text or not name.replace("-", "_").replace(" ", "_").isidentifier()


def _parsed(text: str) -> Any:
    """Return the value of a JSON text, with numbers and members as written; else ``_NO_JSON``."""
    if not text.lstrip().startswith(_BEGINS_JSON):
        return _NO_JSON
    try:
        return json.loads(
            text, object_pairs_hook=Members, parse_int=WrittenNumber, parse_float=WrittenNumber
        )
    except (ValueError, RecursionError):
        return _NO_JSON


def _written(value: Any) -> str:
    if isinstance(value, Members):
        return "{" + ",".join(f"{_written(key)}:{_written(one)}" for key, one in value) + "}"
    if isinstance(value, list):
        return "[" + ",".join(map(_written, value)) + "]"
    return str(value) if isinstance(value, WrittenNumber) else json.dumps(value, ensure_ascii=False)


def _leaves(value: Any) -> set[str]:
    """Return the strings and numbers in a value, and in the JSON texts among them."""
    found: set[str] = set()
    stack = [value]
    while stack:
        one = stack.pop()
        if isinstance(one, Members):
            stack += [inner for _, inner in one]
        elif isinstance(one, list):
            stack += one
        elif isinstance(one, str) and one != MASK:
            found.add(str(one))
            inner = _parsed(one) if one.lstrip()[:1] in ("{", "[") else _NO_JSON
            stack += [] if inner is _NO_JSON else [inner]
    return found


def fill_mask(text: str, masked: str, true: str) -> str:
    """Return a JSON text in which what is still as in ``masked`` is as in ``true``."""
    parsed = [_parsed(one) for one in (text, masked, true)]
    return text if _NO_JSON in parsed else _written(_filled(*parsed))


def _filled(value: Any, masked: Any, true: Any) -> Any:
    if value == masked:
        return true
    if isinstance(value, Members) and isinstance(masked, Members):
        known = {key: (one, *truly) for (key, one), truly in zip(masked, true, strict=True)}
        return Members(_member(key, one, known.get(key)) for key, one in value)
    if isinstance(value, list) and isinstance(masked, list) and not isinstance(value, Members):
        pairs = [*zip(masked, true, strict=True), *[(_NO_JSON, _NO_JSON)] * len(value)]
        return [_filled(one, *pair) for one, pair in zip(value, pairs, strict=False)]
    return value


def _member(key: str, value: Any, known: tuple[Any, str, Any] | None) -> tuple[str, Any]:
    return (key, value) if known is None else (known[1], _filled(value, known[0], known[2]))
