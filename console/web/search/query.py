"""Search inside executions: for a text, or for a value at a path of input or output.

``input.orderId = 4711 error = Late "two words"``: every condition and every word must hold. The
database throws out what surely does not match, by parts of its text; the rest is parsed, so what is
found is exact: a number matches however it is written, a key however it is escaped.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from django.db.models import Q

from console.statuses import ExecutionStatus
from console.web.core.formatting import visible_text

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

PAYLOADS = ("input", "output")
COLUMNS = {"input": "input", "output": "output", "state": "runrow__snapshot"}
_PLAIN = ("error", "cause", "name")
ANYWHERE = ("name", "input", "output", "error", "cause")
_STRING = r'"(?:[^"\\]|\\.)*"'
_STEP = rf"\.[\w-]+|\[\d+\]|\[{_STRING}\]"
_TOKEN = re.compile(
    rf"(?P<field>\w+)(?P<path>(?:{_STEP})*)\s*=\s*(?P<value>{_STRING}(?=\s|$)|[^\s\"=]\S*)"
    rf"|(?P<phrase>{_STRING})(?=\s|$)|(?P<word>\S+)"
)
_EXPONENT = r"[0-9][eE][-+0-9]"
_WANTED = "wanted input.path, output.path, error, cause, name or state before “=”"


@dataclass(frozen=True, slots=True)
class SearchCondition:
    """One ``field.path = value``. ``or_text``: without quotes, a number's text will do, too."""

    field: str
    path: tuple[str | int, ...]
    value: Any
    or_text: str | None = None

    @property
    def sieve(self) -> Q:
        """Return what the database can tell: true for whatever may match."""
        if self.field == "state":
            frame = f'"state":{json.dumps(self.value, ensure_ascii=False)}'
            return Q(status=ExecutionStatus.RUNNING, runrow__snapshot__contains=frame)
        if self.field in _PLAIN:
            return Q(**{self.field: self.value})
        has = f"{self.field}__contains"
        parts = Q()
        for text in (
            *(part for part in self.path if isinstance(part, str)),
            *_certain_texts(self.value),
        ):
            parts &= Q(**{has: text})
        otherwise = Q(**{has: "\\"})  # an escape can stand for any character
        if isinstance(self.value, int | float) and not isinstance(self.value, bool):
            otherwise |= Q(**{f"{self.field}__regex": _EXPONENT})
        return parts | otherwise

    def holds(self, text: str | None) -> bool:
        """Tell whether a payload, or for a state a snapshot, meets the condition."""
        try:
            parsed = json.loads(text or "")
            if self.field == "state":
                return any(frame["state"] == self.value for frame in parsed["frames"])
            value = _value_at(parsed, self.path)
        except (ValueError, LookupError, TypeError, RecursionError):
            return False
        return _is_same(value, self.value) or (self.or_text is not None and value == self.or_text)


@dataclass(frozen=True, slots=True)
class PayloadSearch:
    """Everything that must hold."""

    conditions: tuple[SearchCondition, ...] = ()
    words: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        """Tell whether anything must hold."""
        return bool(self.conditions or self.words)

    @property
    def sieve(self) -> Q:
        """Return what the database can tell; for words that is all."""
        all_hold = Q()
        for condition in self.conditions:
            all_hold &= condition.sieve
        for word in self.words:
            anywhere = Q()
            for field in ANYWHERE:
                anywhere |= Q(**{f"{field}__icontains": word})
            all_hold &= anywhere
        return all_hold

    @property
    def inner(self) -> tuple[SearchCondition, ...]:
        """Return the conditions of which the database is not sure."""
        return tuple(condition for condition in self.conditions if condition.field not in _PLAIN)

    @property
    def columns(self) -> tuple[str, ...]:
        """Return the columns whose values the checker wants."""
        return tuple(dict.fromkeys(COLUMNS[condition.field] for condition in self.inner))

    def asks(self, field: str) -> bool:
        """Tell whether there is a condition on a field."""
        return any(condition.field == field for condition in self.conditions)

    def holds(self, row: Mapping[str, str | None]) -> bool:
        """Tell of an execution's texts whether everything holds, without asking the database."""
        for condition in self.conditions:
            text = row[COLUMNS.get(condition.field, condition.field)]
            if text != condition.value if condition.field in _PLAIN else not condition.holds(text):
                return False
        texts = [(row[name] or "").lower() for name in ANYWHERE]
        return all(any(word.lower() in text for text in texts) for word in self.words)

    def checker(self) -> Callable[[Sequence[str | None]], bool]:
        """Return what tells, of the values of ``columns``, whether all conditions really hold."""
        places = [
            (condition, self.columns.index(COLUMNS[condition.field])) for condition in self.inner
        ]
        return lambda texts: all(condition.holds(texts[place]) for condition, place in places)


def parse_search(text: str) -> PayloadSearch:
    """Read what was typed; raise ``ValueError`` with words for the reader."""
    conditions: list[SearchCondition] = []
    words: list[str] = []
    for token in _TOKEN.finditer(text):
        if token["field"]:
            conditions.append(_condition(token))
        elif token["word"] and "=" in token["word"]:
            msg = f"Got “{visible_text(text[:60])}”, {_WANTED} and a value after it."
            raise ValueError(msg)
        else:
            words.append(_unquoted(token["phrase"]) if token["phrase"] else token["word"])
    return PayloadSearch(tuple(conditions), tuple(words))


def _condition(token: re.Match[str]) -> SearchCondition:
    field, path, value = token["field"], token["path"], token["value"]
    if field in PAYLOADS and path:
        return SearchCondition(field, _parse_path(path), *_parse_value(value))
    if field in (*_PLAIN, "state") and not path:
        return SearchCondition(field, (), _unquoted(value))
    msg = f"Got “{visible_text((field + path)[:60])}”, {_WANTED}."
    raise ValueError(msg)


def _parse_path(path: str) -> tuple[str | int, ...]:
    steps: list[str | int] = []
    for step in re.findall(_STEP, path):
        inner = step[1:] if step[0] == "." else step[1:-1]
        steps.append(int(inner) if step[0] == "[" and inner.isdecimal() else _unquoted(inner))
    return tuple(steps)


def _parse_value(text: str) -> tuple[Any, str | None]:
    """Return the value meant, and the text that would do as well."""
    if text.startswith('"'):
        return _unquoted(text), None
    try:
        value = json.loads(text)
    except ValueError:
        return text, None
    return (text, None) if isinstance(value, list | dict) else (value, text)


def _unquoted(text: str) -> str:
    if not text.startswith('"'):
        return text
    try:
        return str(json.loads(text))
    except ValueError:
        return text[1:-1]


def _certain_texts(value: Any) -> tuple[str, ...]:
    """Return parts that every plain way of writing a value has."""
    if isinstance(value, float):
        return ()
    return (value if isinstance(value, str) else _text(value),)


def _text(value: Any) -> str:
    return json.dumps(value)


def _value_at(value: Any, path: tuple[str | int, ...]) -> Any:
    for step in path:
        if isinstance(value, list) != isinstance(step, int):
            raise LookupError(step)
        value = value[step]
    return value


def _is_same(value: Any, expected: Any) -> bool:
    """Compare as JSON does: a number is no boolean."""
    return isinstance(value, bool) == isinstance(expected, bool) and bool(value == expected)
