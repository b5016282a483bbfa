"""JSON text to values and back: strict, measured in UTF-8 bytes, and limited in depth."""

from __future__ import annotations

import json
import math
import re
from typing import Any, NoReturn

from engine.errors import JsonTextError
from engine.json_errors import error_column, error_message

MAX_DEPTH = 500
_MAX_DIGITS = 1000
_NOT_FINITE = "enable JsonReadFeature.ALLOW_NON_NUMERIC_NUMBERS to allow"  # Jackson's words
_encode = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode


def _reject_constant(name: str) -> NoReturn:
    raise JsonTextError(f"Non-standard token '{name}': {_NOT_FINITE}")


def _parse_float(text: str) -> float:
    value = float(text)
    if math.isinf(value):
        raise JsonTextError(f"Number out of range: {text[:40]}")
    return value


def _parse_int(text: str) -> int:
    if len(text) > _MAX_DIGITS:
        raise JsonTextError(
            f"Number too long: got {len(text)} digits, wanted at most {_MAX_DIGITS}"
        )
    return int(text)


_decode = json.JSONDecoder(
    parse_constant=_reject_constant, parse_float=_parse_float, parse_int=_parse_int
).decode


def loads(text: str, *, max_bytes: int | None = None, max_depth: int = MAX_DEPTH) -> Any:
    """Return the value of a JSON text (RFC 8259); of duplicate keys the last one wins.

    Raise ``JsonTextError`` for anything else: NaN, numbers beyond a double, lone surrogates, more
    than ``max_bytes`` of UTF-8, arrays and objects nested deeper than ``max_depth``.
    """
    if max_bytes is not None and byte_size(text) > max_bytes:
        raise JsonTextError(f"got {byte_size(text)} bytes, wanted at most {max_bytes}")
    # Counting brackets is cheap and answers almost always: a text with few of them cannot be deep.
    if text.count("[") + text.count("{") > max_depth and nesting_depth(text) > max_depth:
        raise JsonTextError(f"nested deeper than {max_depth} levels")
    try:
        value = _decode(text)
    except json.JSONDecodeError as error:
        raise JsonTextError(
            error_message(text, error), error.lineno, error_column(text, error)
        ) from None
    except RecursionError:
        raise JsonTextError(f"nested deeper than {max_depth} levels") from None
    if has_surrogate(text) or ("\\u" in text and has_surrogate(dumps(value))):
        raise JsonTextError("a lone surrogate (\\ud800 to \\udfff) is not a character")
    return value


def dumps(value: Any) -> str:
    """Return the compact JSON text of a value, keys in their order, characters as they are."""
    return _encode(value)


def has_surrogate(text: str) -> bool:
    """Tell whether a text holds half a character (U+D800 to U+DFFF), which no database stores."""
    if text.isascii():
        return False
    try:
        text.encode()
    except UnicodeEncodeError:
        return True
    return False


def byte_size(text: str) -> int:
    """Return the size of a text in UTF-8 bytes."""
    return len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))


def nesting_depth(text: str) -> int:
    """Return how deeply arrays and objects are nested, without parsing."""
    level = deepest = 0
    for match in _BRACKETS.finditer(text):
        mark = match[0]
        if mark in "[{":
            level += 1
            deepest = max(deepest, level)
        elif mark in "]}":
            level -= 1
    return deepest


_BRACKETS = re.compile(r'"(?:[^"\\]|\\.)*"|[\[\]{}]')
