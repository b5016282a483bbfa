"""Mask the payload values of an execution at the paths that its project hides.

Every value at a masked path is replaced in each payload. The same value is also masked elsewhere in
the execution: under another name, within a sentence, or in JSON text inside a string. Other text
stays unchanged.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

import engine

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

MASK = "(masked)"
WITHIN = 4
"""Hidden values of this length and more are looked for within texts, shorter ones as a whole."""
SHORTEST = 3
"""Values shorter than this are hidden at their places only: "1" is everywhere."""
FEW = 20
MOST = 20_000
"""Up to ``MOST`` hidden values of one execution are looked for elsewhere, ``FEW`` one by one."""
_BEGINS_JSON = tuple('{["-0123456789')


class WrittenNumber(str):
    """A number with its spelling, such as ``1.50``."""

    __slots__ = ()


class Members(list[tuple[str, Any]]):
    """An object's members in order, including duplicates."""


@dataclass(frozen=True)
class Mask:
    """The hidden paths and values. ``values``: strings and numbers found at hidden places."""

    places: engine.PathSet = field(default_factory=engine.PathSet)
    values: frozenset[str] = frozenset()

    def payload(self, text: str, hidden: set[str] | None = None) -> str:
        """Return a masked payload. ``hidden`` collects the values at hidden places."""
        return self._payload(text, self.places, hidden)

    def details(self, text: str, hidden: set[str] | None = None) -> str:
        """Return the masked details of a history event, whose texts may be payloads."""
        if not text or not self._may_hide(text, self.places):
            return text
        parsed = _parse_spelled(text)
        if not isinstance(parsed, Members):
            return self.words(text)
        try:
            masked = self._texts(parsed, hidden)
        except RecursionError:
            return _DEEP
        return text if masked == parsed else _written(masked)

    def event(self, text: str) -> str:
        """Return a masked event of PutEvents: its detail and the whole event are payloads.

        If the event is the input of an execution, it is one payload; a path such as ``$.card``
        therefore applies to the whole event and to its detail. A value hidden at one place is
        hidden everywhere in the same event.
        """
        if not self._may_hide(text, self.places):
            return text
        parsed = _parse_spelled(text)
        if not isinstance(parsed, Members):
            return self.words(text)
        hidden: set[str] = set()
        try:
            masked = self._hidden(parsed, self.places, hidden)
            if isinstance(masked, Members):
                masked = Members(
                    (key, self._hidden(member, self.places, hidden) if key == "detail" else member)
                    for key, member in masked
                )
            everywhere = Mask(values=self.values | hidden - {MASK})
            masked = everywhere._hidden(masked, everywhere.places, None)
            return text if masked == parsed else _written(masked)
        except RecursionError:  # too deep to be searched
            return _DEEP

    def part(self, text: str, path: str) -> str:
        """Return a masked part of a payload. ``path``: its place as ``$.card``, "" for other texts.

        A part that consists of a hidden value is masked even if the value is short.
        """
        places = self.places if path else engine.PathSet()
        for name, quoted, index in _PATH_STEP.findall(path):
            places = places.child(int(index) if index else name or quoted)
        if places.matches or not self.values.isdisjoint(_leaves(_parse_spelled(text))):
            return MASK
        return MASK if text in self.values else self._payload(text, places, None)

    def words(self, text: str) -> str:
        """Return a plain text with hidden values masked."""
        if text in self._wholes:
            return MASK
        pieces, end = [], 0
        for start, stop in _merge_spans(self._spans(text)):
            pieces += [text[end:start], MASK]
            end = stop
        return "".join((*pieces, text[end:])) if pieces else text

    def cut_words(self, text: str, most: int) -> str:
        """Mask a text that was cut after ``most`` characters.

        A hidden value that the cut went through is looked for by its beginning.
        """
        if len(text) >= most:
            ends = (_overlap(text, part) for part in self._parts)
            length = max(ends, default=0)
            text = text[:-length] + MASK if length else text
        return self.words(text)

    def _spans(self, text: str) -> Iterable[tuple[int, int]]:
        """Yield the spans of hidden values in a text, in order."""
        if len(self._parts) <= FEW:
            return sorted(
                (start, start + len(part)) for part in self._parts for start in _places(text, part)
            )
        return (
            (start, start + len(part))
            for start in range(len(text) - WITHIN + 1)
            for part in self._beginnings.get(text[start : start + WITHIN], ())
            if text.startswith(part, start)
        )

    def _payload(self, text: str, places: engine.PathSet, hidden: set[str] | None) -> str:
        if not self._may_hide(text, places):
            return text
        parsed = _parse_spelled(text)
        if parsed is _NO_JSON:
            return MASK if places.matches else self.words(text)
        try:
            masked = self._hidden(parsed, places, hidden)
            return text if masked == parsed else _written(masked)
        except RecursionError:  # too deep to be searched: hide all of it
            return _written(MASK)

    def _hidden(self, value: Any, places: engine.PathSet, hidden: set[str] | None) -> Any:
        """Return a value with the hidden values in it masked."""
        if places.matches:
            if hidden is not None:
                hidden |= _leaves(value)
            return MASK
        if isinstance(value, Members):
            return Members(
                (self.words(key), self._hidden(member, places.child(key), hidden))
                for key, member in value
            )
        if isinstance(value, list):
            if not places:
                return [self._hidden(item, places, hidden) for item in value]
            return [
                self._hidden(item, places.child(index), hidden) for index, item in enumerate(value)
            ]
        if isinstance(value, WrittenNumber):
            return MASK if value in self.values and len(value) >= SHORTEST else value
        return self._text(value, hidden) if isinstance(value, str) else value

    def _text(self, text: str, hidden: set[str] | None) -> str:
        """Return a masked string, which may be a payload itself."""
        if text.lstrip()[:1] in ("{", "["):
            return self._payload(text, self.places, hidden)
        return self.words(text)

    def _texts(self, value: Any, hidden: set[str] | None) -> Any:
        """Return masked event details; no path matches the details' own member names."""
        if isinstance(value, Members):
            return Members(
                (key, (self._variables if key == _ASSIGNED else self._texts)(member, hidden))
                for key, member in value
            )
        if isinstance(value, list):
            return [self._texts(item, hidden) for item in value]
        if isinstance(value, str) and not isinstance(value, WrittenNumber):
            return self.payload(value, hidden)
        return value

    def _variables(self, value: Any, hidden: set[str] | None) -> Any:
        """Return assigned variables: ``$.name`` names the variable ``name``, too."""
        if not isinstance(value, Members):
            return self._texts(value, hidden)
        return Members(
            (name, self._payload(str(text), self.places.child(name), hidden))
            for name, text in value
        )

    def _may_hide(self, text: str, places: engine.PathSet) -> bool:
        """Whether a text may hold a hidden value (fast test); an escape may stand for anything."""
        if places.matches or self._odd or "\\u" in text:
            return bool(places or self.values)
        if any(all(_is_literal(name, text) for name in names) for names in places.names):
            return True
        if len(self._parts) > FEW and any(self._spans(text)):
            return True
        return any(value in text for value in (*self._parts[:FEW], *self._wholes))

    @cached_property
    def _odd(self) -> bool:
        """Whether JSON escapes a part; each level of nested JSON escapes it again."""
        return any(json.dumps(part, ensure_ascii=False)[1:-1] != part for part in self._parts)

    @cached_property
    def _wholes(self) -> frozenset[str]:
        return frozenset(value for value in self.values if SHORTEST <= len(value) < WITHIN)

    @cached_property
    def _parts(self) -> tuple[str, ...]:
        """Return the values to search in texts, plain and JSON-escaped, longest first."""
        long = sorted(
            (value for value in self.values if len(value) >= WITHIN), key=len, reverse=True
        )
        forms = (
            form
            for value in long[:MOST]
            for form in (
                value,
                json.dumps(value, ensure_ascii=False)[1:-1],
                json.dumps(value)[1:-1],
            )
        )
        return tuple(dict.fromkeys(forms))

    @cached_property
    def _beginnings(self) -> dict[str, list[str]]:
        """Return prefix -> parts, to search for many parts at once."""
        by_beginning: dict[str, list[str]] = {}
        for part in self._parts:
            by_beginning.setdefault(part[:WITHIN], []).append(part)
        return by_beginning


OPEN = Mask()
"""Hides nothing."""
_ASSIGNED = "assignedVariables"
_NO_JSON = object()
_PATH_STEP = re.compile(r"\.(\w+)|\['(.*?)'\](?=[.\[]|$)|\[(\d+)\]", re.DOTALL)
"""A step of a path, as a replay writes it in a difference."""
_DEEP = json.dumps({"details": MASK})


def _places(text: str, part: str) -> Iterator[int]:
    start = text.find(part)
    while start >= 0:
        yield start
        start = text.find(part, start + 1)


def _overlap(text: str, part: str) -> int:
    """Return the length of a part's prefix at the end of a text, 0 if it is too short."""
    if part[:WITHIN] not in text:
        return 0
    lengths = range(min(len(text), len(part) - 1), WITHIN - 1, -1)
    return next((length for length in lengths if text.endswith(part[:length])), 0)


def _merge_spans(spans: Iterable[tuple[int, int]]) -> Iterator[tuple[int, int]]:
    """Yield sorted spans, with overlapping ones merged."""
    start = stop = 0
    for next_start, next_stop in spans:
        if next_start >= stop and stop:
            yield start, stop
            start, stop = next_start, next_stop
        else:
            start, stop = (start if stop else next_start), max(stop, next_stop)
    if stop:
        yield start, stop


def _is_literal(name: str, text: str) -> bool:
    """Whether a member's name can appear literally in a text; unusual ones have many spellings."""
    return name in text or not name.replace("-", "_").replace(" ", "_").isidentifier()


def _parse_spelled(text: str) -> Any:
    """Parse JSON with the spelling of numbers and members; return ``_NO_JSON`` if invalid."""
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
        return "{" + ",".join(f"{_written(key)}:{_written(member)}" for key, member in value) + "}"
    if isinstance(value, list):
        return "[" + ",".join(map(_written, value)) + "]"
    return str(value) if isinstance(value, WrittenNumber) else json.dumps(value, ensure_ascii=False)


def _leaves(value: Any) -> set[str]:
    """Return all strings and numbers of a value, also inside JSON texts."""
    leaves: set[str] = set()
    stack = [value]
    while stack:
        node = stack.pop()
        if isinstance(node, Members):
            stack += [inner for _, inner in node]
        elif isinstance(node, list):
            stack += node
        elif isinstance(node, str) and node != MASK:
            leaves.add(str(node))
            inner = _parse_spelled(node) if node.lstrip()[:1] in ("{", "[") else _NO_JSON
            stack += [] if inner is _NO_JSON else [inner]
    return leaves


def fill_mask(text: str, masked: str, original: str) -> str:
    """Return an edited JSON text; values still as in ``masked`` get their ``original`` again."""
    parsed = [_parse_spelled(part) for part in (text, masked, original)]
    return text if _NO_JSON in parsed else _written(_filled(*parsed))


def _filled(value: Any, masked: Any, original: Any) -> Any:
    if value == masked:
        return original
    if isinstance(value, Members) and isinstance(masked, Members):
        originals = {
            key: (masked_member, *original_member)
            for (key, masked_member), original_member in zip(masked, original, strict=True)
        }
        return Members(_member(key, member, originals.get(key)) for key, member in value)
    if isinstance(value, list) and isinstance(masked, list) and not isinstance(value, Members):
        pairs = [*zip(masked, original, strict=True), *[(_NO_JSON, _NO_JSON)] * len(value)]
        return [_filled(item, *pair) for item, pair in zip(value, pairs, strict=False)]
    return value


def _member(key: str, value: Any, original: tuple[Any, str, Any] | None) -> tuple[str, Any]:
    if original is None:
        return key, value
    return original[1], _filled(value, original[0], original[2])
