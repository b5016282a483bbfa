"""Parse a search: ``state = Charge card and duration > 10 m "two words"``.

Conditions and words stand side by side or with ``and`` between them; all must match. Unsupported
grammar (``or``, ``not``, ``in``, parentheses) is refused with its position and an alternative;
otherwise it would be searched as text.
"""

from __future__ import annotations

import json
import re
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any

from console.statuses import ExecutionStatus
from console.web.core.formatting import LISTED, visible_text
from console.web.search.moments import (
    DAY_WORDS,
    UNIT,
    parse_moment,
    parse_period,
    parse_span,
)
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
_NAME = rf"(?P<field>(?:\$\.?)?\w+)(?P<path>(?:{_STEP})*)"
_BEGINNING = rf"{_NAME}\s*(?P<operator>!=|>=|<=|=|>|<|~)\s*"
_CONDITION = re.compile(_BEGINNING)
_VALUE = re.compile(rf"(?P<quoted>{_STRING})(?=\s|$)|[^\s\"=<>~]\S*")
_SPAN = re.compile(
    rf"(?:an?|\d+(?:\.\d+)?)(?:\s*{UNIT})?(?=\s|$)(?:\s+ago(?=\s|$))?", re.IGNORECASE
)
_DATE = re.compile(
    rf"\d{{4}}-\d\d-\d\d(?:[ T]\d\d:\d\d\S*)?(?=\s|$)|{DAY_WORDS}(?:\s+\d+:\S*)?(?=\s|$)",
    re.IGNORECASE,
)
_END = re.compile(rf'(?<=\s)(?:{_BEGINNING}|")')
_WORD = re.compile(rf"(?P<phrase>{_STRING})(?=\s|$)|\S+")
_NEXT = re.compile(r"\s+(?P<word>\S+)")
_MOMENTS, _SPANS = ("started", "ended"), ("duration", "age")
_COMPARED = (*TEXTS, "by")
_ORDER = (Operator.ABOVE, Operator.AT_LEAST, Operator.BELOW, Operator.AT_MOST)
_SAME = (Operator.EQUALS, Operator.DIFFERS)
_TEXT = (*_SAME, Operator.CONTAINS)
_OPERATORS: dict[str, tuple[Operator, ...]] = {
    **dict.fromkeys(PAYLOADS, tuple(Operator)),
    **dict.fromkeys((*_COMPARED, "state"), _TEXT),
    **dict.fromkeys(_MOMENTS, (*_ORDER, Operator.EQUALS)),
    **dict.fromkeys(_SPANS, _ORDER),
    "status": _SAME,
    "redrives": (*_SAME, *_ORDER),
    "caught": (Operator.EQUALS, Operator.CONTAINS),
    "history": (Operator.CONTAINS,),
}
"""Field -> the operators that it supports."""
_AND = ("and", "&&")
_OTHER_GRAMMAR = ("or", "||", "|", "not", "!", "xor", "&", ",", ";")
_VERBS = (
    *("is", "isn't", "has", "in", "between", "like", "contains", "equals", "matches"),
    *("after", "before", "since", "until", "from", "not"),
)
"""Comparison words of other query languages, as in ``status is FAILED``."""
_ALL_HOLD = "All conditions must hold. Write them side by side or with “and” between them"
_NO_OR = f"{_ALL_HOLD}. {{}} is not supported. Put a text with the word in quotes"
_NO_GROUP = f"{_ALL_HOLD}. Parentheses are not supported. Put a text with parentheses in quotes"
_NO_LIST = (
    "Enter one value after =, !=, ~, >, >=, < or <=. Lists of values are not supported. Select"
    " several statuses below the search, or search for each value"
)
_WANTED = (
    "Enter input.path, output.path, error, cause, name, state, caught, history, status, started,"
    " ended, duration, age, by or redrives before =, !=, ~, > or <"
)


def parse_search(text: str) -> PayloadSearch:
    """Parse a typed search; raise ``ValueError`` with a message for the reader."""
    conditions: list[SearchCondition] = []
    words: list[str] = []
    place, joint = 0, (0, 0)
    while place < len(text):
        begun = _CONDITION.match(text, place)
        word = _WORD.match(text, place)
        if begun is not None and _is_condition(begun):
            more, place = _condition(text, begun)
            conditions.extend(more)
        elif word is not None and word[0].lower() in _AND:
            if joint[1] or not (conditions or words):
                raise _lonely_and(text, word.span())
            joint, place = word.span(), word.end()
            continue
        elif word is not None:
            _check_word(text, word)
            words.append(_word(text, word))
            place = word.end()
        else:  # a blank
            place += 1
            continue
        joint = (0, 0)
    if joint[1]:
        raise _lonely_and(text, joint)
    return PayloadSearch(tuple(conditions), tuple(words))


def _lonely_and(text: str, span: tuple[int, int]) -> ValueError:
    return _problem(text, *span, "Enter a condition or a text on both sides, or put it in quotes")


def _check_word(text: str, match: re.Match[str]) -> None:
    """Refuse a bare word of unsupported grammar, such as ``or``."""
    word = match[0]
    if match["phrase"]:
        return
    if word.lower() in _OTHER_GRAMMAR:
        raise _problem(text, *match.span(), _NO_OR.format(f"“{word.lower()}”"))
    grouped = _CONDITION.match(text, match.start() + len(word) - len(word.lstrip("(!-")))
    if word[0] in "(!-" and grouped is not None and grouped["field"] in _OPERATORS:
        raise _problem(
            text, *match.span(), _NO_GROUP if word[0] == "(" else _NO_OR.format("Negation")
        )
    if re.match(r"in\s*[(\[]", text[match.start() :], re.IGNORECASE):
        raise _problem(text, *match.span(), _NO_LIST)
    _check_field_word(text, match)


def _check_field_word(text: str, match: re.Match[str]) -> None:
    """Refuse a field with an unknown operator: ``status is FAILED``, ``status:FAILED``."""
    field = re.match(rf"{_NAME}(?P<rest>.*)", match[0])
    if field is None or field["field"] not in _OPERATORS:
        return
    name, rest = f"{field['field']}{field['path']}", field["rest"]
    if rest.startswith(":") and (field["path"] or len(rest) > 1):
        hint = f"Enter {name} = …, or put the text in quotes"
        raise _problem(text, *match.span(), hint)
    after = _NEXT.match(text, match.end())
    verb = after["word"].lower().partition("(")[0] if after else ""
    dated = name in _MOMENTS and after and _DATE.match(text, after.start("word"))
    if rest or not (field["path"] or verb in _VERBS or dated):
        return
    operators = f"Enter {_offered(_OPERATORS[field['field']])} after {name}"
    hint = _NO_LIST if verb in ("in", "between") else f"{operators}, or put the text in quotes"
    raise _problem(text, match.start(), after.end() if after else match.end(), hint)


def _is_condition(match: re.Match[str]) -> bool:
    """Whether a match is a condition: ``a>b`` of an unknown field ``a`` is plain text."""
    glued = not re.search(r"\s", match[0])
    return match["field"] in _OPERATORS or not glued or "=" in match["operator"]


def _word(text: str, match: re.Match[str]) -> str:
    word = match[0]
    if match["phrase"]:
        return _unquoted(word)
    if "=" in word or word in tuple(Operator):
        raise _problem(text, *match.span(), f"{_WANTED}, and a value after it")
    return word


def _condition(text: str, match: re.Match[str]) -> tuple[list[SearchCondition], int]:
    """Parse a condition; return its parts and its end."""
    field, path = match["field"], match["path"]
    operator = Operator(match["operator"])
    _check_condition(text, match, field, path, operator)
    value, end = _read_value(text, match.end(), field)
    if not value:
        hint = f"{_WANTED}, and a value after it"
        raise _problem(text, match.start(), end, hint, _wanted_value(field))
    _check_value(text, value, match.end(), end)
    if field in _MOMENTS and operator is Operator.EQUALS:
        return _period_conditions(text, match, _unquoted(value)), end
    try:
        parsed, or_text = _parse_value(field, value)
    except ValueError as error:
        msg = f"At character {match.end() + 1}: {error}"
        raise ValueError(msg) from None
    steps = _parse_path(path)
    return [SearchCondition(field, steps, parsed, or_text, operator, _unquoted(value))], end


def _check_value(text: str, value: str, start: int, end: int) -> None:
    """Refuse a bare value that other languages read as grammar."""
    if value.startswith('"'):
        return
    words = value.lower().split()
    if len(words) == 1 and words[0] in (*_AND, *_OTHER_GRAMMAR):
        raise _problem(text, start, end, f'Enter a value, or use quotes: "{value}"')
    if value[0] == "(" or (value[-1] in ",;" and text[end:].strip()):
        raise _problem(text, start, end, f"{_NO_LIST}, or put the value in quotes")
    if set(words) & {*_AND, *_OTHER_GRAMMAR}:  # names of states may contain blanks
        hint = f"{_ALL_HOLD}. A name with “and”, “or” or “not” needs quotes"
        raise _problem(text, start, end, hint)


def _period_conditions(text: str, match: re.Match[str], value: str) -> list[SearchCondition]:
    """Return the two conditions for a time within a day, week or month."""
    period = parse_period(value)
    if period is None:
        hint = f"Enter {_offered(_ORDER)} after {match['field']}; = needs a day such as today"
        raise _problem(text, match.start(), match.end(), hint)
    return [
        SearchCondition(match["field"], (), moment, None, operator, value)
        for moment, operator in (
            (period.start_ms, Operator.AT_LEAST),
            (period.end_ms, Operator.BELOW),
        )
    ]


def _check_condition(
    text: str, match: re.Match[str], field: str, path: str, operator: Operator
) -> None:
    """Refuse an unknown field, or an operator the field does not support."""
    start, end = match.start(), match.end()
    supported = field in _OPERATORS and (not path or field in PAYLOADS)
    if field not in _OPERATORS:
        raise _unknown_field(match)
    if not supported or (field in PAYLOADS and not path and operator is not Operator.CONTAINS):
        raise _problem(text, start, end, _WANTED)
    if operator not in _OPERATORS[field]:
        raise _problem(text, start, end, f"Enter {_offered(_OPERATORS[field])} after {field}")


def _unknown_field(match: re.Match[str]) -> ValueError:
    """Return the error for an unknown field, with the closest known field."""
    field, path = match["field"], match["path"]
    name = field.removeprefix("$").removeprefix(".")
    close = get_close_matches(name.lower(), _OPERATORS, 1, 0.8)
    root, inner = close[0] if close else "", name and f".{name}"
    suggestion = root if root and (not path or root in PAYLOADS) else f"input{inner}"
    field_text = visible_text(f"{field}{path}"[:60])
    return ValueError(
        f"At character {match.start() + 1}: “{field_text}” is not a field. Did you mean"
        f" {visible_text(f'{suggestion}{path}'[:60])}?"
    )


def _read_value(text: str, place: int, field: str) -> tuple[str, int]:
    """Return the text of a value, "" without one, and its end."""
    shapes = (_SPAN, _DATE, _VALUE) if field in (*_MOMENTS, *_SPANS) else (_VALUE,)
    match = next((match for shape in shapes if (match := shape.match(text, place))), None)
    if match is None:
        return "", place
    if field == "state" and not match["quoted"]:  # names of states may contain blanks
        end = min((match.start() for match in _ends(text, match.end())), default=len(text))
        joined = re.search(r"\s+(?:and|&&)\s+$", text[place:end], re.IGNORECASE)
        end = place + joined.start() if joined and end < len(text) else end
        return text[place:end].strip(), end
    return match[0], match.end()


def _ends(text: str, place: int) -> Iterable[re.Match[str]]:
    """Yield the matches before which a value with blanks may end: conditions and quoted texts."""
    for match in _END.finditer(text, place):
        if not match["field"] or _is_condition(match):
            yield match


def _parse_value(field: str, text: str) -> tuple[Any, str | None]:
    """Return the parsed value, and a text that also matches: ``10`` finds 10 and "10"."""
    plain = _unquoted(text)
    if field in PAYLOADS:
        return _parse_json(text)
    if field in _MOMENTS:
        return parse_moment(plain), None
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
        msg = f"“{visible_text(text[:40])}” is not a status. Use {', '.join(LISTED)}."
        raise ValueError(msg)
    return ExecutionStatus(written)


def _parse_number(text: str) -> int:
    if not re.fullmatch(r"\d{1,9}", text):
        msg = f"“{visible_text(text[:40])}” is not a whole number."
        raise ValueError(msg)
    return int(text)


def parse_path(text: str) -> tuple[str | int, ...]:
    """Return the steps of a path such as ``order.items[0].sku`` or ``$.order``.

    Raise ``ValueError`` with a message for the reader.
    """
    path = text.removeprefix("$").removeprefix("input.")
    path = path if path.startswith((".", "[")) else f".{path}"
    if not re.fullmatch(rf"(?:{_STEP})+", path):
        msg = f"“{visible_text(text[:40])}” is not a path such as order.items[0].sku."
        raise ValueError(msg)
    return _parse_path(path)


def _parse_path(path: str) -> tuple[str | int, ...]:
    steps: list[str | int] = []
    for step in re.findall(_STEP, path):
        inner = step[1:] if step[0] == "." else step[1:-1]
        steps.append(int(inner) if step[0] == "[" and inner.isdecimal() else _unquoted(inner))
    return tuple(steps)


def _wanted_value(field: str) -> str:
    """Return an example of a value for a field."""
    if field in _MOMENTS:
        return " such as 2026-11-21, yesterday or 2 h ago"
    return " such as 10 m" if field in _SPANS else ""


def _problem(text: str, start: int, end: int, hint: str, example: str = "") -> ValueError:
    part = visible_text(text[start:end].strip()[:60])
    return ValueError(f"At character {start + 1}, “{part}” cannot be read. {hint}{example}.")


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
