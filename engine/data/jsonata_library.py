"""Own versions of JSONata's built-in functions that the library implements wrongly.

Results and error codes (such as D3030) are those of JSONata 2 and of the service.
"""

from __future__ import annotations

import base64
import binascii
import json
import math
import re
import string
from typing import TYPE_CHECKING, Any, Final

from jsonata.functions import Functions
from jsonata.jexception import JException
from jsonata.utils import Utils

from engine.data.jsonata_dates import (
    current_date,
    format_integer,
    from_millis,
    parse_integer,
    to_millis,
)
from engine.data.jsonata_picture import format_number
from engine.data.jsonata_regex import Found, expand_replacement, find_matches
from engine.data.jsonata_text import is_function, value_text

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence


class InternalError(Exception):
    """The service answers "threw an internal error"."""


# -- texts and numbers ---------------------------------------------------------------------------


def to_string(value: Any, prettify: Any = None) -> Any:
    """``$string``: text as it is, functions as "", all else as JSON."""
    if isinstance(value, Utils.JList) and value.outer_wrapper:
        value = value[0]
    if value is None or isinstance(value, str):
        return value
    if is_function(value):
        return ""
    if isinstance(value, float) and not math.isfinite(value):
        raise JException("D3001", -1, value)
    return value_text(value, indent=2 if prettify else 0)


_NUMBER = re.compile(r"-?[0-9]+(\.[0-9]+)?([Ee][-+]?[0-9]+)?")
_BASED = re.compile(r"0([xX][0-9A-Fa-f]+|[oO][0-7]+|[bB][01]+)")


def to_number(value: Any) -> Any:
    """``$number``; D3030 unless the text is a JSON number or one of base 2, 8 or 16."""
    if isinstance(value, bool):
        return int(value)
    if not isinstance(value, str):
        return value
    if _BASED.fullmatch(value):
        return int(value, 0)
    if _NUMBER.fullmatch(value) and math.isfinite(float(value)):
        return float(value)
    raise JException("D3030", -1, value)


def power(base: Any, exponent: Any) -> Any:
    """``$power``; D3061 if the result is not a finite number."""
    if base is None:
        return None
    try:
        result = float(base) ** float(exponent)
    except (OverflowError, ZeroDivisionError):
        result = math.inf
    if isinstance(result, complex) or not math.isfinite(result):
        raise JException("D3061", -1, base, exponent)
    return result


def rounded(value: Any, precision: Any = None) -> Any:
    """``$round``: half to even, to a number of decimal places that may be negative."""
    if value is None:
        return None
    places = int(precision or 0)
    try:
        return Functions.round(value, places)
    except ArithmeticError:  # more digits than the library counts with
        return value if places >= 0 or not math.isfinite(value) else 0


def format_base(value: Any, radix: Any = None) -> Any:
    """``$formatBase`` with a radix from 2 to 36."""
    if radix is not None and not 2 <= radix <= 36:  # noqa: PLR2004 - digits and letters
        raise JException("D3100", -1, radix)
    return Functions.format_base(value, radix)


def sum_of(values: Any) -> Any:
    """``$sum``: doubles added from left to right."""
    if values is None:
        return None
    total = 0.0
    for value in values:
        total += value
    return total


def base64_decode(text: Any) -> Any:
    """``$base64decode``; an invalid text is an internal error of the service."""
    if text is None:
        return None
    bare = text.rstrip("=")
    try:
        data = base64.b64decode(bare + "=" * (-len(bare) % 4), validate=True)
        return data.decode()
    except (binascii.Error, ValueError):
        raise InternalError from None


def raise_error(message: Any = None) -> Any:
    """``$error``: raise D3137 with the author's message."""
    raise JException("D3137", -1, "$error() function evaluated" if message is None else message)


def picture_number(value: Any, picture: Any, options: Any = None) -> Any:
    """``$formatNumber``."""
    return None if value is None else format_number(value, picture, options)


# -- addresses -----------------------------------------------------------------------------------

_COMPONENT: Final = "~()*!.'-_"
_URL: Final = ";/?:@&=+$,#" + _COMPONENT


def _encoder(name: str, safe: str) -> Callable[[Any], Any]:
    """Return the function that percent-encodes the UTF-8 bytes of all but safe characters."""
    unescaped = frozenset((safe + string.ascii_letters + string.digits).encode())

    def encode(text: Any) -> Any:
        if text is None:
            return None
        try:
            data = text.encode()
        except UnicodeEncodeError:
            raise JException("D3140", -1, name, text) from None
        return "".join(chr(byte) if byte in unescaped else f"%{byte:02X}" for byte in data)

    return encode


_ENCODED = re.compile(r"(?:%[0-9A-Fa-f]{2})+")


def _decoder(name: str, reserved: str) -> Callable[[Any], Any]:
    """Return the decoding function; it keeps reserved characters encoded."""
    reserved_codes = re.compile(
        "|".join(f"%{ord(char):02X}" for char in reserved) or r"(?!)", re.IGNORECASE
    )

    def decode(text: Any) -> Any:
        if text is None:
            return None
        if re.search(r"%(?![0-9A-Fa-f]{2})", text):
            raise JException("D3140", -1, name, text)
        guarded = reserved_codes.sub(lambda match: "%25" + match[0][1:], text)
        try:
            return _ENCODED.sub(
                lambda run: bytes.fromhex(run[0].replace("%", "")).decode(), guarded
            )
        except UnicodeDecodeError:
            raise JException("D3140", -1, name, text) from None

    return decode


# -- patterns ------------------------------------------------------------------------------------


def contains(text: Any, token: Any) -> Any:
    """``$contains`` of a text, a pattern or a matcher function."""
    if text is None or token is None:
        return None
    if isinstance(token, str):
        return token in text
    return next(find_matches(token, text, function="contains"), None) is not None


def match(text: Any, pattern: Any, limit: Any = None) -> Any:
    """``$match``: each match with its place and its groups."""
    if text is None:
        return None
    if limit is not None and limit < 0:
        raise JException("D3040", -1, limit)
    matches = Utils.create_sequence()
    for occurrence in find_matches(pattern, text, function="match"):
        if limit is not None and len(matches) >= limit:
            break
        matches.append(
            {"match": occurrence.text, "index": occurrence.start, "groups": occurrence.groups}
        )
    return matches


def split(text: Any, separator: Any, limit: Any = None) -> Any:
    """``$split`` at a text, a pattern or a matcher function."""
    if text is None:
        return None
    if limit is not None and limit < 0:
        raise JException("D3020", -1, limit)
    if isinstance(separator, str):
        parts = text.split(separator) if separator else list(text)
    else:
        parts, position = [], 0
        for occurrence in find_matches(separator, text, function="split"):
            parts.append(text[position : occurrence.start])
            position = occurrence.end
        parts.append(text[position:])
    return Utils.JList(parts if limit is None else parts[: math.floor(limit)])


def replace(text: Any, pattern: Any, replacement: Any, limit: Any = None) -> Any:
    """``$replace`` by a text with references to groups, or by a function of the match."""
    if text is None:
        return None
    if pattern == "":
        raise JException("D3010", -1)
    if limit is not None and limit < 0:
        raise JException("D3011", -1)
    matches = (
        _literal_matches(pattern, text)
        if isinstance(pattern, str)
        else find_matches(pattern, text, function="replace")
    )
    parts, position = [], 0
    for count, occurrence in enumerate(matches):
        if limit is not None and count >= limit:
            break
        parts += [text[position : occurrence.start], _replaced(occurrence, pattern, replacement)]
        position = occurrence.end
    return "".join([*parts, text[position:]])


def _literal_matches(token: str, text: str) -> Any:
    start = text.find(token)
    while start >= 0:
        yield Found(token, start, start + len(token), [])
        start = text.find(token, start + len(token))


def _replaced(occurrence: Found, pattern: Any, replacement: Any) -> str:
    if isinstance(replacement, str):
        literal = isinstance(pattern, str)
        return replacement if literal else expand_replacement(replacement, occurrence)
    match_object = {
        "match": occurrence.text,
        "start": occurrence.start,
        "end": occurrence.end,
        "groups": list(occurrence.groups),
    }
    text = Functions.func_apply(replacement, [match_object])
    if not isinstance(text, str):
        raise JException("D3012", -1, text)
    return text


# -- arrays --------------------------------------------------------------------------------------


def sort(values: Any, comparator: Any = None) -> Any:
    """``$sort``: stable; ``comparator(left, right)`` returns whether to swap the two."""
    if values is None or len(values) <= 1:
        return values
    if comparator is not None:
        return merge_sorted(values, lambda *pair: truthy(Functions.func_apply(comparator, pair)))
    if not (Utils.is_array_of_numbers(values) or Utils.is_array_of_strings(values)):
        raise JException("D3070", -1)
    return Utils.JList(sorted(values))


def truthy(value: Any) -> bool:
    """Return whether JavaScript treats a value as true."""
    if value is None or value is Utils.NULL_VALUE or value is False:
        return False
    if isinstance(value, int | float):
        return value != 0 and not math.isnan(value)
    return value != "" or not isinstance(value, str)


def merge_sorted(values: Sequence[Any], swap: Callable[[Any, Any], bool]) -> list[Any]:
    """Merge sort as in JSONata, for the same results with inconsistent comparators."""
    if len(values) <= 1:
        return list(values)
    middle = len(values) // 2
    lower, upper = merge_sorted(values[:middle], swap), merge_sorted(values[middle:], swap)
    merged: list[Any] = Utils.JList()
    first = second = 0
    while first < len(lower) and second < len(upper):
        if swap(lower[first], upper[second]):
            merged.append(upper[second])
            second += 1
        else:
            merged.append(lower[first])
            first += 1
    merged.extend(lower[first:])
    merged.extend(upper[second:])
    return merged


def distinct(values: Any) -> Any:
    """``$distinct`` by deep equality, in which ``1`` is not ``true``."""
    if not isinstance(values, list) or len(values) <= 1:
        return values
    seen: set[str] = set()
    results = Utils.create_sequence() if Utils.is_sequence(values) else Utils.JList()
    for value in values:
        key = _identity(value)
        if key not in seen:
            seen.add(key)
            results.append(value)
    return results


def _identity(value: Any) -> str:
    """Return the same text for equal values only."""
    if is_function(value):
        return f"function {id(value)}"
    if isinstance(value, dict):
        members = sorted((key, _identity(item)) for key, item in value.items())
        return json.dumps(members)
    if isinstance(value, list):
        return json.dumps(["list", *(_identity(item) for item in value)])
    if isinstance(value, int | float) and not isinstance(value, bool):
        return repr(float(value))
    return value_text(value)


def clone(value: Any) -> Any:
    """``$clone``: a deep copy."""
    if isinstance(value, list):
        return Utils.JList(clone(item) for item in value)
    if isinstance(value, dict):
        return {key: clone(item) for key, item in value.items()}
    return value


def type_of(value: Any) -> Any:
    """``$type``; a regular expression is a function, too."""
    return "function" if is_function(value) else Functions.type(value)


def keys_of(value: Any) -> Any:
    """``$keys`` of an object, or of all objects of an array, each key once."""
    names: dict[str, None] = {}
    for item in value if isinstance(value, list) else [value]:
        if isinstance(item, dict):
            names.update(dict.fromkeys(item))
        elif isinstance(item, list):
            names.update(dict.fromkeys(keys_of(item)))
    return Utils.create_sequence_from_iter(names)


FUNCTIONS: Final[dict[str, tuple[str, Callable[..., Any]]]] = {
    "string": ("<x-b?:s>", to_string),
    "number": ("<(nsb)-:n>", to_number),
    "power": ("<n-n:n>", power),
    "round": ("<n-n?:n>", rounded),
    "sum": ("<a<n>:n>", sum_of),
    "formatBase": ("<n-n?:s>", format_base),
    "base64decode": ("<s-:s>", base64_decode),
    "error": ("<s?:x>", raise_error),
    "encodeUrl": ("<s-:s>", _encoder("encodeUrl", _URL)),
    "encodeUrlComponent": ("<s-:s>", _encoder("encodeUrlComponent", _COMPONENT)),
    "decodeUrl": ("<s-:s>", _decoder("decodeUrl", ";/?:@&=+$,#")),
    "decodeUrlComponent": ("<s-:s>", _decoder("decodeUrlComponent", "")),
    "contains": ("<s-(sf):b>", contains),
    "match": ("<s-f<s:o>n?:a<o>>", match),
    "split": ("<s-(sf)n?:a<s>>", split),
    "replace": ("<s-(sf)(sf)n?:s>", replace),
    "sort": ("<af?:a>", sort),
    "distinct": ("<x:x>", distinct),
    "clone": ("<(oa)-:o>", clone),
    "type": ("<x:s>", type_of),
    "keys": ("<x-:a<s>>", keys_of),
    "toMillis": ("<s-s?:n>", to_millis),
    "fromMillis": ("<n-s?s?:s>", from_millis),
    "now": ("<s?s?:s>", current_date),
    "formatNumber": ("<n-so?:s>", picture_number),
    "formatInteger": ("<n-s:s>", format_integer),
    "parseInteger": ("<s-s:n>", parse_integer),
}
