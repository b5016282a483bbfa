"""Regular expressions of JSONata: RE2 patterns (matched in linear time) and matcher functions."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, NamedTuple

import re2
from jsonata.functions import Functions
from jsonata.jexception import JException
from jsonata.utils import Utils

if TYPE_CHECKING:
    from collections.abc import Iterator


class RefusedPatternError(Exception):
    """The expression uses a regular expression that RE2 does not support."""


class Found(NamedTuple):
    """A match: its text, start, end and groups."""

    text: str
    start: int
    end: int
    groups: list[Any]


def regex_engine(pattern: str, flags: Any) -> Any:
    """Compile a pattern with RE2; an unsupported pattern fails when the expression uses it."""
    options = re2.Options()
    options.case_sensitive = not flags.case_insensitive
    options.one_line = not flags.multiline
    options.never_nl = False
    options.log_errors = False
    try:
        return re2.compile(("(?m)" if flags.multiline else "") + pattern, options)
    except re2.error as error:
        (why,) = error.args
        return _RefusedPattern(pattern, why.decode() if isinstance(why, bytes) else str(why))


class _RefusedPattern:
    """A pattern that RE2 does not support: its use raises an error, parsing does not.

    AWS supports more patterns, so the rest of the machine must remain usable.
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
        raise RefusedPatternError(msg)

    search = match = fullmatch = finditer = findall = split = sub = subn = _refuse


def find_matches(matcher: Any, text: str, *, function: str) -> Iterator[Found]:
    """Yield the matches of a pattern or of a matcher function in a text.

    ``function``: the calling built-in function, for T1010. Raise D1004 for an empty match.
    """
    if not Functions.is_regex(matcher):
        yield from _called_matches(matcher, text, function)
        return
    for match in matcher.finditer(text):
        if match.start() == match.end():
            raise JException("D1004", -1, match.group())
        groups = [Utils.NULL_VALUE if group is None else group for group in match.groups()]
        yield Found(match.group(), match.start(), match.end(), groups)


def _called_matches(matcher: Any, text: str, function: str) -> Iterator[Found]:
    """Yield the matches of a matcher function (JSONata's protocol)."""
    answer = Functions.func_apply(matcher, [text])
    while answer is not None:
        if not _is_match(answer):
            raise JException("T1010", -1, function)
        groups = list(answer["groups"])
        yield Found(answer["match"], int(answer["start"]), int(answer["end"]), groups)
        answer = Functions.func_apply(answer["next"], [])


def _is_match(answer: Any) -> bool:
    return (
        isinstance(answer, dict)
        and isinstance(answer.get("start"), int | float)
        and isinstance(answer.get("end"), int | float)
        and isinstance(answer.get("groups"), list)
        and (Functions.is_lambda(answer.get("next")) or hasattr(answer.get("next"), "call"))
    )


_REFERENCE = re.compile(r"\$(\$|\d+)")


def expand_replacement(template: str, occurrence: Found) -> str:
    """Return a replacement with ``$$``, ``$0`` and ``$1`` filled in.

    ``$12`` means group 12 if it exists, else group 1 and the character 2.
    """

    def expand(match: re.Match[str]) -> str:
        digits = match[1]
        if digits == "$":
            return "$"
        if digits.startswith("0"):
            return occurrence.text + digits[1:]
        width = len(str(len(occurrence.groups))) if occurrence.groups else 1
        for length in range(min(width, len(digits)), 0, -1):
            if int(digits[:length]) <= len(occurrence.groups):
                group = occurrence.groups[int(digits[:length]) - 1]
                return ("" if group is Utils.NULL_VALUE else str(group)) + digits[length:]
        return digits[1:]

    return _REFERENCE.sub(expand, template)
