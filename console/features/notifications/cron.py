"""Parse EventBridge's six-field cron expressions to days and minutes.

Source: "Setting a schedule pattern for scheduled rules" of the EventBridge User Guide.
"""

from __future__ import annotations

import calendar
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    Days = Callable[[int, int], set[int]]  # (year, month) -> days of the month

_MONTHS = {name.upper(): at for at, name in enumerate(calendar.month_abbr) if name}
_WEEKDAYS = {"SUN": 1, "MON": 2, "TUE": 3, "WED": 4, "THU": 5, "FRI": 6, "SAT": 7}
_FIELDS = 6
_SUNDAY, _SATURDAY = 1, 7
_ITEM = re.compile(r"(\*|(?P<low>\w+)(-(?P<high>\w+))?)(/(?P<step>\d+))?")


class ScheduleError(ValueError):
    """An invalid schedule expression; names the field, its value and the expected values."""


@dataclass(frozen=True, slots=True)
class Cron:
    """A parsed cron expression. ``days``: (year, month) -> matching days of the month, sorted."""

    minutes: tuple[int, ...]
    hours: tuple[int, ...]
    months: frozenset[int]
    years: tuple[int, ...]
    days: Callable[[int, int], list[int]]


def parse_cron(fields: str) -> Cron:
    """Parse the text between the brackets of ``cron(...)``; raise ``ScheduleError``."""
    parts = fields.upper().split()
    if len(parts) != _FIELDS:
        names = "minutes, hours, day of month, month, day of week, year"
        raise ScheduleError(f"cron: {len(parts)} fields instead of six: {names}")
    minutes, hours, day, month, weekday, year = parts
    if (day == "?") == (weekday == "?"):
        raise ScheduleError("cron: one of day of month and day of week, and only one, is ?")
    return Cron(
        _numbers(minutes, "minutes", 0, 59),
        _numbers(hours, "hours", 0, 23),
        frozenset(_numbers(month, "month", 1, 12, _MONTHS)),
        _numbers(year, "year", 1970, 2199),
        _days(day) if weekday == "?" else _weekdays(weekday),
    )


def _numbers(
    text: str, field: str, least: int, most: int, names: dict[str, int] | None = None
) -> tuple[int, ...]:
    """Return the numbers in a field, ascending."""
    numbers: set[int] = set()
    for item in text.split(","):
        match = _ITEM.fullmatch(item)
        if match is None:
            raise ScheduleError(f"{field}: '{item}' is not * or numbers with , - /")
        low, high = _bounds(match, field, least, most, names or {})
        step = int(match["step"] or 1)
        if step < 1:
            raise ScheduleError(f"{field}: the step must be 1 or more, not 0")
        numbers.update(range(low, high + 1, step))
    return tuple(sorted(numbers))


def _bounds(
    match: re.Match[str], field: str, least: int, most: int, names: dict[str, int]
) -> tuple[int, int]:
    if match["low"] is None:
        return least, most
    low = _number(match["low"], field, least, most, names)
    if match["high"] is None:
        return low, most if match["step"] else low
    high = _number(match["high"], field, least, most, names)
    if high < low:
        raise ScheduleError(f"{field}: '{match[0]}' must have the lower end first")
    return low, high


def _number(text: str, field: str, least: int, most: int, names: dict[str, int]) -> int:
    number = names.get(text, int(text) if text.isascii() and text.isdecimal() else -1)
    if not least <= number <= most:
        raise ScheduleError(f"{field}: '{text}' is not in {least} to {most}")
    return number


# -- days of the month -----------------------------------------------------------------------------


def _days(text: str) -> Callable[[int, int], list[int]]:
    return _together([_parse_day(item) for item in text.split(",")])


def _together(parts: list[Days]) -> Callable[[int, int], list[int]]:
    def days(year: int, month: int) -> list[int]:
        return sorted(set().union(*(part(year, month) for part in parts)))

    return days


def _last_day(year: int, month: int) -> int:
    return calendar.monthrange(year, month)[1]


def _parse_day(item: str) -> Days:
    if item == "L":
        return lambda year, month: {_last_day(year, month)}
    if item.endswith("W"):
        day = _number(item[:-1], "day of month", 1, 31, {})
        return lambda year, month: _workday(year, month, day)
    numbers = set(_numbers(item, "day of month", 1, 31))
    return lambda year, month: {day for day in numbers if day <= _last_day(year, month)}


def _workday(year: int, month: int, day: int) -> set[int]:
    """Return the weekday (Monday to Friday) of the month nearest to a day."""
    last = _last_day(year, month)
    if day > last:
        return set()
    weekday = _weekday(year, month, day)
    if weekday == _SATURDAY:
        return {day - 1 if day > 1 else day + 2}
    if weekday == _SUNDAY:
        return {day + 1 if day < last else day - 2}
    return {day}


def _weekday(year: int, month: int, day: int) -> int:
    """Return 1 for Sunday to 7 for Saturday."""
    return (calendar.weekday(year, month, day) + 1) % 7 + 1


# -- days of the week ------------------------------------------------------------------------------


def _weekdays(text: str) -> Callable[[int, int], list[int]]:
    return _together([_some_weekdays(item) for item in text.split(",")])


def _some_weekdays(item: str) -> Days:
    if item == "L":
        item = "SAT"
    name, hash_, place = item.partition("#")
    if hash_:
        nth = _number(place, "day of week", 1, 5, {})
        return _of_weekdays({_number(name, "day of week", 1, 7, _WEEKDAYS)}, nth - 1)
    if item.endswith("L"):
        return _of_weekdays({_number(item[:-1], "day of week", 1, 7, _WEEKDAYS)}, -1)
    return _of_weekdays(set(_numbers(item, "day of week", 1, 7, _WEEKDAYS)))


def _of_weekdays(weekdays: set[int], place: int | None = None) -> Days:
    """Return the days of a month on given weekdays: all, or only the n-th."""

    def days(year: int, month: int) -> set[int]:
        dates = [
            day
            for day in range(1, _last_day(year, month) + 1)
            if _weekday(year, month, day) in weekdays
        ]
        if place is None:
            return set(dates)
        return {dates[place]} if place < len(dates) else set()

    return days
