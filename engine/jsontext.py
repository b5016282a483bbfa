"""Parse and write JSON text: strict RFC 8259, with limits of UTF-8 bytes and of nesting depth."""

from __future__ import annotations

import json
import math
import re
from dataclasses import dataclass
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


def unique_members(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return a JSON object; raise ``JsonTextError`` for duplicate keys, as one value is lost."""
    members: dict[str, Any] = {}
    for key, value in pairs:
        if key in members:
            raise JsonTextError(f"the key {key[:40]!r} stands twice")
        members[key] = value
    return members


_decode, _decode_unique = (
    json.JSONDecoder(
        parse_constant=_reject_constant,
        parse_float=_parse_float,
        parse_int=_parse_int,
        object_pairs_hook=hook,
    ).decode
    for hook in (None, unique_members)
)


def loads(
    text: str, *, max_bytes: int | None = None, max_depth: int = MAX_DEPTH, unique: bool = False
) -> Any:
    """Parse a JSON text (RFC 8259); the last of duplicate keys wins, unless they must be unique.

    Raise ``JsonTextError`` for anything else: NaN, numbers beyond a double, lone surrogates, more
    than ``max_bytes`` of UTF-8, arrays and objects nested deeper than ``max_depth``.
    """
    if max_bytes is not None and byte_size(text) > max_bytes:
        raise JsonTextError(f"got {byte_size(text)} bytes, wanted at most {max_bytes}")
    # Counting brackets is cheap and answers almost always: a text with few of them cannot be deep.
    if text.count("[") + text.count("{") > max_depth and nesting_depth(text) > max_depth:
        raise JsonTextError(f"nested deeper than {max_depth} levels")
    try:
        value = _decode_unique(text) if unique else _decode(text)
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
    """Return the compact JSON text of a value: order of keys unchanged, no escaped Unicode."""
    return _encode(value)


def has_surrogate(text: str) -> bool:
    """Return whether a text has a lone surrogate (U+D800 to U+DFFF); no database stores these."""
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


# -- how large a payload may be --------------------------------------------------------------------


# The limit is the service's current one, or an earlier one. A process chooses once, before
# anything runs (``use_limits``); engines with different limits need different processes.

MAX_BYTES = 262_144
"""AWS: input, output, arguments and result are at most 256 KiB of UTF-8 JSON text."""


@dataclass(frozen=True, slots=True)
class PayloadLimit:
    """A limit: ``most`` bytes of UTF-8 or, with ``unit`` "characters", characters."""

    most: int
    unit: str = "bytes of UTF-8"


NEAR_PERCENT = 80
"""The share of a limit, in percent, from which it is reported as ahead."""
LIMITS = {"aws": PayloadLimit(MAX_BYTES), "2019": PayloadLimit(32_768, "characters")}
"""``2019``: the service's limit until September 2020."""
_used = [LIMITS["aws"]]


def use_limits(profile: str) -> None:
    """Use the limits of a profile; raise ``KeyError`` if it is not in ``LIMITS``."""
    _used[0] = LIMITS[profile]


def payload_limit() -> PayloadLimit:
    """Return the limit in use."""
    return _used[0]


def least_size() -> int:
    """Return the size from which a payload is near the limit, in the unit of the limit."""
    return _used[0].most * NEAR_PERCENT // 100


def is_too_long(text: str) -> bool:
    """Return whether a JSON text exceeds the payload limit."""
    limit = _used[0]
    if len(text) * 4 <= limit.most:
        return False
    size = len(text) if limit.unit == "characters" else byte_size(text)
    return size > limit.most
