"""Convert JSONata numbers, values and errors to text, as JavaScript and the service write them.

Imports only its neighbours, so the child process starts fast.
"""

from __future__ import annotations

import json
import math
import re
from decimal import Decimal
from typing import Any, Final

from jsonata.jexception import JException
from jsonata.parser import Parser
from jsonata.utils import Utils

_PLAIN_BELOW: Final = 21  # JavaScript writes an exponent from 1e21 on
_PLAIN_ABOVE: Final = -6  # and below 1e-6
_PLACEHOLDER = re.compile(r"\{\{\{(\w+)\}\}\}|\{\{(\w+)\}\}")
# The library's catalog says "Object" where JSONata says "function", and has other quotes.
_TEXTS: Final = {
    **{
        code: text.replace("Object", "function").replace('"', "'")
        for code, text in JException.error_codes.items()
    },
    "D3137": "{{{message}}}",
    "D3141": "{{{message}}}",
}


def number_text(value: float) -> str:
    """Format a number as JavaScript does: ``1e20`` in full, ``1e+21``, ``1e-7``."""
    if isinstance(value, int):
        if abs(value) < 10**_PLAIN_BELOW:
            return str(value)
        try:
            value = float(value)
        except OverflowError:
            value = math.inf if value > 0 else -math.inf
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "Infinity" if value > 0 else "-Infinity"
    if value == 0:
        return "0"
    sign, digits, exponent = Decimal(repr(value)).normalize().as_tuple()
    text = "".join(map(str, digits))
    point = len(text) + int(exponent)
    return ("-" if sign else "") + _insert_point(text, point)


def _insert_point(digits: str, point: int) -> str:
    """Return digits with the decimal point after the first ``point`` digits."""
    if len(digits) <= point <= _PLAIN_BELOW:
        return digits.ljust(point, "0")
    if 0 < point <= _PLAIN_BELOW:
        return f"{digits[:point]}.{digits[point:]}"
    if _PLAIN_ABOVE < point <= 0:
        return "0." + "0" * -point + digits
    mantissa = digits[0] + ("." + digits[1:] if digits[1:] else "")
    return f"{mantissa}e{'+' if point > 0 else '-'}{abs(point - 1)}"


def is_function(value: Any) -> bool:
    """Return whether a value is a function: built in, a lambda or a regular expression."""
    return not isinstance(value, str | int | float | list | dict) and (
        isinstance(value, Parser.Symbol) or hasattr(value, "call") or hasattr(value, "finditer")
    )


def value_text(value: Any, *, indent: int = 0) -> str:
    """Format a value as ``$string`` does: fractions with 15 digits, functions as "".

    Raises ``JException`` D1001 for a number inside a value that is not finite.
    """
    return _value_text(value, " " * indent, "\n" if indent else "")


def _value_text(value: Any, indent: str, newline: str) -> str:
    if value is None or value is Utils.NULL_VALUE:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return _quoted(value)
    if isinstance(value, int | float):
        return _rounded(value)
    inner = newline + indent if newline else ""
    if isinstance(value, list | tuple):
        members = [_value_text(item, indent, inner) for item in value]
        return _bracketed("[", members, "]", inner, newline)
    if isinstance(value, dict):
        colon = ": " if newline else ":"
        members = [
            f"{_quoted(key)}{colon}{_value_text(item, indent, inner)}"
            for key, item in value.items()
        ]
        return _bracketed("{", members, "}", inner, newline)
    return '""'


def _bracketed(opening: str, members: list[str], closing: str, inner: str, newline: str) -> str:
    if not members:
        return opening + closing
    return opening + inner + f",{inner}".join(members) + newline + closing


def _quoted(text: str) -> str:
    quoted = json.dumps(text, ensure_ascii=False)
    if not re.search("[\ud800-\udfff]", quoted):
        return quoted
    return re.sub("[\ud800-\udfff]", lambda match: f"\\u{ord(match[0]):04x}", quoted)


def _rounded(value: float) -> str:
    if not math.isfinite(value):
        raise JException("D1001", -1, value)
    if isinstance(value, int) or value.is_integer():
        return number_text(value)
    return number_text(float(f"{value:.15g}"))


def error_text(error: JException) -> str:
    """Return the message of an error as JSONata writes it, without its code."""
    inserts = [error.current, error.expected, error.extra]
    template = _TEXTS.get(str(error.error))
    if template is None:
        return str(error)
    remaining = iter(inserts)

    def insert(match: re.Match[str]) -> str:
        value = next(remaining, None)
        return _as_text(value) if match[1] else _shown(value)

    return _PLACEHOLDER.sub(insert, template)


def _as_text(value: Any) -> str:
    return value if isinstance(value, str) else _shown(value)


def _shown(value: Any) -> str:
    if value is None or is_function(value):
        return "undefined"
    if isinstance(value, float) and not math.isfinite(value):
        return "null"
    try:
        return _exact(value)
    except (JException, RecursionError):
        return "undefined"


def _exact(value: Any) -> str:
    return number_text(value) if _is_number(value) else value_text(value)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
