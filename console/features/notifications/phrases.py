"""Convert phrases such as ``every 5 minutes`` or ``weekdays at 9`` to rate or cron expressions."""

from __future__ import annotations

import re

_DAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
_UNITS = {"min": "minute", "minute": "minute", "hour": "hour", "h": "hour", "day": "day"}
_PERIOD = re.compile(r"every (?:(\d{1,5}) ?)?(min|minute|hour|h|day)s?")
_TIME = re.compile(r"(?:(\d{1,2})(?::(\d\d))? ?(am|pm)?|(noon|midnight))(?: ?o'?clock)?")
_WORDS = {"hourly": "every hour", "daily": "every day", "workdays": "weekdays"}
_MOST_HOUR, _MOST_MINUTE, _NOON = 23, 59, 12


def expression_of(phrase: str) -> str:
    """Return the expression of a phrase, "" if not understood."""
    words = " ".join(phrase.lower().replace(",", " ").split())
    if not words:
        return ""
    first, _, rest = words.partition(" ")
    words = " ".join(filter(None, (_WORDS.get(first, first), rest)))
    period = _PERIOD.fullmatch(words)
    if period is not None:
        return _rate(int(period[1] or 1), _UNITS[period[2]])
    days, at, moment = words.rpartition("at ")
    time = _time(moment if at else "0")
    on = _days_of(days.strip() if at else words)
    if time is None or not on:
        return ""
    return f"cron({time[1]} {time[0]} {on} *)"


def _rate(count: int, unit: str) -> str:
    return f"rate({count} {unit}{'' if count == 1 else 's'})" if count else ""


def _time(text: str) -> tuple[int, int] | None:
    match = _TIME.fullmatch(text.strip())
    if match is None:
        return None
    if match[4]:
        return (_NOON if match[4] == "noon" else 0), 0
    hour, minute = int(match[1]), int(match[2] or 0)
    if match[3]:
        if not 1 <= hour <= _NOON:
            return None
        hour = hour % _NOON + (_NOON if match[3] == "pm" else 0)
    return (hour, minute) if hour <= _MOST_HOUR and minute <= _MOST_MINUTE else None


def _days_of(text: str) -> str:
    """Return a cron expression's day of month, month and day of week, "" without a day."""
    text = text.removeprefix("on ").removeprefix("every ").removeprefix("each ")
    if text in ("", "day", "days"):
        return "* * ?"
    if text in ("weekday", "weekdays"):
        return "? * MON-FRI"
    if text in ("weekend", "weekends"):
        return "? * SAT,SUN"
    day_names = [each.removesuffix("s") for each in re.split(r" and | ", text)]
    numbers = [place for place, day in enumerate(_DAYS) if {day, day[:3]} & set(day_names)]
    days = {*_DAYS, *(day[:3] for day in _DAYS)}
    if not numbers or not set(day_names) <= days:
        return ""
    return f"? * {','.join(_DAYS[place][:3].upper() for place in numbers)}"
