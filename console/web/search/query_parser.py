"""Parse a search: ``state = Charge card duration > 10 m "two words"``.

Whatever is not understood is refused with what stands where, and what could stand there.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

from console.statuses import ExecutionStatus
from console.web.core.formatting import LISTED, visible_text
from console.web.search.moments import parse_moment_or_age, parse_span
from console.web.search.query import (
    PAYLOADS,
    TEXTS,
    Operator,
    PayloadSearch,
    SearchCondition,
)

if TYPE_CHECKING:
    from collections.abc import Iterable

_STRING = r'"(?:[^"\\]|\\.)*"'
_STEP = rf"\.[\w-]+|\[\d+\]|\[{_STRING}\]"
_BEGINNING = rf"(?P<field>\w+)(?P<path>(?:{_STEP})*)\s*(?P<operator>!=|>=|<=|=|>|<|~)\s*"
_CONDITION = re.compile(_BEGINNING)
_VALUE = re.compile(rf"(?P<quoted>{_STRING})(?=\s|$)|[^\s\"=<>~]\S*")
_UNIT = r"(?:ms|min|s|m|h|d)"
_SPAN = re.compile(rf"\d+(?:\.\d+)?(?:\s*{_UNIT})?(?=\s|$)(?:\s+ago(?=\s|$))?", re.IGNORECASE)
_DATE = re.compile(r"\d{4}-\d\d-\d\d(?:[ T]\d\d:\d\d\S*)?(?=\s|$)")
_END = re.compile(rf'(?<=\s)(?:{_BEGINNING}|")')
_WORD = re.compile(rf"(?P<phrase>{_STRING})(?=\s|$)|\S+")
_MOMENTS, _SPANS = ("started", "ended"), ("duration", "age")
_COMPARED = (*TEXTS, "by")
_ORDER = (Operator.ABOVE, Operator.AT_LEAST, Operator.BELOW, Operator.AT_MOST)
_SAME = (Operator.EQUALS, Operator.DIFFERS)
_TEXT = (*_SAME, Operator.CONTAINS)
_OPERATORS: dict[str, tuple[Operator, ...]] = {
    **dict.fromkeys(PAYLOADS, tuple(Operator)),
    **dict.fromkeys((*_COMPARED, "state"), _TEXT),
    **dict.fromkeys((*_MOMENTS, *_SPANS), _ORDER),
    "status": _SAME,
    "redrives": (*_SAME, *_ORDER),
    "caught": (Operator.EQUALS, Operator.CONTAINS),
    "history": (Operator.CONTAINS,),
}
"""Field -> the operators that it can stand before."""
_WANTED = (
    "wanted input.path, output.path, error, cause, name, state, caught, history, status, started,"
    " ended, duration, age, by or redrives before =, !=, ~, > or <"
)


def parse_search(text: str) -> PayloadSearch:
    """Read what was typed; raise ``ValueError`` with words for the reader."""
    conditions: list[SearchCondition] = []
    words: list[str] = []
    place = 0
    while place < len(text):
        begun = _CONDITION.match(text, place)
        word = _WORD.match(text, place)
        if begun is not None and _is_condition(begun):
            condition, place = _condition(text, begun)
            conditions.append(condition)
        elif word is not None:
            words.append(_word(text, word))
            place = word.end()
        else:  # a blank
            place += 1
    return PayloadSearch(tuple(conditions), tuple(words))


def _is_condition(match: re.Match[str]) -> bool:
    """Tell whether a condition was meant: ``a>b`` and ``->`` may be a part of a text."""
    glued = not re.search(r"\s", match[0])
    return match["field"] in _OPERATORS or not glued or "=" in match["operator"]


def _word(text: str, match: re.Match[str]) -> str:
    word = match[0]
    if match["phrase"]:
        return _unquoted(word)
    if "=" in word or word in tuple(Operator):
        raise _problem(text, *match.span(), f"{_WANTED}, and a value after it")
    return word


def _condition(text: str, match: re.Match[str]) -> tuple[SearchCondition, int]:
    """Read a condition from where it begins; return it, and where it ends."""
    field, path = match["field"], match["path"]
    operator = Operator(match["operator"])
    _check(text, match, field, path, operator)
    value, end = _read_value(text, match.end(), field)
    if not value:
        wanted = f"{_WANTED}, and a value after it"
        raise _problem(text, match.start(), end, wanted, _wanted_value(field))
    try:
        parsed, or_text = _parse_value(field, value)
    except ValueError as error:
        msg = f"At character {match.end() + 1}: {error}"
        raise ValueError(msg) from None
    steps = _parse_path(path)
    return SearchCondition(field, steps, parsed, or_text, operator, _unquoted(value)), end


def _check(text: str, match: re.Match[str], field: str, path: str, operator: Operator) -> None:
    """Refuse a field that does not exist, or an operator that it cannot stand before."""
    start, end = match.start(), match.end()
    known = field in _OPERATORS and (not path or field in PAYLOADS)
    if not known or (field in PAYLOADS and not path and operator is not Operator.CONTAINS):
        raise _problem(text, start, end, _WANTED)
    if operator not in _OPERATORS[field]:
        raise _problem(text, start, end, f"wanted {_offered(_OPERATORS[field])} after {field}")


def _read_value(text: str, place: int, field: str) -> tuple[str, int]:
    """Return the text of a value, "" if there is none, and where it ends."""
    shapes = (_SPAN, _DATE, _VALUE) if field in (*_MOMENTS, *_SPANS) else (_VALUE,)
    match = next((match for shape in shapes if (match := shape.match(text, place))), None)
    if match is None:
        return "", place
    if field == "state" and not match["quoted"]:  # the names of states have blanks
        end = min((match.start() for match in _ends(text, match.end())), default=len(text))
        return text[place:end].strip(), end
    return match[0], match.end()


def _ends(text: str, place: int) -> Iterable[re.Match[str]]:
    """Yield where a value with blanks may end: before a condition or a text in quotes."""
    for match in _END.finditer(text, place):
        if not match["field"] or _is_condition(match):
            yield match


def _parse_value(field: str, text: str) -> tuple[Any, str | None]:
    """Return the value meant, and the text that would do as well."""
    plain = _unquoted(text)
    if field in PAYLOADS:
        return _parse_json(text)
    if field in _MOMENTS:
        return parse_moment_or_age(plain), None
    if field in _SPANS:
        return parse_span(plain), None
    if field == "status":
        return _parse_status(plain), None
    if field == "redrives":
        return _parse_number(plain), None
    return plain, None


def _parse_json(text: str) -> tuple[Any, str | None]:
    if text.startswith('"'):
        return _unquoted(text), None
    try:
        value = json.loads(text)
    except ValueError:
        return text, None
    return (text, None) if isinstance(value, list | dict) else (value, text)


def _parse_status(text: str) -> str:
    written = text.upper().replace(" ", "_")
    if written not in LISTED:
        msg = f"Got “{visible_text(text[:40])}”, wanted a status: {', '.join(LISTED)}."
        raise ValueError(msg)
    return ExecutionStatus(written)


def _parse_number(text: str) -> int:
    if not re.fullmatch(r"\d{1,9}", text):
        msg = f"Got “{visible_text(text[:40])}”, wanted a whole number."
        raise ValueError(msg)
    return int(text)


def parse_path(text: str) -> tuple[str | int, ...]:
    """Return the steps of a path such as ``order.items[0].sku`` or ``$.order``.

    Raise ``ValueError`` with words for the reader.
    """
    path = text.removeprefix("$").removeprefix("input.")
    path = path if path.startswith((".", "[")) else f".{path}"
    if not re.fullmatch(rf"(?:{_STEP})+", path):
        msg = f"Got “{visible_text(text[:40])}”, wanted a path such as order.items[0].sku."
        raise ValueError(msg)
    return _parse_path(path)


def _parse_path(path: str) -> tuple[str | int, ...]:
    steps: list[str | int] = []
    for step in re.findall(_STEP, path):
        inner = step[1:] if step[0] == "." else step[1:-1]
        steps.append(int(inner) if step[0] == "[" and inner.isdecimal() else _unquoted(inner))
    return tuple(steps)


def _wanted_value(field: str) -> str:
    """Return an example of what can stand after a field."""
    if field in _MOMENTS:
        return " such as 2026-11-21 or 2 h ago"
    return " such as 10 m" if field in _SPANS else ""


def _problem(text: str, start: int, end: int, wanted: str, example: str = "") -> ValueError:
    got = visible_text(text[start:end].strip()[:60])
    return ValueError(f"At character {start + 1}, got “{got}”: {wanted}{example}.")


def _offered(operators: Iterable[Operator]) -> str:
    *first, last = operators
    return f"{', '.join(first)} or {last}" if first else last


def _unquoted(text: str) -> str:
    if not text.startswith('"'):
        return text
    try:
        return str(json.loads(text))
    except ValueError:
        return text[1:-1]
