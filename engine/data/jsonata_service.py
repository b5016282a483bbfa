"""The JSONata functions that Step Functions adds, such as ``$partition``, and its size limits."""

from __future__ import annotations

import hashlib
import json
import random
import uuid
from typing import TYPE_CHECKING, Any, Final

from jsonata.utils import Utils

if TYPE_CHECKING:
    from collections.abc import Callable

MAX_BYTES: Final = 6_990_256  # of one value: 8 bytes a number, 1 a character [measured]
_MAX_RANGE: Final = 360_145  # numbers that $range makes [measured]
_MAX_LONG: Final = 2**63
_ALGORITHMS: Final = {
    "MD5": "md5",
    "SHA-1": "sha1",
    "SHA-256": "sha256",
    "SHA-384": "sha384",
    "SHA-512": "sha512",
}


class MemoryLimitError(Exception):
    """A value is larger than the service allows."""


class FunctionError(Exception):
    """A function rejects its arguments; the text is ours."""


def partition(items: Any, size: Any = None) -> Any:
    """``$partition``: split an array into chunks; the size is truncated to an integer."""
    if not items or size is None:
        return None
    whole = int(size)
    if whole < 0:
        raise FunctionError(f"$partition: got size {whole}, wanted at least 1")
    if whole == 0:
        return None
    return [list(items[start : start + whole]) for start in range(0, len(items), whole)]


def number_range(first: Any, last: Any = None, step: Any = None) -> Any:
    """``$range`` with both ends; arguments are truncated, a single number is not an array."""
    if first is None or last is None or step is None:
        return None
    first, last, step = int(first), int(last), int(step)
    if step == 0:
        raise FunctionError("$range: got step 0, wanted any other number")
    numbers = range(first, last + (1 if step > 0 else -1), step)
    if len(numbers) > _MAX_RANGE:
        raise MemoryLimitError
    return Utils.create_sequence_from_iter(numbers) if numbers else None


def text_hash(text: Any, algorithm: Any = None) -> Any:
    """``$hash``: the hexadecimal digest of a text."""
    if text is None or algorithm is None:
        return None
    if algorithm not in _ALGORITHMS:
        raise FunctionError(f"$hash: got {algorithm!r}, wanted one of {', '.join(_ALGORITHMS)}")
    data = text.encode(errors="replace")
    return hashlib.new(_ALGORITHMS[algorithm], data, usedforsecurity=False).hexdigest()


def parse(text: Any) -> Any:
    """``$parse``: the value of a JSON text."""
    if text is None:
        return None
    try:
        return json_value(json.loads(text, parse_constant=_refuse_constant))
    except ValueError:
        raise FunctionError("$parse: the text is no valid JSON") from None


def _refuse_constant(name: str) -> Any:
    raise ValueError(name)


def java_random(seed: int) -> float:
    """Return the result of Java's ``new java.util.Random(seed).nextDouble()``."""
    mask = (1 << 48) - 1
    state = (seed ^ 0x5DEECE66D) & mask
    drawn = []
    for bits in (26, 27):
        state = (state * 0x5DEECE66D + 0xB) & mask
        drawn.append(state >> (48 - bits))
    return ((drawn[0] << 27) + drawn[1]) / (1 << 53)


def seeded(seed: int) -> dict[str, tuple[str, Callable[..., Any]]]:
    """Return name -> signature and function of the functions with a shared random source."""
    rng = random.Random(seed)  # noqa: S311 - not for secrets

    def draw(from_seed: Any = None) -> float:
        return rng.random() if from_seed is None else java_random(int(from_seed))

    def shuffle(values: Any) -> Any:
        if values is None or len(values) <= 1:
            return values
        shuffled = Utils.JList(values)
        rng.shuffle(shuffled)
        return shuffled

    def draw_uuid() -> str:
        return str(uuid.UUID(int=rng.getrandbits(128), version=4))

    return {
        "random": ("<n?:n>", draw),
        "shuffle": ("<a:a>", shuffle),
        "uuid": ("<:s>", draw_uuid),
    }


def json_value(value: Any) -> Any:
    """Convert a JSON value to the evaluator's form.

    Null gets a mark that tells it from a missing value; an integer beyond 64 bits is a double.
    """
    if value is None:
        return Utils.NULL_VALUE
    if isinstance(value, list):
        items = [json_value(item) for item in value]
        return items if any(a is not b for a, b in zip(items, value, strict=True)) else value
    if isinstance(value, dict):
        changed = {key: json_value(item) for key, item in value.items()}
        return changed if any(changed[key] is not value[key] for key in value) else value
    if isinstance(value, int) and not -_MAX_LONG <= value < _MAX_LONG:
        return float(value)
    return value


SERVICE: Final[dict[str, tuple[str, Callable[..., Any]]]] = {
    "partition": ("<an?:a>", partition),
    "range": ("<nn?n?:a>", number_range),
    "hash": ("<s-s?:s>", text_hash),
    "parse": ("<s-:x>", parse),
}
