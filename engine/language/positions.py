"""Find the line and column of each value in a JSON text, for the places of problems."""

from __future__ import annotations

import json
import re
from bisect import bisect_right

_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|[\[\]{},:]|[^\s\[\]{},:"]+')


def find_positions(text: str) -> dict[str, tuple[int, int]]:
    """Return JSON pointer -> (line, column), from 1, of every value of a valid JSON text.

    Pointers are written as the service writes locations: unescaped names joined by ``/``, with
    indexes in brackets. The second of two equal keys wins, as it does in the value.
    """
    starts = [0, *(match.end() for match in re.finditer("\n", text))]
    positions: dict[str, tuple[int, int]] = {}
    # Each open container: its pointer, the next index (None in an object), the current key.
    stack: list[tuple[str, int | None, str | None]] = []
    for match in _TOKEN.finditer(text):
        token = match[0]
        if token == ":":
            continue
        if token == ",":
            pointer, index, _ = stack.pop()
            stack.append((pointer, None if index is None else index + 1, None))
        elif token in "]}":
            stack.pop()
        elif stack and stack[-1][1] is None and stack[-1][2] is None:
            stack[-1] = (stack[-1][0], None, json.loads(token))
        else:
            pointer = _current_pointer(stack)
            positions[pointer] = _line_and_column(starts, match.start())
            if token in "[{":
                stack.append((pointer, 0 if token == "[" else None, None))
    return positions


def _current_pointer(stack: list[tuple[str, int | None, str | None]]) -> str:
    if not stack:
        return ""
    pointer, index, key = stack[-1]
    return f"{pointer}/{key}" if index is None else f"{pointer}[{index}]"


def _line_and_column(starts: list[int], offset: int) -> tuple[int, int]:
    line = bisect_right(starts, offset)
    return line, offset - starts[line - 1] + 1
