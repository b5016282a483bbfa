"""The intrinsic functions, such as ``States.Format``: one Python function for each.

A function checks its arguments and returns the value. For a bad argument it raises ``ValueError``
with the received and the expected value. Source: "Intrinsic functions" of the ASL documentation and
recorded answers of the service.
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

    from engine.data.expression import EvaluationScope, Json

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
class IntrinsicFunction:
    """A function and its number of arguments. ``numbers``: the indexes of numeric arguments."""

    call: Callable[[list[Json], EvaluationScope], Json]
    least: int
    most: int
    numbers: tuple[int, ...] = ()

    @property
    def wanted(self) -> str:
        """Return the number of arguments as text for an error message."""
        if self.most == _MANY:
            return f"at least {self.least}"
        return str(self.least) if self.least == self.most else f"{self.least} to {self.most}"


# -- checks ----------------------------------------------------------------------------------------


def _require_text(value: Json, most: int | None = None) -> str:
    if not isinstance(value, str):
        raise ValueError(f"got {jsontext.dumps(value)[:100]}, wanted a string")
    if most is not None and len(value) > most:
        raise ValueError(f"got a string of {len(value)} characters, wanted at most {most}")
    return value


def _require_array(value: Json) -> list[Json]:
    if not isinstance(value, list):
        raise ValueError(f"got {jsontext.dumps(value)[:100]}, wanted an array")
    return value


def _require_number(value: Json) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ValueError(f"got {jsontext.dumps(value)[:100]}, wanted a number")
    return value


def _round_half_up(value: Json) -> int:
    """Round as the service does: half up (1.5 -> 2, -0.5 -> 0, -2.5 -> -2)."""
    # Python's round() goes to the even neighbour: round(2.5) is 2.
    number = _require_number(value)
    whole = number if isinstance(number, int) else math.floor(number + 0.5)
    if abs(whole) > _MAX_INT:
        raise ValueError(f"got {whole}, wanted a number from -{_MAX_INT} to {_MAX_INT}")
    return whole


def _json_equal(first: Json, second: Json) -> bool:
    """Return whether two JSON values are equal; unlike in Python, ``true`` is not 1."""
    if isinstance(first, bool) or isinstance(second, bool):
        return first is second
    if isinstance(first, dict) and isinstance(second, dict):
        return first.keys() == second.keys() and all(
            _json_equal(first[key], second[key]) for key in first
        )
    if isinstance(first, list) and isinstance(second, list):
        return len(first) == len(second) and all(map(_json_equal, first, second))
    return bool(first == second)


# -- texts -----------------------------------------------------------------------------------------

_BRACES = re.compile(r"\\([{}])|(\{\})|([{}])")
_WRITTEN = re.compile(r"\\(['\\{}])|(\{\})|([{}])")
_ESCAPE = re.compile(r"\\(['\\{}])")


class WrittenText(str):
    """A text literal in a call of an intrinsic function, with its escapes.

    Source: developer guide, "Reserved characters in intrinsic functions".
    """

    __slots__ = ()

    @property
    def unescaped(self) -> str:
        """Return the text with its escapes resolved."""
        return _ESCAPE.sub(r"\1", self)


def format_text(values: list[Json], scope: EvaluationScope) -> str:
    """Return the template with each ``{}`` replaced by the next argument (States.Format)."""
    del scope
    template, arguments = _require_text(values[0]), values[1:]
    # In a template of the input a backslash escapes braces alone.
    marked = _WRITTEN if isinstance(template, WrittenText) else _BRACES
    matches = list(marked.finditer(template))
    if bracket := next((match[3] for match in matches if match[3]), ""):
        other = "}" if bracket == "{" else "{"
        raise ValueError(
            f"Invalid template in States.Format: matching '{other}' not found for '{bracket}'."
        )
    marks = sum(match[2] is not None for match in matches)
    if marks != len(arguments):
        raise ValueError(f"got {len(arguments)} arguments for {marks} occurrences of {{}}")
    rest = iter(arguments)
    return str(marked.sub(lambda m: m[1] or format_value(next(rest)), template))


def format_value(value: Json) -> str:
    """Return a value as States.Format writes it: texts bare, maps and lists as Java prints them."""
    if isinstance(value, str):
        return value
    if isinstance(value, dict):
        return (
            "{"
            + ", ".join(f"{key}={format_value(element)}" for key, element in value.items())
            + "}"
        )
    if isinstance(value, list):
        return "[" + ", ".join(map(format_value, value)) + "]"
    return jsontext.dumps(value)


def string_to_json(values: list[Json], scope: EvaluationScope) -> Json:
    """Return the value of a JSON text; a blank text is null (States.StringToJson)."""
    del scope
    text = _require_text(values[0])
    if not text.strip():
        return None
    try:
        value = jsontext.loads(text)
    except JsonTextError as error:
        raise ValueError(str(error)) from None
    return 0 if text.strip() == "-0" else value


def json_to_string(values: list[Json], scope: EvaluationScope) -> str:
    """Return the compact JSON text of a value, keys in their order (States.JsonToString)."""
    del scope
    return jsontext.dumps(values[0])


def string_split(values: list[Json], scope: EvaluationScope) -> list[str]:
    """Return the parts of a text, split at any character of the second (States.StringSplit).

    Empty pieces are dropped, so two separators side by side count as one.
    """
    del scope
    text, marks = _require_text(values[0]), _require_text(values[1])
    if not marks:
        return [text] if text else []
    return [piece for piece in re.split(f"[{re.escape(marks)}]", text) if piece]


def base64_encode(values: list[Json], scope: EvaluationScope) -> str:
    """Return the Base64 of a UTF-8 text of at most 10,000 characters (States.Base64Encode)."""
    del scope
    return base64.b64encode(_require_text(values[0], _MAX_TEXT).encode()).decode()


def base64_decode(values: list[Json], scope: EvaluationScope) -> str:
    """Decode at most 10,000 characters of Base64 to a UTF-8 text (States.Base64Decode).

    As in Java, the padding at the end may be missing whole.
    """
    del scope
    text = _require_text(values[0], _MAX_TEXT)
    padding = "" if "=" in text else "=" * (-len(text) % 4)
    try:
        return base64.b64decode(text + padding, validate=True).decode()
    except (binascii.Error, UnicodeDecodeError) as error:
        raise ValueError(f"got a text that is not Base64 of UTF-8: {error}") from None


def hash_value(values: list[Json], scope: EvaluationScope) -> str:
    """Return the hex digest of a text, or of another value's JSON text (States.Hash)."""
    del scope
    value, algorithm = values[0], _require_text(values[1])
    text = value if isinstance(value, str) else jsontext.dumps(value)
    _require_text(text, _MAX_TEXT)
    if algorithm not in _ALGORITHMS:
        raise ValueError(f"got algorithm {algorithm!r}, wanted one of {', '.join(_ALGORITHMS)}")
    return hashlib.new(_ALGORITHMS[algorithm], text.encode(), usedforsecurity=False).hexdigest()


def make_uuid(values: list[Json], scope: EvaluationScope) -> str:
    """Return a UUID of version 4, from the step's random source (States.UUID)."""
    del values
    return str(uuid.UUID(int=scope.rng().getrandbits(128), version=4))


# -- arrays ----------------------------------------------------------------------------------------


def make_array(values: list[Json], scope: EvaluationScope) -> list[Json]:
    """Return the array of its arguments (States.Array)."""
    del scope
    return values


def array_partition(values: list[Json], scope: EvaluationScope) -> list[list[Json]]:
    """Return an array cut into chunks of at most n items (States.ArrayPartition)."""
    del scope
    items, size = _require_array(values[0]), _round_half_up(values[1])
    if size < 1:
        raise ValueError(f"got chunk size {size}, wanted a positive number")
    return [items[start : start + size] for start in range(0, len(items), size)]


def array_contains(values: list[Json], scope: EvaluationScope) -> bool:
    """Return whether an array contains a value, compared as JSON (States.ArrayContains)."""
    del scope
    return any(_json_equal(element, values[1]) for element in _require_array(values[0]))


def array_range(values: list[Json], scope: EvaluationScope) -> list[int]:
    """Return the numbers from first to last, both included, at most 1,000 (States.ArrayRange)."""
    del scope
    first, last, step = (_round_half_up(value) for value in values)
    if step == 0:
        raise ValueError("got step 0, wanted any other number")
    numbers = range(first, last + (1 if step > 0 else -1), step)
    if len(numbers) > _MAX_RANGE:
        raise ValueError(f"got a range of {len(numbers)} numbers, wanted at most {_MAX_RANGE}")
    return list(numbers)


def array_get_item(values: list[Json], scope: EvaluationScope) -> Json:
    """Return an item of an array by its index from 0 (States.ArrayGetItem)."""
    del scope
    items, index = _require_array(values[0]), _round_half_up(values[1])
    if not 0 <= index < len(items):
        raise ValueError(f"got index {index} for an array of {len(items)} items")
    return items[index]


def array_length(values: list[Json], scope: EvaluationScope) -> int:
    """Return the number of items (States.ArrayLength)."""
    del scope
    return len(_require_array(values[0]))


def array_unique(values: list[Json], scope: EvaluationScope) -> list[Json]:
    """Return an array without duplicates; the first of equal items remains (States.ArrayUnique)."""
    del scope
    seen: dict[str, Json] = {}
    for element in _require_array(values[0]):
        seen.setdefault(_canonical_text(element), element)
    return list(seen.values())


def _canonical_text(value: Json) -> str:
    """Return the same text for equal JSON values."""
    if isinstance(value, dict):
        members = sorted(
            (jsontext.dumps(key), _canonical_text(element)) for key, element in value.items()
        )
        return "{" + ",".join(f"{key}:{element}" for key, element in members) + "}"
    if isinstance(value, list):
        return "[" + ",".join(map(_canonical_text, value)) + "]"
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return jsontext.dumps(value)


# -- objects and numbers ---------------------------------------------------------------------------


def json_merge(values: list[Json], scope: EvaluationScope) -> Json:
    """Return two objects merged at their top level; the second one wins (States.JsonMerge).

    A text that holds a JSON object is taken for the object.
    """
    # ASL has a third argument for a deep merge; the service refuses anything but false.
    del scope
    if values[2] is not False:
        raise ValueError("got a deep merge, wanted false as the third argument")
    return {**_require_object(values[0]), **_require_object(values[1])}


def _require_object(value: Json) -> dict[str, Json]:
    if isinstance(value, str):
        try:
            value = jsontext.loads(value)
        except JsonTextError as error:
            raise ValueError(str(error)) from None
    if not isinstance(value, dict):
        raise ValueError(f"got {jsontext.dumps(value)[:100]}, wanted an object")
    return value


def math_random(values: list[Json], scope: EvaluationScope) -> int:
    """Return a random number, first <= number < last (States.MathRandom).

    A seed makes the result repeatable.
    """
    first, last = _round_half_up(values[0]), _round_half_up(values[1])
    if first >= last:
        raise ValueError(f"got start {first} and end {last}, wanted start below end")
    rng = random.Random(_round_half_up(values[2])) if len(values) > 2 else scope.rng()  # noqa: PLR2004, S311
    return rng.randrange(first, last)


def math_add(values: list[Json], scope: EvaluationScope) -> int:
    """Return the sum of two numbers, each first rounded to an integer (States.MathAdd)."""
    del scope
    return _round_half_up(_round_half_up(values[0]) + _round_half_up(values[1]))


FUNCTIONS: Final[dict[str, Any]] = {
    "States.Format": IntrinsicFunction(format_text, 1, _MANY),
    "States.StringToJson": IntrinsicFunction(string_to_json, 1, 1),
    "States.JsonToString": IntrinsicFunction(json_to_string, 1, 1),
    "States.Array": IntrinsicFunction(make_array, 0, _MANY),
    "States.ArrayPartition": IntrinsicFunction(array_partition, 2, 2, (1,)),
    "States.ArrayContains": IntrinsicFunction(array_contains, 2, 2),
    "States.ArrayRange": IntrinsicFunction(array_range, 3, 3, (0, 1, 2)),
    "States.ArrayGetItem": IntrinsicFunction(array_get_item, 2, 2, (1,)),
    "States.ArrayLength": IntrinsicFunction(array_length, 1, 1),
    "States.ArrayUnique": IntrinsicFunction(array_unique, 1, 1),
    "States.Base64Encode": IntrinsicFunction(base64_encode, 1, 1),
    "States.Base64Decode": IntrinsicFunction(base64_decode, 1, 1),
    "States.Hash": IntrinsicFunction(hash_value, 2, 2),
    "States.JsonMerge": IntrinsicFunction(json_merge, 3, 3),
    "States.MathRandom": IntrinsicFunction(math_random, 2, 3, (0, 1, 2)),
    "States.MathAdd": IntrinsicFunction(math_add, 2, 2, (0, 1)),
    "States.StringSplit": IntrinsicFunction(string_split, 2, 2),
    "States.UUID": IntrinsicFunction(make_uuid, 0, 0),
}
