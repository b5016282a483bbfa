"""Show the text of a definition with its states to jump to, and the difference of two texts."""

from __future__ import annotations

import json
import re
from bisect import bisect_right
from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import TYPE_CHECKING

from django.utils.html import escape
from django.utils.safestring import SafeString, mark_safe

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|[\[\]{},:]|[^\s\[\]{},:"]+')
PAGE_LINES = 5000
_MOST_LINES = 20_000
_CONTEXT = 3

Path = tuple[str | int, ...]


def readable_text(text: str) -> str:
    """Return a definition's text as it was given, indented if it stands in one line."""
    if "\n" in text.strip():
        return text
    try:
        return json.dumps(json.loads(text), indent=2, ensure_ascii=False)
    except ValueError:
        return text


# -- states in the text ----------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class TextPage:
    """A part of a definition's text as HTML, and which of how many it is."""

    html: SafeString
    number: int
    pages: int

    @property
    def previous(self) -> int:
        """Return the page before this one, 0 if there is none."""
        return self.number - 1

    @property
    def next(self) -> int:
        """Return the page after this one, 0 if there is none."""
        return self.number + 1 if self.number < self.pages else 0


def text_page(text: str, ids: Mapping[str, str], number: int = 1, chosen: str = "") -> TextPage:
    """Return a page of ``PAGE_LINES`` lines, with a ``<span id="src-...">`` around each state.

    ``ids``: of the states that are marked, by name; ``number``: from 1, what is beyond is the last;
    ``chosen``: the id of a state, whose page is wanted instead.
    """
    places = [place for place in state_places(text) if place[0] in ids] if ids else []
    starts = [0, *(match.end() for match in re.finditer("\n", text))][::PAGE_LINES]
    at = next((start for name, start, _ in places if ids[name] == chosen), None)
    if at is not None:
        number = bisect_right(starts, at)
    number = min(max(number, 1), len(starts))
    begin, end = starts[number - 1], starts[number] if number < len(starts) else len(text)
    marks: list[tuple[int, int, str]] = []
    for name, start, stop in places:
        if begin <= start < end:
            focus = " autofocus" if ids[name] == chosen else ""
            span = f'<span class="src" id="src-{ids[name]}" tabindex="-1"{focus}>'
            marks += [(start, 1, span), (min(stop, end), 0, "</span>")]
    pieces, place = [], begin
    for start, _, tag in sorted(marks, key=lambda mark: mark[:2]):
        pieces += [escape(text[place:start]), tag]
        place = start
    html = mark_safe("".join([*pieces, escape(text[place:end])]))  # noqa: S308 - escaped above
    return TextPage(html, number, len(starts))


def state_places(text: str) -> Iterator[tuple[str, int, int]]:
    """Yield (name, start of its key, end of its value) of every state of a valid text."""
    for path, start, end in _objects(text):
        if _is_state(path):
            yield str(path[-1]), start, end


def _is_state(path: Path) -> bool:
    """Tell whether a path leads to a state, not to something of the same name in a payload."""
    while len(path) >= 2 and path[-2] == "States":  # noqa: PLR2004 - "States", its name
        path = path[:-2]
        if not path:
            return True
        if path[-1] in ("ItemProcessor", "Iterator"):
            path = path[:-1]
        elif isinstance(path[-1], int) and path[-2:-1] == ("Branches",):
            path = path[:-2]
        else:
            return False
    return False


@dataclass(slots=True)
class _Open:
    """A container that is being read; ``key``: the current one, ``start``: of its owner's key."""

    start: int
    index: int | None
    key: str | None = None
    key_at: int = 0


def _objects(text: str) -> Iterator[tuple[Path, int, int]]:
    """Yield (path, start with its key, end) of every value in braces or brackets."""
    stack: list[_Open] = []
    for match in _TOKEN.finditer(text):
        token = match[0]
        if token in "{[":
            keyed = bool(stack) and stack[-1].key is not None
            start = stack[-1].key_at if keyed else match.start()
            stack.append(_Open(start, 0 if token == "[" else None))
        elif token in "}]":
            done = stack.pop()
            yield _path(stack), done.start, match.end()
        elif token == ",":
            stack[-1].key = None
            if stack[-1].index is not None:
                stack[-1].index += 1
        elif token != ":" and stack and stack[-1].index is None and stack[-1].key is None:
            stack[-1].key, stack[-1].key_at = json.loads(token), match.start()


def _path(stack: list[_Open]) -> Path:
    return tuple(entry.key or "" if entry.index is None else entry.index for entry in stack)


# -- what changed ----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class DiffRow:
    """One line of a comparison. ``sign``: ``+``, ``-``, "" or, where lines are left out, ``…``."""

    sign: str
    before: int | None
    after: int | None
    text: str

    @property
    def kind(self) -> str:
        """Return the class of the row."""
        return {"+": "added", "-": "removed", "…": "gap"}.get(self.sign, "same")


def diff_rows(before: str, after: str) -> list[DiffRow] | None:
    """Compare two texts by lines; [] where they are the same, None where they are too long."""
    old, new = readable_text(before).splitlines(), readable_text(after).splitlines()
    if len(old) + len(new) > _MOST_LINES:
        return None
    rows: list[DiffRow] = []
    for group in SequenceMatcher(None, old, new).get_grouped_opcodes(_CONTEXT):
        if rows or group[0][1] > 0:
            rows.append(DiffRow("…", None, None, ""))
        for kind, a, a_end, b, b_end in group:
            rows += _rows(kind, old[a:a_end], new[b:b_end], a + 1, b + 1)
    return rows


def _rows(kind: str, old: list[str], new: list[str], a: int, b: int) -> list[DiffRow]:
    if kind == "equal":
        return [DiffRow("", a + place, b + place, text) for place, text in enumerate(old)]
    removed = [DiffRow("-", a + place, None, text) for place, text in enumerate(old)]
    return removed + [DiffRow("+", None, b + place, text) for place, text in enumerate(new)]
