"""Describe a schedule expression in words: ``Every day at 06:00 UTC``.

Complex expressions get no words: the page shows the expression itself.
"""

from __future__ import annotations

import calendar
import re

from console.features.notifications import cron, schedules

_MOST_ITEMS = 4
_WEEKDAYS = ("Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday")
_SHORT = {day[:3].upper(): number for number, day in enumerate(_WEEKDAYS, start=1)}
_ORDINALS = ("first", "second", "third", "fourth", "fifth")
_WORKDAYS = [2, 3, 4, 5, 6]
_WEEKEND = [1, 7]
_ALL_YEARS = 2199 - 1970 + 1


def schedule_words(expression: str, zone: str) -> str:
    """Describe an expression in words; "" if invalid or too complex."""
    try:
        schedule = schedules.parse_schedule(expression, zone, with_once=True)
    except schedules.ScheduleError:
        return ""
    inside = expression.strip().partition("(")[2].removesuffix(")").strip()
    if schedule.once_ms is not None:
        return f"Once, on {inside.replace('T', ' at ')} {zone}"
    if schedule.cron is None:
        number, _, unit = inside.partition(" ")
        return f"Every {unit.strip()}" if number == "1" else f"Every {number} {unit.strip()}"
    words = _cron_words(schedule.cron, inside.upper().split(), zone)
    return words[:1].upper() + words[1:]


def _cron_words(read: cron.Cron, fields: list[str], zone: str) -> str:
    _, _, day, _, weekday, _ = fields
    is_daily = "*" in (day, weekday)
    days = "" if is_daily else _weekday_words(weekday) if day == "?" else _day_words(day)
    months, years = _month_words(read), _year_words(read)
    if None in (days, months, years):
        return ""
    when = f"{days}{months}{years}".strip()
    moments = [f"{hour:02}:{minute:02}" for hour in read.hours for minute in read.minutes]
    if len(moments) <= _MOST_ITEMS:
        when = f"every day {when}".strip() if is_daily else when
        return f"{when} at {_join_words(moments)} {zone}"
    repeated = _frequency_words(read, zone)
    return " ".join(part for part in (repeated, when) if part) if repeated else ""


def _frequency_words(read: cron.Cron, zone: str) -> str:
    """Return an expression's frequency within a day in words, "" if irregular."""
    minutes, hours = read.minutes, read.hours
    every_minutes = _even_step(minutes, 60)
    is_range = hours == tuple(range(hours[0], hours[-1] + 1))
    all_day = len(hours) == 24  # noqa: PLR2004 - hours of a day
    if every_minutes and is_range:
        often = "every minute" if every_minutes == 1 else f"every {every_minutes} minutes"
        last = f"{hours[-1]:02}:{minutes[-1]:02}"
        return often if all_day else f"{often} from {hours[0]:02}:00 to {last} {zone}"
    if len(minutes) != 1:
        return ""
    at = f":{minutes[0]:02}"
    if all_day:
        return f"every hour at {at}"
    if is_range:
        return f"every hour from {hours[0]:02}{at} to {hours[-1]:02}{at} {zone}"
    every_hours = _even_step(hours, 24)
    return f"every {every_hours} hours from 00{at} {zone}" if every_hours else ""


def _even_step(numbers: tuple[int, ...], period: int) -> int:
    """Return the step of evenly spaced numbers from 0, 0 if uneven."""
    step = numbers[1] - numbers[0] if len(numbers) > 1 else 0
    even = step and period % step == 0 and numbers == tuple(range(0, period, step))
    return step if even else 0


def _day_words(text: str) -> str | None:
    """Return the words for a day-of-month field, None if too complex."""
    if text == "L":
        return "on the last day of the month"
    if match := re.fullmatch(r"(\d+)W", text):
        return f"on the weekday nearest to day {match[1]} of the month"
    items = text.split(",")
    if len(items) > _MOST_ITEMS or not all(item.isdecimal() for item in items):
        return None
    return f"on day{'s' if len(items) > 1 else ''} {_join_words(items)} of the month"


def _weekday_words(text: str) -> str | None:
    """Return the words for a weekday field, None if too complex."""
    if match := re.fullmatch(r"(\w+)#([1-5])", text):
        day = _weekday_number(match[1])
        nth = _ORDINALS[int(match[2]) - 1]
        return f"on the {nth} {_WEEKDAYS[day - 1]} of the month" if day else None
    if (match := re.fullmatch(r"(\w+)L", text)) and (day := _weekday_number(match[1])):
        return f"on the last {_WEEKDAYS[day - 1]} of the month"
    numbers: set[int] = set()
    for item in text.split(","):
        low, _, high = item.partition("-")
        first, last = _weekday_number(low), _weekday_number(high or low)
        if not first or not last:
            return None
        numbers.update(range(first, last + 1))
    chosen = sorted(numbers)
    if chosen == _WORKDAYS:
        return "on weekdays"
    if chosen == _WEEKEND:
        return "on weekends"
    # a week begins on Monday, but for EventBridge
    ordered = sorted(chosen, key=lambda number: (number + 5) % 7)
    return f"every {_join_words([_WEEKDAYS[number - 1] for number in ordered])}"


def _weekday_number(text: str) -> int:
    """Return 1 for Sunday to 7 for Saturday, 0 if invalid."""
    if text in _SHORT:
        return _SHORT[text]
    return int(text) if text in {"1", "2", "3", "4", "5", "6", "7"} else 0


def _month_words(read: cron.Cron) -> str | None:
    months = sorted(read.months)
    if len(months) == 12:  # noqa: PLR2004 - months of a year
        return ""
    names = [calendar.month_name[month] for month in months]
    return f" in {_join_words(names)}" if len(names) <= _MOST_ITEMS else None


def _year_words(read: cron.Cron) -> str | None:
    if len(read.years) == _ALL_YEARS:
        return ""
    years = [str(year) for year in read.years]
    return f" in {_join_words(years)}" if len(years) <= _MOST_ITEMS else None


def _join_words(items: list[str]) -> str:
    """Join items as in a sentence: ``a, b and c``."""
    return items[0] if len(items) == 1 else f"{', '.join(items[:-1])} and {items[-1]}"
