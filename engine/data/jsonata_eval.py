"""What does one JSONata evaluation yield?

The library, with the functions of ASL and without ``$eval``. Used in this process for tame
expressions and in the child for all others. Imports nothing of this package, so that the child
starts fast. Patterns are RE2: they cannot run away.
"""

from __future__ import annotations

import hashlib
import json
import math
import random
import re
import sys
import uuid
from typing import Any

import re2
from jsonata.jexception import JException
from jsonata.jsonata import Jsonata
from jsonata.utils import Utils

TIMEOUT_MS = 1_000  # AWS: one expression may run for at most a second
STACK = 300
_MAX_RANGE = 1_000
_MAX_TEXT = 8 * 1024 * 1024
_ALGORITHMS = {
    "MD5": "md5",
    "SHA-1": "sha1",
    "SHA-256": "sha256",
    "SHA-384": "sha384",
    "SHA-512": "sha512",
}
_REFERENCE = re.compile(r"\\(?:g<(\d+)>|.)", re.DOTALL)
UNDEFINED = "undefined"
VALUE = "value"
UNSUPPORTED = "unsupported"
ERROR = "error"


class _UnsupportedError(Exception):
    """The result is no JSON value, as a function is none."""


class _RefusedPatternError(Exception):
    """A regular expression that RE2 does not take is used."""


def regex_engine(pattern: str, flags: Any) -> Any:
    """Compile a pattern with RE2; one that it does not take fails where it is used."""
    options = re2.Options()
    options.case_sensitive = not flags.case_insensitive
    options.one_line = not flags.multiline
    options.never_nl = False
    options.log_errors = False
    try:
        return _Pattern(re2.compile(("(?m)" if flags.multiline else "") + pattern, options))
    except re2.error as error:
        (why,) = error.args
        return _RefusedPattern(pattern, why.decode() if isinstance(why, bytes) else str(why))


class _RefusedPattern:
    """Stands for a pattern that RE2 does not take, which is an error once it is evaluated.

    Not when it is parsed: AWS takes more, so the machine around it may well be wanted.
    """

    def __init__(self, pattern: str, why: str) -> None:
        self._pattern = pattern
        self._why = why

    def _refuse(self, *_: Any, **__: Any) -> Any:
        msg = (
            f"The regular expression /{self._pattern}/ is not supported: {self._why}. Patterns are"
            " those of RE2, which cannot run away: no lookahead, no lookbehind, no backreference,"
            " and no repetition, nested ones multiplied, of more than 1000."
        )
        raise _RefusedPatternError(msg)

    search = match = fullmatch = finditer = findall = split = sub = subn = _refuse


class _Pattern:
    """A pattern of RE2 that complains of a group it does not have in the words of ``re``.

    The library reads them: JSONata takes ``$12`` for ``$1`` and a 2 where there is no group 12.
    """

    def __init__(self, pattern: Any) -> None:
        self._pattern = pattern

    def __getattr__(self, name: str) -> Any:
        return getattr(self._pattern, name)

    def sub(self, repl: Any, text: str, count: int = 0) -> str:
        """Replace what matches, as ``re.Pattern.sub`` does."""
        try:
            return str(self._pattern.sub(repl, text, count))
        except IndexError:
            for found in _REFERENCE.finditer(repl if isinstance(repl, str) else ""):
                if found[1] and int(found[1]) > self._pattern.groups:
                    msg = f"invalid group reference {found[1]} at position {found.start()}"
                    raise ValueError(msg) from None
            raise


def compiled(text: str) -> Jsonata:
    """Parse an expression; raise ``JException`` for a syntax error."""
    return Jsonata(text, regex_engine)


def evaluate(
    expression: Jsonata, bindings: dict[str, Any], seed: int, now_ms: int
) -> tuple[str, Any]:
    """Return what an expression yields.

    ``(VALUE, json)``, ``(UNDEFINED, None)``, ``(UNSUPPORTED, None)`` or ``(ERROR, message)``.
    """
    try:
        expression.set_output_convert_nulls(False)
        expression.environment.set_runtime_bounds(TIMEOUT_MS, STACK)
        marked = {
            name: Utils.NULL_VALUE if value is None else value for name, value in bindings.items()
        }
        names = {**_functions(seed, now_ms), **marked}
        result = expression.evaluate(None, names)
        return (UNDEFINED, None) if result is None else (VALUE, _plain(result))
    except _UnsupportedError:
        return UNSUPPORTED, None
    except JException as error:
        return ERROR, _words(error)
    except RecursionError:
        return ERROR, "Stack overflow error"
    except MemoryError:
        return ERROR, "Expression evaluation memory limit exceeded"
    except OverflowError:
        return ERROR, "Number out of range"
    except (ValueError, _RefusedPatternError) as error:
        return ERROR, str(error)
    except Exception as error:  # noqa: BLE001 - the library lets bare errors of Python through
        return ERROR, f"{type(error).__name__}: {error}"


def _words(error: JException) -> str:
    code = getattr(error, "error", "") or ""
    if code == "D1012":
        return "Expression evaluation timeout"
    if code == "D1011":
        return "Stack overflow error"
    return f"{code}: {error}" if code else str(error)


def _plain(value: Any) -> Any:
    """Return plain JSON: no sequences, no marks for null, whole numbers without a fraction."""
    if value is Utils.NULL_VALUE or value is None:
        return None
    if isinstance(value, bool | str):
        return value
    if isinstance(value, int | float) and not abs(value) <= sys.float_info.max:
        raise OverflowError  # as JSONata's numbers are doubles; NaN, too, is none of JSON
    if isinstance(value, int):
        return value
    if isinstance(value, float):
        return int(value) if value.is_integer() and abs(value) < 1e21 else value  # noqa: PLR2004
    if isinstance(value, list | tuple):
        return [_plain(one) for one in value]
    if isinstance(value, dict):
        return {key: _plain(one) for key, one in value.items()}
    raise _UnsupportedError


# -- functions of ASL ------------------------------------------------------------------------------


def _functions(seed: int, now_ms: int) -> dict[str, Any]:
    """Return the functions that AWS adds, over one random source; ``$eval`` is taken away."""
    rng = random.Random(seed)  # noqa: S311 - not for secrets
    del now_ms
    return {
        "partition": Jsonata.JLambda(_partition),
        "range": Jsonata.JLambda(_range),
        "hash": Jsonata.JLambda(_hash),
        "parse": Jsonata.JLambda(_parse),
        "random": Jsonata.JLambda(_random(rng)),
        "uuid": Jsonata.JLambda(lambda: str(uuid.UUID(int=rng.getrandbits(128), version=4))),
        "eval": None,
    }


def _partition(items: Any, size: Any) -> list[list[Any]]:
    whole = math.floor(size)
    if whole < 1:
        raise ValueError(f"$partition: got size {size}, wanted at least 1")
    return [items[start : start + whole] for start in range(0, len(items), whole)]


def _range(first: Any, last: Any, step: Any) -> list[int]:
    first, last, step = math.floor(first), math.floor(last), math.floor(step)
    if step == 0:
        raise ValueError("$range: got step 0, wanted any other number")
    numbers = range(first, last + (1 if step > 0 else -1), step)
    if len(numbers) > _MAX_RANGE:
        raise ValueError(f"$range: got {len(numbers)} numbers, wanted at most {_MAX_RANGE}")
    # a sequence, as JSONata's own functions yield: one number alone collapses to it [recorded]
    sequence: list[int] = Utils.create_sequence()
    sequence.extend(numbers)
    return sequence


def _hash(text: Any, algorithm: Any) -> str:
    if algorithm not in _ALGORITHMS:
        raise ValueError(f"$hash: got {algorithm!r}, wanted one of {', '.join(_ALGORITHMS)}")
    data = text if isinstance(text, str) else json.dumps(text, separators=(",", ":"))
    return hashlib.new(_ALGORITHMS[algorithm], data.encode(), usedforsecurity=False).hexdigest()


def _parse(text: Any) -> Any:
    return json.loads(text)


def _random(rng: random.Random) -> Any:
    def draw(seed: Any = None) -> float:
        return rng.random() if seed is None else random.Random(seed).random()  # noqa: S311

    return draw
