"""JSONata's functions that parse and format dates and integers by a picture (``[Y]-[M]-[D]``)."""

from __future__ import annotations

import datetime as dt
import math
import re
from typing import TYPE_CHECKING, Any, Final

from jsonata.constants import Constants
from jsonata.functions import Functions
from jsonata.jexception import JException

if TYPE_CHECKING:
    from collections.abc import Callable

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
_EXACT: Final = 2**53  # above this, a double represents several integers
_SPECIFIERS: Final = "YMDdFWwXxHhPmsfZzCE"


def _call_with_picture(function: Callable[..., Any], picture: Any, *values: Any) -> Any:
    """Call a library function that parses a picture; convert its errors to JSONata's."""
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
    """Raise D3132 for an unknown date component in a picture."""
    for match in re.finditer(r"\[\s*([^\]\s\[])", (picture or "").replace("[[", "")):
        if match[1] not in _SPECIFIERS:
            raise JException("D3132", -1, match[1])


def to_millis(text: Any, picture: Any = None) -> Any:
    """``$toMillis``: parse an ISO 8601 text, or a text by a picture."""
    if text is None:
        return None
    if picture is not None:
        _check_specifiers(picture)
        return _call_with_picture(Functions.datetime_to_millis, picture, text, picture)
    parts = _ISO_PARTS.fullmatch(text)
    try:
        if _ISO.fullmatch(text) and parts:
            return _instant(parts)
    except ValueError:
        pass
    raise JException("D3110", -1, text)


def _instant(parts: re.Match[str]) -> int:
    whole = (int(part or least) for part, least in zip(parts.groups(), _LEAST, strict=False))
    year, month, day, hour, minute, second = whole
    date = dt.datetime(year, month, day, hour, minute, second, tzinfo=dt.UTC)
    fraction, sign, hours, minutes = parts.groups()[len(_LEAST) :]
    millis = int(date.timestamp()) * 1000 + int((fraction or "0")[:3].ljust(3, "0"))
    offset = int(hours or 0) * 60 + int(minutes or 0)
    return millis - (-offset if sign == "-" else offset) * 60_000


_LEAST: Final = (1, 1, 1, 0, 0, 0)


def from_millis(millis: Any, picture: Any = None, timezone: Any = None) -> Any:
    """``$fromMillis``: format a time by a picture, without one as ISO 8601."""
    if millis is None:
        return None
    if picture is not None:
        _check_specifiers(picture)
    return _call_with_picture(Functions.datetime_from_millis, picture, millis, picture, timezone)


def current_date(picture: Any = None, timezone: Any = None) -> Any:
    """``$now``: the current time, formatted by a picture."""
    return from_millis(Functions.millis(), picture, timezone)


def format_integer(value: Any, picture: Any) -> Any:
    """``$formatInteger``."""
    if value is None:
        return None
    whole = _exact_integer(value)
    if abs(whole) >= _MANY and picture.partition(";")[0] in _TRILLIONS:
        return _many_words(whole, picture)
    return _call_with_picture(Functions.format_integer, picture, whole, picture)


_MANY: Final = 10**15  # from here on the library's words are wrong
_TRILLION: Final = 10**12
_TRILLIONS: Final = {"w": " trillion", "W": " TRILLION", "Ww": " Trillion"}


def _many_words(whole: int, picture: str) -> Any:
    """Spell out a very large number: a count of trillions and the rest."""
    style = picture.partition(";")[0]
    trillions, rest = divmod(abs(whole), _TRILLION)
    words = ("minus " if whole < 0 else "") + format_integer(trillions, style) + _TRILLIONS[style]
    if rest == 0:
        return words
    join = " and " if rest < 100 else ", "  # noqa: PLR2004 - as English writes it
    return words + join + str(format_integer(rest, picture))


def _exact_integer(value: float) -> int:
    """Return a number as an integer, by its decimal digits."""
    whole = math.floor(value)
    digits = f"{whole:.17g}" if abs(whole) < 10**17 else repr(float(whole))
    mantissa, _, exponent = digits.partition("e")
    if not exponent:
        return whole
    number, _, rest = mantissa.partition(".")
    scale: int = 10 ** (int(exponent) - len(rest))
    return int(number + rest) * scale


def parse_integer(text: Any, picture: Any) -> Any:
    """``$parseInteger``; NaN for a text that does not match the picture."""
    if text is None:
        return None
    try:
        whole = _call_with_picture(Functions.parse_integer, picture, text, picture)
    except (ValueError, KeyError, IndexError, AttributeError):
        return math.nan
    try:
        return float(whole) if isinstance(whole, int) and abs(whole) >= _EXACT else whole
    except OverflowError:
        return math.inf
