"""Write the messages of JSON syntax errors as Jackson does, the service's parser.

Recorded messages are exact. The others are Jackson's published messages for the same mistake.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    import json

_VALUES = "(JSON String, Number, Array, Object or token 'null', 'true' or 'false')"
_CLOSED = re.compile(r'"(?:[^"\\]|\\.)*"|[\[\]{}]')
_WORD = re.compile(r"\w+")
_HEX = "0123456789abcdefABCDEFu"
_LONGEST = 500
"""Number of characters of a text that Jackson shows."""


class _Container(NamedTuple):
    """An array or object that is still open at the error. ``start``: its position."""

    kind: str
    start: int


def error_column(text: str, error: json.JSONDecodeError) -> int:
    """Return the column that Jackson reports: after an unknown word."""
    word = _WORD.match(text, error.pos)
    return error.colno + (len(word[0]) if word and error.msg == "Expecting value" else 0)


def error_message(text: str, error: json.JSONDecodeError) -> str:
    """Return Jackson's message for a text that Python's parser rejects."""
    if error.msg.startswith("Unterminated string"):
        return _open_string(text, error.pos)
    if error.msg.startswith("Invalid control character"):  # such as a line break
        return _unexpected(text, error.pos, error.msg)
    place = _skip_blanks(text, error.pos + ("trailing comma" in error.msg))
    if place == len(text):
        return f"Unexpected end-of-input{_end_of_input(text)}"
    word = _WORD.match(text, place)
    if error.msg == "Extra data" and word and re.search(r"(?:^|[^\w.])-?0$", text[:place]):
        return "Invalid numeric value: Leading zeroes not allowed"
    if word and error.msg in ("Expecting value", "Extra data") and not word[0][0].isdigit():
        return f"Unrecognized token '{word[0]}': was expecting {_VALUES}"
    return _unexpected(text, place, error.msg)


def _skip_blanks(text: str, start: int) -> int:
    return len(text) - len(text[start:].lstrip(" \t\r\n"))


def _unexpected(text: str, place: int, message: str) -> str:
    """Return Jackson's message for an unexpected character."""
    character = text[place]
    if message.startswith("Invalid control character"):
        return (
            f"Illegal unquoted character ((CTRL-CHAR, code {ord(character)})): has to be escaped "
            "using backslash to be included in string value"
        )
    if message.startswith("Invalid \\uXXXX"):
        wrong = next((mark for mark in text[place + 1 :] if mark not in _HEX), " ")
        return (
            f"Unexpected character ('{wrong}' (code {ord(wrong)})): expected a hex-digit for "
            "character escape sequence"
        )
    if message.startswith("Invalid \\"):
        escaped = text[place + 1 : place + 2]
        return f"Unrecognized character escape '{escaped}' (code {ord(escaped or ' ')})"
    container = _open_container(text[:place])
    if container is not None and message.startswith("Expecting ',' delimiter"):
        closing = "]" if container.kind == "Array" else "}"
        if character in "]}" and character != closing:
            return (
                f"Unexpected close marker '{character}': expected '{closing}' "
                f"(for {container.kind} starting at {_source(text, container.start)})"
            )
    expected = _wanted(container, message)
    return f"Unexpected character ('{character}' (code {ord(character)})): {expected}"


def _wanted(container: _Container | None, message: str) -> str:
    if message.startswith("Expecting ',' delimiter"):
        return f"was expecting comma to separate {container.kind if container else 'Array'} entries"
    if message.startswith("Expecting ':' delimiter"):
        return "was expecting a colon to separate field name and value"
    if "property name" in message or "trailing comma before end of object" in message:
        return "was expecting double-quote to start field name"
    return f"expected a valid value {_VALUES}"


def _open_string(text: str, start: int) -> str:
    """Return the message for an unterminated string: a field name, or a value."""
    container = _open_container(text[:start])
    before = text[:start].rstrip()[-1:]
    if container is not None and container.kind == "Object" and before != ":":
        return "Unexpected end-of-input in field name"
    return "Unexpected end-of-input: was expecting closing quote for a string value"


def _end_of_input(text: str) -> str:
    """Return Jackson's message for a text that ends too early."""
    container = _open_container(text)
    if container is None:
        return ""
    last = text.rstrip()[-1:]
    inside = container.kind == "Object" and _ends_with_name(text, container)
    if last in (",", ":") or inside:
        return f" within/between {container.kind} entries"
    return (
        f": expected close marker for {container.kind} "
        f"(start marker at {_source(text, container.start)})"
    )


def _source(text: str, start: int) -> str:
    """Return a position in a text, in Jackson's format, with the text."""
    before = text[:start]
    line, column = before.count("\n") + 1, start - before.rfind("\n")
    return f'[Source: (String)"{text[:_LONGEST]}"; line: {line}, column: {column}]'


def _ends_with_name(text: str, container: _Container) -> bool:
    """Return whether an object ends after a field's name."""
    return re.search(r'[{,]\s*"(?:[^"\\]|\\.)*"\s*$', text[container.start :]) is not None


def _open_container(text: str) -> _Container | None:
    """Return the innermost array or object that is still open."""
    opened: list[_Container] = []
    for match in _CLOSED.finditer(text):
        if match[0] in "[{":
            opened.append(_Container("Array" if match[0] == "[" else "Object", match.start()))
        elif match[0] in "]}" and opened:
            opened.pop()
    return opened[-1] if opened else None
