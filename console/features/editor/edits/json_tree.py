"""Parse JSON into a tree that keeps every character, edit the tree, and write it back.

An unedited tree writes exactly its original text: white space, spelling of numbers, escapes,
duplicate keys. New parts are indented like their surroundings. So editing one state changes only
the lines of that state.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from typing import Any

_SPACE = re.compile(r"[ \t\r\n]*")
_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|[^\s\[\]{},:"]+')
_LINE = 88  # characters: an array of plain values that is longer stands in several lines


@dataclass(slots=True)
class JsonScalar:
    """A string, number, boolean or null, with its spelling."""

    text: str


@dataclass(slots=True)
class JsonEntry:
    """A member of an object or an item of an array, with the white space around its parts.

    ``key``: decoded, "" for an item; ``spelled``: as it stands, with its quotes.
    """

    value: JsonScalar | JsonContainer
    lead: str = ""
    key: str = ""
    spelled: str = ""
    colon: str = ": "
    trail: str = ""


@dataclass(slots=True)
class JsonContainer:
    """An object or an array. ``blank``: the white space inside an empty one."""

    is_object: bool
    entries: list[JsonEntry] = field(default_factory=list)
    blank: str = ""

    # -- reading -----------------------------------------------------------------------------------

    def find(self, key: str) -> JsonEntry | None:
        """Return the member with a key; of duplicates the last one, which is in effect."""
        return next((entry for entry in reversed(self.entries) if entry.key == key), None)

    def child(self, key: str) -> JsonContainer | None:
        """Return the object or array under a key, None if there is none."""
        entry = self.find(key)
        return entry.value if entry and isinstance(entry.value, JsonContainer) else None

    def items(self) -> list[JsonContainer]:
        """Return the objects and arrays in this array."""
        return [entry.value for entry in self.entries if isinstance(entry.value, JsonContainer)]

    def value(self, key: str) -> Any:
        """Return the Python value under a key, None if there is none."""
        entry = self.find(key)
        return None if entry is None else json.loads(write_tree(entry.value))

    def text(self, key: str) -> str:
        """Return the string under a key, "" if there is none."""
        value = self.value(key)
        return value if isinstance(value, str) else ""

    @property
    def inline(self) -> bool:
        """Return whether all entries are on one line."""
        return bool(self.entries) and "\n" not in self.entries[0].lead

    @property
    def indent(self) -> str:
        """Return the indentation of the entries, "" if they are on one line."""
        return self.entries[0].lead.rpartition("\n")[2] if self.entries else ""

    # -- changing ----------------------------------------------------------------------------------

    def put(self, key: str, value: Any, *, at: int | None = None, outer: str = "") -> None:
        """Set a member; an equal value keeps its spelling.

        ``at``: the index of a new member, None for the end; ``outer``: the indentation of the
        closing line, for an empty container.
        """
        entry = self.find(key)
        if entry is not None:
            entry.value = changed_value(entry.value, value, entry.lead.rpartition("\n")[2])
            return
        entry = JsonEntry(JsonScalar("null"), key=key, spelled=_spelled(key))
        self.insert(entry, at, outer)
        entry.value = fresh_value(value, entry.lead.rpartition("\n")[2], inline=self.inline)

    def append(self, value: Any, outer: str = "") -> None:
        """Add an item to the end of an array."""
        entry = JsonEntry(JsonScalar("null"))
        self.insert(entry, None, outer)
        entry.value = fresh_value(value, entry.lead.rpartition("\n")[2], inline=self.inline)

    def insert(self, entry: JsonEntry, at: int | None, outer: str = "") -> None:
        """Insert an entry, with the white space of its neighbours."""
        if not self.entries:
            entry.lead, entry.trail = f"\n{outer}  ", f"\n{outer}"
            self.entries.append(entry)
            return
        place = len(self.entries) if at is None else at
        sample = self.entries[min(place, len(self.entries)) - 1 if place else 0]
        colons = [other.colon for other in self.entries]
        entry.lead, entry.colon, entry.trail = sample.lead, colons[0], ""
        if place == 0 and self.inline and len(self.entries) > 0:
            self.entries[0].lead = self.entries[0].lead or " "
        if place == len(self.entries):
            last = self.entries[-1]
            entry.trail, last.trail = last.trail, ""
            if self.inline:
                entry.lead = " "
        self.entries.insert(place, entry)

    def remove(self, entry: JsonEntry) -> None:
        """Remove an entry; the white space before the closing bracket stays."""
        place = next(at for at, other in enumerate(self.entries) if other is entry)
        del self.entries[place]
        if not self.entries:
            return
        if place == len(self.entries):
            self.entries[-1].trail = entry.trail
        elif place == 0 and self.inline:
            self.entries[0].lead = entry.lead

    def drop(self, key: str) -> None:
        """Remove all members with a key."""
        for entry in [other for other in self.entries if other.key == key]:
            self.remove(entry)


def changed_value(
    node: JsonScalar | JsonContainer, value: Any, indent: str
) -> JsonScalar | JsonContainer:
    """Return a tree with a new value; equal parts of the old tree keep their text.

    ``indent``: the indentation of the line in which a new value begins.
    """
    if _same(node, value):
        return node
    if isinstance(node, JsonContainer) and node.entries and value:
        if node.is_object and isinstance(value, dict):
            return _changed_object(node, value)
        if not node.is_object and isinstance(value, list):
            return _changed_array(node, value)
    return fresh_value(value, indent)


def _changed_object(node: JsonContainer, value: dict[str, Any]) -> JsonContainer:
    entries = [entry for entry in node.entries if entry.key in value]
    if not entries:
        return as_container(fresh_value(value, node.indent[:-2]))
    for entry in [entry for entry in node.entries if entry.key not in value]:
        node.remove(entry)
    place = 0
    for key, part in value.items():
        node.put(key, part, at=place)
        place = 1 + next(at for at, entry in enumerate(node.entries) if entry.key == key)
    return node


def _changed_array(node: JsonContainer, value: list[Any]) -> JsonContainer:
    """Replace the items between the unchanged ones at the beginning and the end."""
    most = min(len(node.entries), len(value))
    same = [_same(entry.value, part) for entry, part in zip(node.entries, value, strict=False)]
    first = same.index(False) if False in same else most
    last = 0
    while last < most - first and _same(node.entries[-1 - last].value, value[-1 - last]):
        last += 1
    changed = value[first : len(value) - last]
    for entry in node.entries[first + len(changed) : len(node.entries) - last]:
        node.remove(entry)
    for place, part in enumerate(changed, start=first):
        if place >= len(node.entries) - last:
            node.insert(JsonEntry(JsonScalar("null")), place)
        entry = node.entries[place]
        entry.value = changed_value(entry.value, part, entry.lead.rpartition("\n")[2])
    return node


def rename_key(entry: JsonEntry, key: str) -> None:
    """Change the key of a member."""
    entry.key, entry.spelled = key, _spelled(key)


def _spelled(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


def _same(node: JsonScalar | JsonContainer, value: Any) -> bool:
    content = json.loads(write_tree(node))
    return bool(content == value and isinstance(content, bool) == isinstance(value, bool))


# -- text to tree and back -------------------------------------------------------------------------


def read_tree(text: str) -> JsonScalar | JsonContainer:
    """Return the tree of a valid JSON text, without surrounding white space."""
    return _read(text, _skip(text, 0))[0]


def _skip(text: str, at: int) -> int:
    match = _SPACE.match(text, at)
    return match.end() if match else at


def _token(text: str, at: int) -> re.Match[str]:
    match = _TOKEN.match(text, at)
    if match is None:
        msg = f"no JSON at {at}"
        raise ValueError(msg)
    return match


def _read(text: str, at: int) -> tuple[JsonScalar | JsonContainer, int]:
    if text[at] not in "{[":
        token = _token(text, at)
        return JsonScalar(token[0]), token.end()
    container = JsonContainer(text[at] == "{")
    end = _skip(text, at + 1)
    if text[end] in "}]":
        container.blank = text[at + 1 : end]
        return container, end + 1
    while text[at] not in "}]":
        entry, at = _read_entry(text, at + 1, is_object=container.is_object)
        container.entries.append(entry)
    return container, at + 1


def _read_entry(text: str, at: int, *, is_object: bool) -> tuple[JsonEntry, int]:
    start = _skip(text, at)
    entry = JsonEntry(JsonScalar(""), lead=text[at:start])
    if is_object:
        key = _token(text, start)
        start = _skip(text, _skip(text, key.end()) + 1)
        entry.spelled, entry.key = key[0], json.loads(key[0])
        entry.colon = text[key.end() : start]
    entry.value, end = _read(text, start)
    after = _skip(text, end)
    entry.trail = text[end:after]
    return entry, after


def write_tree(node: JsonScalar | JsonContainer) -> str:
    """Return the text of a tree."""
    if isinstance(node, JsonScalar):
        return node.text
    opening, closing = ("{", "}") if node.is_object else ("[", "]")
    if not node.entries:
        return f"{opening}{node.blank}{closing}"
    inner = ",".join(
        f"{entry.lead}{entry.spelled}{entry.colon if node.is_object else ''}"
        f"{write_tree(entry.value)}{entry.trail}"
        for entry in node.entries
    )
    return f"{opening}{inner}{closing}"


def as_container(node: JsonScalar | JsonContainer) -> JsonContainer:
    """Return an object or array; raise ``TypeError`` for a plain value."""
    if isinstance(node, JsonScalar):
        msg = f"a plain value: {node.text[:40]}"
        raise TypeError(msg)
    return node


def fresh_value(
    value: Any, indent: str = "", *, inline: bool = False
) -> JsonScalar | JsonContainer:
    """Return the tree of a Python value with the usual layout."""
    node = read_tree(json.dumps(value, ensure_ascii=False))
    if not inline:
        lay_out(node, indent)
    return node


def lay_out(node: JsonScalar | JsonContainer, indent: str = "", step: str = "  ") -> None:
    """Set the white space of a tree: one entry per line, but short plain arrays on one line."""
    if isinstance(node, JsonScalar):
        return
    node.blank = ""
    plain = all(isinstance(entry.value, JsonScalar) for entry in node.entries)
    short = sum(len(write_tree(entry.value)) + 2 for entry in node.entries) + len(indent) <= _LINE
    inline = not node.is_object and plain and short
    for place, entry in enumerate(node.entries):
        last = place == len(node.entries) - 1
        entry.colon = ": "
        entry.lead = (" " if place else "") if inline else f"\n{indent}{step}"
        entry.trail = f"\n{indent}" if last and not inline else ""
        lay_out(entry.value, indent + step, step)


def move_indent(node: JsonContainer, before: str, after: str) -> JsonContainer:
    """Return a tree with the indentation ``before`` of its lines replaced by ``after``."""
    text = write_tree(node).replace(f"\n{before}", f"\n{after}")
    return as_container(read_tree(text))


def format_text(text: str) -> str:
    """Return a JSON text with one entry per line; only white space changes."""
    node = read_tree(text)
    lay_out(node)
    return write_tree(node)
