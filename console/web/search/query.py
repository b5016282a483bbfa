"""Search conditions on executions: a text, or a value at a path of input or output.

``input.total > 100 error ~ late "two words"``: all conditions and words must match. The database
excludes sure mismatches by parts of the text; the others are parsed and compared exactly: a number
matches in any spelling, a key in any escaping.

A masked value matches no condition with any operator; otherwise ``error != X`` would reveal it.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from django.db.models import BigIntegerField, Q, Value
from django.db.models.functions import Coalesce

from console.db import clock
from console.statuses import ExecutionStatus

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

PAYLOADS = ("input", "output")
COLUMNS = {"input": "input", "output": "output", "state": "runrow__snapshot"}
TEXTS = ("error", "cause", "name")
HISTORY = ("history", "caught")
"""The fields whose values stand in the events of an execution."""
ANYWHERE = ("name", "input", "output", "error", "cause")
_EXPONENT = r"[0-9][eE][-+0-9]"
_PLAIN = {
    "error": "error",
    "cause": "cause",
    "name": "name",
    "by": "started_by",
    "status": "status",
    "redrives": "redrive_count",
    "started": "start_ms",
    "ended": "stop_ms",
}
"""Fields that are a column, which the database compares."""


class Operator(StrEnum):
    """The operators. ``!=`` needs a value: a missing value does not differ."""

    EQUALS = "="
    DIFFERS = "!="
    ABOVE = ">"
    AT_LEAST = ">="
    BELOW = "<"
    AT_MOST = "<="
    CONTAINS = "~"


_LOOKUPS = {
    Operator.EQUALS: "exact",
    Operator.ABOVE: "gt",
    Operator.AT_LEAST: "gte",
    Operator.BELOW: "lt",
    Operator.AT_MOST: "lte",
    Operator.CONTAINS: "icontains",
}
_MIRRORED = {
    Operator.ABOVE: "lt",
    Operator.AT_LEAST: "lte",
    Operator.BELOW: "gt",
    Operator.AT_MOST: "gte",
}
"""Operators for the start instead of a duration: the longer it took, the earlier it started."""


@dataclass(frozen=True, slots=True)
class SearchCondition:
    """One ``field.path = value``. ``or_text``: for an unquoted number, its text matches, too.

    Times have a value in epoch milliseconds, durations in milliseconds; ``typed``: as typed.
    """

    field: str
    path: tuple[str | int, ...]
    value: Any
    or_text: str | None = None
    operator: Operator = Operator.EQUALS
    typed: str = ""

    @property
    def sure(self) -> bool:
        """Whether the database alone can decide."""
        return self.field not in (*HISTORY, "state") and not self.path

    @property
    def sieve(self) -> Q:
        """Return the database's condition: true for all possible matches."""
        if self.field in HISTORY:
            return Q()
        if self.field == "state":
            return Q(status=ExecutionStatus.RUNNING) & self._in_snapshot()
        if self.field in ("duration", "age"):
            return self._duration_condition()
        if self.field in _PLAIN or not self.path:
            return self._column(_PLAIN.get(self.field, self.field))
        return self._in_payload()

    def _in_snapshot(self) -> Q:
        inner = json.dumps(self.value, ensure_ascii=False)
        match self.operator:
            case Operator.EQUALS:
                return Q(runrow__snapshot__contains=f'"state":{inner}')
            case Operator.CONTAINS if self.value.isascii():
                return Q(runrow__snapshot__icontains=inner[1:-1])
            case _:
                return Q()

    def _duration_condition(self) -> Q:
        """Return the condition on duration, running time, or time since the start."""
        now = Value(clock.now_ms(), BigIntegerField())
        until = Coalesce("stop_ms", now) if self.field == "duration" else now
        return Q(**{f"start_ms__{_MIRRORED[self.operator]}": until - self.value})

    def _column(self, column: str) -> Q:
        if self.operator is Operator.DIFFERS:
            return Q(**{f"{column}__isnull": False}) & ~Q(**{column: self.value})
        return Q(**{f"{column}__{_LOOKUPS[self.operator]}": self.value})

    def _in_payload(self) -> Q:
        has = f"{self.field}__contains"
        parts = Q()
        texts = [part for part in self.path if isinstance(part, str)]
        equal = self.operator is Operator.EQUALS
        for text in (*texts, *(_certain_texts(self.value) if equal else ())):
            parts &= Q(**{has: text})
        otherwise = Q(**{has: "\\"})  # an escape can stand for any character
        if isinstance(self.value, int | float) and not isinstance(self.value, bool) and equal:
            otherwise |= Q(**{f"{self.field}__regex": _EXPONENT})
        return Q(**{f"{self.field}__isnull": False}) & (parts | otherwise)

    def holds(self, text: str | None) -> bool:
        """Whether a payload, or for a state a snapshot, meets the condition."""
        try:
            parsed = json.loads(text or "")
            if self.field == "state":
                return self._holds_for_states([frame["state"] for frame in parsed["frames"]])
            return self._compares(_value_at(parsed, self.path))
        except (ValueError, LookupError, TypeError, RecursionError):
            return False

    def _holds_for_states(self, states: Sequence[str]) -> bool:
        if self.operator is Operator.DIFFERS:
            return self.value not in states
        return any(self._compares(state) for state in states)

    def _compares(self, value: Any) -> bool:
        match self.operator:
            case Operator.EQUALS:
                return self._equals(value)
            case Operator.DIFFERS:
                return not self._equals(value)
            case Operator.CONTAINS:
                text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
                return (self.or_text or str(self.value)).casefold() in text.casefold()
            case _:
                return _is_ordered(value, self.operator, self.value)

    def _equals(self, value: Any) -> bool:
        same = _is_same(value, self.value)
        return same or (self.or_text is not None and value == self.or_text)

    def meets(self, shown: Mapping[str, str | None], stored: Mapping[str, str | None]) -> bool:
        """Return whether masked and stored texts meet the condition, without the database.

        If the compared value differs between the two, it is masked and meets nothing. Conditions on
        fields that are never masked are left to the database.
        """
        column = COLUMNS.get(self.field, self.field)
        if column not in shown or self.field in HISTORY:
            return True
        text, original = shown[column], stored[column]
        if self.path:
            return _same_at(self.path, text, original) and self.holds(text)
        if self.field == "state":
            return self.holds(text)
        if text is None or (text != original and self.operator is not Operator.CONTAINS):
            return False
        if self.operator is Operator.CONTAINS:
            return str(self.value).lower() in text.lower()
        return (text == self.value) is (self.operator is Operator.EQUALS)


@dataclass(frozen=True, slots=True)
class PayloadSearch:
    """All conditions of a search."""

    conditions: tuple[SearchCondition, ...] = ()
    words: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        """Whether there is any condition."""
        return bool(self.conditions or self.words)

    @property
    def sieve(self) -> Q:
        """Return the database's condition; for words it is complete."""
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
    def started(self) -> Q:
        """Return the conditions on the start only, which every list's index covers."""
        all_hold = Q()
        for condition in self.conditions:
            if condition.field in ("started", "age"):
                all_hold &= condition.sieve
        return all_hold

    @property
    def inner(self) -> tuple[SearchCondition, ...]:
        """Return the conditions on payloads or snapshots that the database cannot decide."""
        return tuple(
            condition
            for condition in self.conditions
            if not condition.sure and condition.field not in HISTORY
        )

    @property
    def events(self) -> tuple[SearchCondition, ...]:
        """Return the conditions on histories."""
        return tuple(condition for condition in self.conditions if condition.field in HISTORY)

    @property
    def columns(self) -> tuple[str, ...]:
        """Return the columns that the checker needs."""
        return tuple(dict.fromkeys(COLUMNS[condition.field] for condition in self.inner))

    def asks(self, field: str) -> bool:
        """Whether there is a condition on a field."""
        return any(condition.field == field for condition in self.conditions)

    def may_have_status(self, status: str) -> bool:
        """Whether executions with a status can match."""
        return all(
            (condition.value == status) is (condition.operator is Operator.EQUALS)
            for condition in self.conditions
            if condition.field == "status"
        )

    def holds(self, shown: Mapping[str, str | None], stored: Mapping[str, str | None]) -> bool:
        """Return whether an execution's masked and stored texts meet all conditions.

        Conditions on unmasked fields and on histories are checked elsewhere.
        """
        if not all(condition.meets(shown, stored) for condition in self.conditions):
            return False
        texts = [(shown[name] or "").lower() for name in ANYWHERE]
        return all(any(word.lower() in text for text in texts) for word in self.words)

    def checker(self) -> Callable[[Sequence[str | None]], bool]:
        """Return a function that checks all conditions exactly, on the ``columns``."""
        places = [
            (condition, self.columns.index(COLUMNS[condition.field])) for condition in self.inner
        ]
        return lambda texts: all(condition.holds(texts[place]) for condition, place in places)


def _certain_texts(value: Any) -> tuple[str, ...]:
    """Return the parts that every spelling of a value contains."""
    if isinstance(value, float):
        return ()
    return (value if isinstance(value, str) else json.dumps(value),)


def _value_at(value: Any, path: tuple[str | int, ...]) -> Any:
    for step in path:
        if isinstance(value, list) != isinstance(step, int):
            raise LookupError(step)
        value = value[step]
    return value


def _same_at(path: tuple[str | int, ...], shown: str | None, stored: str | None) -> bool:
    """Whether the value at a path is unmasked."""
    if shown == stored:
        return True
    try:
        values = [_value_at(json.loads(text or ""), path) for text in (shown, stored)]
    except (ValueError, LookupError, TypeError, RecursionError):
        return False
    return bool(values[0] == values[1])


def _is_same(value: Any, expected: Any) -> bool:
    """Compare as JSON values: a number is not a boolean."""
    return isinstance(value, bool) == isinstance(expected, bool) and bool(value == expected)


def _is_ordered(value: Any, operator: Operator, limit: Any) -> bool:
    """Compare numbers with numbers, else texts; RFC 3339 times sort as texts."""
    if isinstance(value, str) and isinstance(limit, int | float):
        value = _as_number(value)
    if isinstance(value, bool) or isinstance(limit, bool):
        return False
    numbers = isinstance(value, int | float) and isinstance(limit, int | float)
    if not numbers and not (isinstance(value, str) and isinstance(limit, str)):
        return False
    return bool(
        (operator in (Operator.ABOVE, Operator.AT_LEAST) and value > limit)
        or (operator in (Operator.BELOW, Operator.AT_MOST) and value < limit)
        or (operator in (Operator.AT_LEAST, Operator.AT_MOST) and value == limit)
    )


def _as_number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None
