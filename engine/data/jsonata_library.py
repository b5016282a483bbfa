"""The functions of JSONata that the library gets wrong, and those that Step Functions adds."""

from __future__ import annotations

import base64
import binascii
import datetime
import hashlib
import json
import math
import random
import re
import urllib.parse
import uuid
from typing import TYPE_CHECKING, Any, Final

from jsonata.constants import Constants
from jsonata.functions import Functions
from jsonata.jexception import JException
from jsonata.utils import Utils

from engine.data.jsonata_picture import format_number
from engine.data.jsonata_regex import Found, expand_replacement, find_matches
from engine.data.jsonata_text import is_function, value_text

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

MAX_BYTES: Final = 6_990_256  # what one value may hold on AWS: 8 bytes a number, 1 a character
MAX_RANGE: Final = 360_145  # numbers that AWS's $range makes
_MAX_LONG: Final = 2**63
_ALGORITHMS: Final = {
    "MD5": "md5",
    "SHA-1": "sha1",
    "SHA-256": "sha256",
    "SHA-384": "sha384",
    "SHA-512": "sha512",
}


class MemoryLimitError(Exception):
    """A value grows beyond what the service allows one to hold."""


class InternalError(Exception):
    """The service answers "threw an internal error"."""


class FunctionError(Exception):
    """A function of Step Functions refuses its arguments; the text is our own."""


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
    """``$number``; D3030 for a text that is no number of JSON and none of base 2, 8 or 16."""
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
    """``$power``; D3061 for what is no finite number."""
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
    return Functions.round(value, int(precision or 0))


def format_base(value: Any, radix: Any = None) -> Any:
    """``$formatBase`` with a radix from 2 to 36."""
    if radix is not None and not 2 <= radix <= 36:  # noqa: PLR2004 - digits and letters
        raise JException("D3100", -1, radix)
    return Functions.format_base(value, radix)


def sum_of(values: Any) -> Any:
    """``$sum``, added from left to right as doubles are."""
    if values is None:
        return None
    total = 0.0
    for value in values:
        total += value
    return total


def base64_decode(text: Any) -> Any:
    """``$base64decode``; a text that is no base64 is an internal error of the service."""
    if text is None:
        return None
    bare = text.rstrip("=")
    try:
        data = base64.b64decode(bare + "=" * (-len(bare) % 4), validate=True)
        return data.decode()
    except (binascii.Error, ValueError):
        raise InternalError from None


def raise_error(message: Any = None) -> Any:
    """``$error``: D3137 with a message of the author's."""
    raise JException("D3137", -1, "$error() function evaluated" if message is None else message)


# -- addresses -----------------------------------------------------------------------------------

_COMPONENT: Final = "~()*!.'-_"
_URL: Final = ";/?:@&=+$,#" + _COMPONENT


def _encoder(name: str, safe: str) -> Callable[[Any], Any]:
    def encode(text: Any) -> Any:
        if text is None:
            return None
        try:
            return urllib.parse.quote(text, safe=safe)
        except UnicodeEncodeError:
            raise JException("D3140", -1, name, text) from None

    return encode


def _decoder(name: str, reserved: str) -> Callable[[Any], Any]:
    """Return the inverse; of an address the reserved characters stay encoded."""
    kept = re.compile("|".join(f"%{ord(char):02X}" for char in reserved) or r"(?!)", re.IGNORECASE)

    def decode(text: Any) -> Any:
        if text is None:
            return None
        if re.search(r"%(?![0-9A-Fa-f]{2})", text):
            raise JException("D3140", -1, name, text)
        try:
            guarded = kept.sub(lambda match: "%25" + match[0][1:], text)
            return urllib.parse.unquote(guarded, errors="strict")
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
    for found in find_matches(pattern, text, function="match"):
        if limit is not None and len(matches) >= limit:
            break
        matches.append({"match": found.text, "index": found.start, "groups": found.groups})
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
        for found in find_matches(separator, text, function="split"):
            parts.append(text[position : found.start])
            position = found.end
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
    found = (
        _literal_matches(pattern, text)
        if isinstance(pattern, str)
        else find_matches(pattern, text, function="replace")
    )
    parts, position = [], 0
    for count, one_match in enumerate(found):
        if limit is not None and count >= limit:
            break
        parts += [text[position : one_match.start], _replaced(one_match, pattern, replacement)]
        position = one_match.end
    return "".join([*parts, text[position:]])


def _literal_matches(token: str, text: str) -> Any:
    start = text.find(token)
    while start >= 0:
        yield Found(token, start, start + len(token), [])
        start = text.find(token, start + len(token))


def _replaced(found: Found, pattern: Any, replacement: Any) -> str:
    if isinstance(replacement, str):
        literal = isinstance(pattern, str)
        return replacement if literal else expand_replacement(replacement, found)
    seen = {
        "match": found.text,
        "start": found.start,
        "end": found.end,
        "groups": list(found.groups),
    }
    made = Functions.func_apply(replacement, [seen])
    if not isinstance(made, str):
        raise JException("D3012", -1, made)
    return made


# -- arrays --------------------------------------------------------------------------------------


def sort(values: Any, comparator: Any = None) -> Any:
    """``$sort``: stable; ``comparator(left, right)`` tells whether the two change places."""
    if values is None or len(values) <= 1:
        return values
    if comparator is not None:
        return merge_sorted(values, lambda *pair: truthy(Functions.func_apply(comparator, pair)))
    if not (Utils.is_array_of_numbers(values) or Utils.is_array_of_strings(values)):
        raise JException("D3070", -1)
    return Utils.JList(sorted(values))


def truthy(value: Any) -> bool:
    """Tell whether JavaScript takes a value for true."""
    if value is None or value is Utils.NULL_VALUE or value is False:
        return False
    if isinstance(value, int | float):
        return value != 0 and not math.isnan(value)
    return value != "" or not isinstance(value, str)


def merge_sorted(values: Sequence[Any], swap: Callable[[Any, Any], bool]) -> list[Any]:
    """Sort by merging halves, as JSONata does, so that odd comparators yield what they yield."""
    if len(values) <= 1:
        return list(values)
    middle = len(values) // 2
    left, right = merge_sorted(values[:middle], swap), merge_sorted(values[middle:], swap)
    merged: list[Any] = Utils.JList()
    first = second = 0
    while first < len(left) and second < len(right):
        if swap(left[first], right[second]):
            merged.append(right[second])
            second += 1
        else:
            merged.append(left[first])
            first += 1
    merged.extend(left[first:])
    merged.extend(right[second:])
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
    """Return a text that only equal values share."""
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


def type_of(value: Any) -> Any:
    """``$type``: a pattern is a function too."""
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


# -- dates and integers --------------------------------------------------------------------------

_ISO = re.compile(
    r"\d{4}(-[01]\d)*(-[0-3]\d)*(T[0-2]\d:[0-5]\d:[0-5]\d)*(\.\d+)?([+-][0-2]\d:?[0-5]\d|Z)?"
)
_ISO_PARTS = re.compile(
    r"(\d{4})(?:-(\d\d))?(?:-(\d\d))?(?:T(\d\d):(\d\d):(\d\d)(?:\.(\d+))?)?"
    r"(?:Z|([+-])(\d\d):?(\d\d))?"
)
_PICTURE_ERRORS: Final = {
    Constants.ERR_MSG_SEQUENCE_UNSUPPORTED: "D3130",
    Constants.ERR_MSG_DIFF_DECIMAL_GROUP: "D3131",
    Constants.ERR_MSG_UNKNOWN_COMPONENT_SPECIFIER: "D3132",
    Constants.ERR_MSG_INVALID_NAME_MODIFIER: "D3133",
    Constants.ERR_MSG_TIMEZONE_FORMAT: "D3134",
    Constants.ERR_MSG_NO_CLOSING_BRACKET: "D3135",
    Constants.ERR_MSG_MISSING_FORMAT: "D3136",
}
_SUBJECTS: Final = {"D3133": re.compile(r"\[(\w)[Nn]"), "D3130": re.compile(r"(.*)")}
_SPECIFIERS: Final = "YMDdFWwXxHhPmsfZzCE"


def _pictured(function: Callable[..., Any], picture: Any, *values: Any) -> Any:
    """Call a function of the library that reads a picture; turn its errors into JSONata's."""
    try:
        return function(*values)
    except JException:
        raise
    except RuntimeError as error:
        code = _PICTURE_ERRORS.get(str(error))
        if code is None:
            raise
        subject = _SUBJECTS[code].search(picture or "") if code in _SUBJECTS else None
        raise JException(code, -1, subject[1] if subject else None) from None


def _check_specifiers(picture: Any) -> None:
    """Refuse a component that no date has: D3132."""
    for found in re.finditer(r"\[\s*([^\]\s\[])", (picture or "").replace("[[", "")):
        if found[1] not in _SPECIFIERS:
            raise JException("D3132", -1, found[1])


def to_millis(text: Any, picture: Any = None) -> Any:
    """``$toMillis`` of an ISO 8601 text, or of a text by a picture."""
    if text is None:
        return None
    if picture is not None:
        _check_specifiers(picture)
        return _pictured(Functions.datetime_to_millis, picture, text, picture)
    parts = _ISO_PARTS.fullmatch(text)
    try:
        if _ISO.fullmatch(text) and parts:
            return _instant(parts)
    except ValueError:
        pass
    raise JException("D3110", -1, text)


def _instant(parts: re.Match[str]) -> int:
    year, month, day, hour, minute, second, fraction, sign, zone_hours, zone_minutes = parts.groups()
    date = datetime.datetime(
        int(year),
        int(month or 1),
        int(day or 1),
        int(hour or 0),
        int(minute or 0),
        int(second or 0),
        tzinfo=datetime.UTC,
    )
    millis = int(date.timestamp()) * 1000 + int((fraction or "0")[:3].ljust(3, "0"))
    offset = int(zone_hours or 0) * 60 + int(zone_minutes or 0)
    return millis - (-offset if sign == "-" else offset) * 60_000


def from_millis(millis: Any, picture: Any = None, timezone: Any = None) -> Any:
    """``$fromMillis`` by a picture, ISO 8601 without one."""
    if millis is None:
        return None
    if picture is not None:
        _check_specifiers(picture)
    return _pictured(Functions.datetime_from_millis, picture, millis, picture, timezone)


def now(picture: Any = None, timezone: Any = None) -> Any:
    """``$now`` by a picture."""
    return from_millis(Functions.millis(), picture, timezone)


def picture_number(value: Any, picture: Any, options: Any = None) -> Any:
    """``$formatNumber``."""
    return None if value is None else format_number(value, picture, options)


def format_integer(value: Any, picture: Any) -> Any:
    """``$formatInteger``."""
    if value is None:
        return None
    whole = _exact_integer(value)
    if abs(whole) >= _MANY and picture.partition(";")[0] in _TRILLIONS:
        return _many_words(whole, picture)
    return _pictured(Functions.format_integer, picture, whole, picture)


_MANY: Final = 10**15  # from here on the library's words are wrong
_TRILLION: Final = 10**12
_TRILLIONS: Final = {"w": " trillion", "W": " TRILLION", "Ww": " Trillion"}


def _many_words(whole: int, picture: str) -> str:
    """Write a very large number in words, as so many trillions and the rest."""
    style = picture.partition(";")[0]
    trillions, rest = divmod(abs(whole), _TRILLION)
    words = ("minus " if whole < 0 else "") + format_integer(trillions, style) + _TRILLIONS[style]
    if rest == 0:
        return words
    join = " and " if rest < 100 else ", "  # noqa: PLR2004 - as English writes it
    return words + join + str(format_integer(rest, picture))


def _exact_integer(value: float) -> int:
    """Return the integer whose digits are those that the number is written with."""
    whole = math.floor(value)
    digits = f"{whole:.17g}" if abs(whole) < 10**17 else repr(float(whole))
    mantissa, _, exponent = digits.partition("e")
    if not exponent:
        return whole
    number, _, rest = mantissa.partition(".")
    return int(number + rest) * 10 ** (int(exponent) - len(rest))


def parse_integer(text: Any, picture: Any) -> Any:
    """``$parseInteger``; NaN for a text that the picture does not read."""
    if text is None:
        return None
    try:
        return _pictured(Functions.parse_integer, picture, text, picture)
    except (ValueError, KeyError, IndexError, AttributeError):
        return math.nan


# -- functions of Step Functions -------------------------------------------------------------------


def partition(items: Any, size: Any = None) -> Any:
    """``$partition``: chunks of a size that is cut to a whole number."""
    if not items or size is None:
        return None
    whole = int(size)
    if whole < 0:
        raise FunctionError(f"$partition: got size {whole}, wanted at least 1")
    if whole == 0:
        return None
    return [list(items[start : start + whole]) for start in range(0, len(items), whole)]


def number_range(first: Any, last: Any = None, step: Any = None) -> Any:
    """``$range`` with both ends; arguments are cut to whole numbers, one number stands alone."""
    if first is None or last is None or step is None:
        return None
    first, last, step = int(first), int(last), int(step)
    if step == 0:
        raise FunctionError("$range: got step 0, wanted any other number")
    numbers = range(first, last + (1 if step > 0 else -1), step)
    if len(numbers) > MAX_RANGE:
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


def json_value(value: Any) -> Any:
    """Return a value of JSON as the evaluator wants it.

    Null is marked, so that it is not taken for nothing; an integer that no long holds is a double.
    """
    if value is None:
        return Utils.NULL_VALUE
    if isinstance(value, list):
        made = [json_value(item) for item in value]
        return made if any(a is not b for a, b in zip(made, value, strict=True)) else value
    if isinstance(value, dict):
        changed = {key: json_value(item) for key, item in value.items()}
        return changed if any(changed[key] is not value[key] for key in value) else value
    if isinstance(value, int) and not -_MAX_LONG <= value < _MAX_LONG:
        return float(value)
    return value


def java_random(seed: int) -> float:
    """Return what ``new java.util.Random(seed).nextDouble()`` does."""
    mask = (1 << 48) - 1
    state = (seed ^ 0x5DEECE66D) & mask
    drawn = []
    for bits in (26, 27):
        state = (state * 0x5DEECE66D + 0xB) & mask
        drawn.append(state >> (48 - bits))
    return ((drawn[0] << 27) + drawn[1]) / (1 << 53)


def seeded(seed: int) -> dict[str, tuple[str, Callable[..., Any]]]:
    """Return name -> signature and function of those that draw from the execution's random source."""
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
    "type": ("<x:s>", type_of),
    "keys": ("<x-:a<s>>", keys_of),
    "toMillis": ("<s-s?:n>", to_millis),
    "fromMillis": ("<n-s?s?:s>", from_millis),
    "now": ("<s?s?:s>", now),
    "formatNumber": ("<n-so?:s>", picture_number),
    "formatInteger": ("<n-s:s>", format_integer),
    "parseInteger": ("<s-s:n>", parse_integer),
    "partition": ("<an?:a>", partition),
    "range": ("<nn?n?:a>", number_range),
    "hash": ("<s-s?:s>", text_hash),
    "parse": ("<s-:x>", parse),
}
