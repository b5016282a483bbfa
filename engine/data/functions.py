"""The intrinsic functions, one small function each: argument checks, then the value.

A refused argument raises ``ValueError`` with what was got and what was wanted. Source: "Intrinsic
functions" of the ASL documentation and recorded answers of the service.

(Above 300 lines: one table of small functions.)
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import math
import random
import re
import uuid
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from engine import jsontext
from engine.errors import JsonTextError

if TYPE_CHECKING:
    from collections.abc import Callable

    from engine.data.expression import Json, Scope

_MAX_TEXT = 10_000
_MAX_RANGE = 1_000
_MAX_INT = 2_147_483_647
_ALGORITHMS = {
    "MD5": "md5",
    "SHA-1": "sha1",
    "SHA-256": "sha256",
    "SHA-384": "sha384",
    "SHA-512": "sha512",
}
_MANY = 1_000_000


@dataclass(frozen=True, slots=True)
class Function:
    """A function and how many arguments it takes. ``numbers``: which of them must be numbers."""

    call: Callable[[list[Json], Scope], Json]
    least: int
    most: int
    numbers: tuple[int, ...] = ()

    @property
    def wanted(self) -> str:
        """The number of arguments in words."""
        if self.most == _MANY:
            return f"at least {self.least}"
        return str(self.least) if self.least == self.most else f"{self.least} to {self.most}"


# -- checks ----------------------------------------------------------------------------------------


def _text(value: Json, most: int | None = None) -> str:
    if not isinstance(value, str):
        raise ValueError(f"got {jsontext.dumps(value)[:100]}, wanted a string")
    if most is not None and len(value) > most:
        raise ValueError(f"got a string of {len(value)} characters, wanted at most {most}")
    return value


def _array(value: Json) -> list[Json]:
    if not isinstance(value, list):
        raise ValueError(f"got {jsontext.dumps(value)[:100]}, wanted an array")
    return value


def _number(value: Json) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ValueError(f"got {jsontext.dumps(value)[:100]}, wanted a number")
    return value


def _whole(value: Json) -> int:
    """Round as the service does: half up (1.5 -> 2, -0.5 -> 0, -2.5 -> -2)."""
    number = _number(value)
    whole = number if isinstance(number, int) else math.floor(number + 0.5)
    if abs(whole) > _MAX_INT:
        raise ValueError(f"got {whole}, wanted a number from -{_MAX_INT} to {_MAX_INT}")
    return whole


def _same(one: Json, other: Json) -> bool:
    """JSON equality: ``true`` is not 1."""
    if isinstance(one, bool) or isinstance(other, bool):
        return one is other
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(_same(one[key], other[key]) for key in one)
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(_same, one, other))
    return bool(one == other)


# -- texts -----------------------------------------------------------------------------------------

_BRACES = re.compile(r"\\([{}])|(\{\})")


def format_text(values: list[Json], scope: Scope) -> str:
    """States.Format: each ``{}`` takes the next argument."""
    del scope
    template, arguments = _text(values[0]), values[1:]
    marks = sum(match[2] is not None for match in _BRACES.finditer(template))
    if marks != len(arguments):
        raise ValueError(f"got {len(arguments)} arguments for {marks} occurrences of {{}}")
    rest = iter(arguments)
    return _BRACES.sub(lambda m: m[1] or shown(next(rest)), template)


def shown(value: Json) -> str:
    """Return a value as States.Format writes it: texts bare, maps and lists as Java prints them."""
    if isinstance(value, str):
        return value
    if isinstance(value, dict):
        return "{" + ", ".join(f"{key}={shown(one)}" for key, one in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(shown, value)) + "]"
    return jsontext.dumps(value)


def string_to_json(values: list[Json], scope: Scope) -> Json:
    """States.StringToJson: a blank text is null."""
    del scope
    text = _text(values[0])
    if not text.strip():
        return None
    try:
        value = jsontext.loads(text)
    except JsonTextError as error:
        raise ValueError(str(error)) from None
    return 0 if text.strip() == "-0" else value


def json_to_string(values: list[Json], scope: Scope) -> str:
    """States.JsonToString: compact text, keys in their order."""
    del scope
    return jsontext.dumps(values[0])


def string_split(values: list[Json], scope: Scope) -> list[str]:
    """States.StringSplit: at any character of the second text; empty pieces are dropped."""
    del scope
    text, marks = _text(values[0]), _text(values[1])
    if not marks:
        return [text] if text else []
    return [piece for piece in re.split(f"[{re.escape(marks)}]", text) if piece]


def base64_encode(values: list[Json], scope: Scope) -> str:
    """States.Base64Encode: UTF-8 text of at most 10,000 characters."""
    del scope
    return base64.b64encode(_text(values[0], _MAX_TEXT).encode()).decode()


def base64_decode(values: list[Json], scope: Scope) -> str:
    """States.Base64Decode; as in Java, the padding at the end may be missing whole."""
    del scope
    text = _text(values[0], _MAX_TEXT)
    padding = "" if "=" in text else "=" * (-len(text) % 4)
    try:
        return base64.b64decode(text + padding, validate=True).decode()
    except (binascii.Error, UnicodeDecodeError) as error:
        raise ValueError(f"got a text that is not Base64 of UTF-8: {error}") from None


def hash_value(values: list[Json], scope: Scope) -> str:
    """States.Hash: hex digest of a text, or of another value's JSON text."""
    del scope
    value, algorithm = values[0], _text(values[1])
    text = value if isinstance(value, str) else jsontext.dumps(value)
    _text(text, _MAX_TEXT)
    if algorithm not in _ALGORITHMS:
        raise ValueError(f"got algorithm {algorithm!r}, wanted one of {', '.join(_ALGORITHMS)}")
    return hashlib.new(_ALGORITHMS[algorithm], text.encode(), usedforsecurity=False).hexdigest()


def make_uuid(values: list[Json], scope: Scope) -> str:
    """States.UUID: version 4, from the step's random source."""
    del values
    return str(uuid.UUID(int=scope.rng().getrandbits(128), version=4))


# -- arrays ----------------------------------------------------------------------------------------


def array(values: list[Json], scope: Scope) -> list[Json]:
    """States.Array: its arguments."""
    del scope
    return values


def array_partition(values: list[Json], scope: Scope) -> list[list[Json]]:
    """States.ArrayPartition: chunks of at most n."""
    del scope
    items, size = _array(values[0]), _whole(values[1])
    if size < 1:
        raise ValueError(f"got chunk size {size}, wanted a positive number")
    return [items[start : start + size] for start in range(0, len(items), size)]


def array_contains(values: list[Json], scope: Scope) -> bool:
    """States.ArrayContains: JSON equality at any depth."""
    del scope
    return any(_same(one, values[1]) for one in _array(values[0]))


def array_range(values: list[Json], scope: Scope) -> list[int]:
    """States.ArrayRange: first to last inclusive, at most 1,000 numbers."""
    del scope
    first, last, step = (_whole(value) for value in values)
    if step == 0:
        raise ValueError("got step 0, wanted any other number")
    numbers = range(first, last + (1 if step > 0 else -1), step)
    if len(numbers) > _MAX_RANGE:
        raise ValueError(f"got a range of {len(numbers)} numbers, wanted at most {_MAX_RANGE}")
    return list(numbers)


def array_get_item(values: list[Json], scope: Scope) -> Json:
    """States.ArrayGetItem: by index from 0."""
    del scope
    items, index = _array(values[0]), _whole(values[1])
    if not 0 <= index < len(items):
        raise ValueError(f"got index {index} for an array of {len(items)} items")
    return items[index]


def array_length(values: list[Json], scope: Scope) -> int:
    """States.ArrayLength."""
    del scope
    return len(_array(values[0]))


def array_unique(values: list[Json], scope: Scope) -> list[Json]:
    """States.ArrayUnique: first occurrences."""
    del scope
    seen: dict[str, Json] = {}
    for one in _array(values[0]):
        seen.setdefault(_canonical(one), one)
    return list(seen.values())


def _canonical(value: Json) -> str:
    """Return a text that is equal for equal JSON values."""
    if isinstance(value, dict):
        members = sorted((jsontext.dumps(key), _canonical(one)) for key, one in value.items())
        return "{" + ",".join(f"{key}:{one}" for key, one in members) + "}"
    if isinstance(value, list):
        return "[" + ",".join(map(_canonical, value)) + "]"
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return jsontext.dumps(value)


# -- objects and numbers ---------------------------------------------------------------------------


def json_merge(values: list[Json], scope: Scope) -> Json:
    """States.JsonMerge: shallow, the second object wins.

    Texts holding JSON objects are taken too.
    """
    del scope
    if values[2] is not False:
        raise ValueError("got a deep merge, wanted false as the third argument")
    return {**_object(values[0]), **_object(values[1])}


def _object(value: Json) -> dict[str, Json]:
    if isinstance(value, str):
        try:
            value = jsontext.loads(value)
        except JsonTextError as error:
            raise ValueError(str(error)) from None
    if not isinstance(value, dict):
        raise ValueError(f"got {jsontext.dumps(value)[:100]}, wanted an object")
    return value


def math_random(values: list[Json], scope: Scope) -> int:
    """States.MathRandom: first inclusive, last exclusive; a seed makes it repeatable."""
    first, last = _whole(values[0]), _whole(values[1])
    if first >= last:
        raise ValueError(f"got start {first} and end {last}, wanted start below end")
    rng = random.Random(_whole(values[2])) if len(values) > 2 else scope.rng()  # noqa: PLR2004, S311
    return rng.randrange(first, last)


def math_add(values: list[Json], scope: Scope) -> int:
    """States.MathAdd: whole numbers."""
    del scope
    return _whole(_whole(values[0]) + _whole(values[1]))


FUNCTIONS: Final[dict[str, Any]] = {
    "States.Format": Function(format_text, 1, _MANY),
    "States.StringToJson": Function(string_to_json, 1, 1),
    "States.JsonToString": Function(json_to_string, 1, 1),
    "States.Array": Function(array, 0, _MANY),
    "States.ArrayPartition": Function(array_partition, 2, 2, (1,)),
    "States.ArrayContains": Function(array_contains, 2, 2),
    "States.ArrayRange": Function(array_range, 3, 3, (0, 1, 2)),
    "States.ArrayGetItem": Function(array_get_item, 2, 2, (1,)),
    "States.ArrayLength": Function(array_length, 1, 1),
    "States.ArrayUnique": Function(array_unique, 1, 1),
    "States.Base64Encode": Function(base64_encode, 1, 1),
    "States.Base64Decode": Function(base64_decode, 1, 1),
    "States.Hash": Function(hash_value, 2, 2),
    "States.JsonMerge": Function(json_merge, 3, 3),
    "States.MathRandom": Function(math_random, 2, 3, (0, 1, 2)),
    "States.MathAdd": Function(math_add, 2, 2, (0, 1)),
    "States.StringSplit": Function(string_split, 2, 2),
    "States.UUID": Function(make_uuid, 0, 0),
}
