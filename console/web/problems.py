"""Where in the text is each problem of a definition?

Diagnostics name a place as a pointer (``/States/Pay/Next``); a press on one moves the caret there,
so it needs a line and a column.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

import engine

if TYPE_CHECKING:
    from collections.abc import Iterator


@dataclass(frozen=True, slots=True)
class Problem:
    """One line of the problems list; ``line``/``column`` count from 1, 0 if not known."""

    severe: bool
    code: str
    message: str
    location: str
    line: int
    column: int

    @property
    def tone(self) -> str:
        """Return the tone of its sign."""
        return "failed" if self.severe else "caught"


def problems_in(text: str) -> list[Problem]:
    """Return every error and warning, errors first."""
    places: dict[str, int] | None = None
    found = []
    for one in engine.check(text):
        line, column = one.line or 0, one.column or 0
        if not line:
            if places is None:
                places = dict(_places(text))
            line, column = _line_of(text, _nearest(places, one.location))
        severe = one.severity == "ERROR"
        found.append(Problem(severe, one.code, one.message, one.location, line, column))
    return sorted(found, key=lambda one: not one.severe)


def _nearest(places: dict[str, int], location: str) -> int:
    """Return where the pointer's value, or the closest thing around it, begins; -1 if nowhere."""
    pointer = re.sub(r"/(\d+)(?=/|$)", r"[\1]", location.rstrip("/"))
    while pointer and pointer not in places:
        pointer = pointer.rpartition("/")[0]
    return places.get(pointer, -1)


def _line_of(text: str, offset: int) -> tuple[int, int]:
    if offset < 0:
        return 0, 0
    before = text[:offset]
    return before.count("\n") + 1, offset - before.rfind("\n")


_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|[{}\[\]:,]|[^\s{}\[\]:,"]+')


def _places(text: str) -> Iterator[tuple[str, int]]:
    """Yield (pointer, offset) of every member and element, as far as the text is JSON."""
    stack: list[tuple[str, int]] = []  # (pointer, next index, or -1 in an object)
    pointer, key, key_at = "", "", 0
    wants_key = False
    for token in _TOKEN.finditer(text):
        sign = token[0]
        if sign in "}]":
            if not stack:
                return
            stack.pop()
            wants_key = False
        elif sign == ",":
            wants_key = bool(stack) and stack[-1][1] < 0
        elif sign == ":":
            wants_key = False
        elif wants_key:
            key, key_at = sign[1:-1], token.start()
        else:
            if stack and stack[-1][1] >= 0:
                parent, index = stack[-1]
                pointer, at = f"{parent}[{index}]", token.start()
                stack[-1] = (parent, index + 1)
            elif stack:
                pointer, at = f"{stack[-1][0]}/{key}", key_at
            else:
                pointer, at = "", token.start()
            yield pointer, at
            if sign in "{[":
                stack.append((pointer, -1 if sign == "{" else 0))
                wants_key = sign == "{"
