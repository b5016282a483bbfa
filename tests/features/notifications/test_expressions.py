"""Each kind of schedule is due at the right time, also when clocks go forward and back."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from console.features.notifications.schedules import (
    ScheduleDates,
    ScheduleError,
    parse_schedule,
)


def ms(text: str) -> int:
    """Return a moment of UTC in epoch milliseconds."""
    return int(datetime.fromisoformat(f"{text}+00:00").timestamp() * 1000)


def moments(expression: str, after: str, count: int, zone: str = "UTC") -> list[str]:
    """Return the next moments, in UTC; rates began with the year 2026."""
    schedule, at = parse_schedule(expression, zone), ms(after)
    times: list[str] = []
    while len(times) < count:
        due = schedule.next(at, ms("2026-01-01T00:00"))
        if due is None:
            break
        times.append(datetime.fromtimestamp(due / 1000, UTC).strftime("%Y-%m-%dT%H:%M"))
        at = due
    return times


ROME, SYDNEY = "Europe/Rome", "Australia/Sydney"
TABLE = [
    # the examples of the documentation
    ("cron(0 10 * * ? *)", "2026-03-01T09:59", "UTC", ["2026-03-01T10:00", "2026-03-02T10:00"]),
    ("cron(15 12 * * ? *)", "2026-03-01T12:15", "UTC", ["2026-03-02T12:15"]),
    (
        "cron(0 18 ? * MON-FRI *)",
        "2026-03-06T00:00",
        "UTC",
        ["2026-03-06T18:00", "2026-03-09T18:00"],
    ),
    ("cron(0 8 1 * ? *)", "2026-01-31T00:00", "UTC", ["2026-02-01T08:00", "2026-03-01T08:00"]),
    (
        "cron(0/15 * * * ? *)",
        "2026-03-01T00:01",
        "UTC",
        ["2026-03-01T00:15", "2026-03-01T00:30", "2026-03-01T00:45", "2026-03-01T01:00"],
    ),
    ("cron(0/10 * ? * MON-FRI *)", "2026-03-07T12:00", "UTC", ["2026-03-09T00:00"]),
    (
        "cron(0/5 8-17 ? * MON-FRI *)",
        "2026-03-06T17:50",
        "UTC",
        ["2026-03-06T17:55", "2026-03-09T08:00"],
    ),
    ("cron(0 9 ? * 2#1 *)", "2026-03-01T00:00", "UTC", ["2026-03-02T09:00", "2026-04-06T09:00"]),
    # the last and the nearest
    ("cron(0 0 L * ? *)", "2028-02-01T00:00", "UTC", ["2028-02-29T00:00", "2028-03-31T00:00"]),
    ("cron(0 0 15W * ? *)", "2026-08-01T00:00", "UTC", ["2026-08-14T00:00"]),
    ("cron(0 0 1W * ? *)", "2026-07-31T00:00", "UTC", ["2026-08-03T00:00"]),
    ("cron(0 0 31W * ? *)", "2026-05-01T00:00", "UTC", ["2026-05-29T00:00", "2026-07-31T00:00"]),
    ("cron(0 0 ? * 6L *)", "2026-03-01T00:00", "UTC", ["2026-03-27T00:00", "2026-04-24T00:00"]),
    ("cron(0 0 ? * L *)", "2026-03-01T00:00", "UTC", ["2026-03-07T00:00"]),
    ("cron(0 0 ? * FRI#5 *)", "2026-03-01T00:00", "UTC", ["2026-05-29T00:00"]),
    ("cron(0 0 ? * SUN,3 *)", "2026-03-01T00:00", "UTC", ["2026-03-03T00:00", "2026-03-08T00:00"]),
    # dates
    ("cron(30 6 29 FEB ? *)", "2026-01-01T00:00", "UTC", ["2028-02-29T06:30"]),
    ("cron(0 0 31 4,12 ? *)", "2026-01-01T00:00", "UTC", ["2026-12-31T00:00"]),
    ("cron(0 0 1 1 ? 2027-2028)", "2026-01-01T00:00", "UTC", ["2027-01-01T00:00"]),
    ("cron(0 0 1 1 ? 2020)", "2026-01-01T00:00", "UTC", []),
    ("cron(0 0 30 2 ? *)", "2026-01-01T00:00", "UTC", []),
    # rates count from the beginning of the schedule
    ("rate(5 minutes)", "2026-01-01T00:07", "UTC", ["2026-01-01T00:10", "2026-01-01T00:15"]),
    ("rate(1 hour)", "2026-01-01T01:00", "UTC", ["2026-01-01T02:00"]),
    ("rate(2 days)", "2026-01-02T00:00", "UTC", ["2026-01-03T00:00"]),
    # time zones
    ("cron(0 9 * * ? *)", "2026-01-10T00:00", ROME, ["2026-01-10T08:00"]),
    ("cron(0 9 * * ? *)", "2026-07-10T00:00", ROME, ["2026-07-10T07:00"]),
    ("cron(0 9 * * ? *)", "2026-01-10T23:00", SYDNEY, ["2026-01-11T22:00"]),
    ("cron(0 3 * * ? *)", "2026-01-10T00:00", "Asia/Kolkata", ["2026-01-10T21:30"]),
    # clocks go forward in Rome on 2026-03-29 at 02:00: there is no 02:30
    (
        "cron(30 2 * * ? *)",
        "2026-03-28T00:00",
        ROME,
        ["2026-03-28T01:30", "2026-03-30T00:30"],
    ),
    (
        "cron(0 * * * ? *)",
        "2026-03-28T23:30",
        ROME,
        ["2026-03-29T00:00", "2026-03-29T01:00", "2026-03-29T02:00"],
    ),
    # clocks go back in Rome on 2026-10-25 at 03:00: 02:30 comes twice, and counts once
    (
        "cron(30 2 * * ? *)",
        "2026-10-24T12:00",
        ROME,
        ["2026-10-25T00:30", "2026-10-26T01:30"],
    ),
    ("cron(0/30 * * * ? *)", "2026-10-25T00:30", ROME, ["2026-10-25T02:00"]),
]


@pytest.mark.parametrize(
    ("expression", "after", "zone", "expected"), TABLE, ids=[f"{a} {z} {b}" for a, b, z, _ in TABLE]
)
def test_a_schedule_is_due(expression: str, after: str, zone: str, expected: list[str]) -> None:
    """The moments in UTC, in their order."""
    assert moments(expression, after, len(expected) or 1, zone) == expected


@pytest.mark.parametrize(
    ("expression", "words"),
    [
        ("", r"Write cron\("),
        ("every blue moon", r"Write cron\("),
        ("every day", r"Write rate\(1 day\)"),
        ("at(2026-01-01T00:00:00)", r"Write cron\("),
        ("cron(0 10 * * ?)", "5 fields instead of six"),
        ("cron(0 10 * * * *)", "one of day of month and day of week"),
        ("cron(0 10 ? * ? *)", "one of day of month and day of week"),
        ("cron(60 10 * * ? *)", "minutes: '60' is not in 0 to 59"),
        ("cron(0 24 * * ? *)", "hours: '24' is not"),
        ("cron(0 0 0 * ? *)", "day of month: '0' is not"),
        ("cron(0 0 * 13 ? *)", "month: '13' is not"),
        ("cron(0 0 ? * 8 *)", "day of week: '8' is not"),
        ("cron(0 0 ? * MON#6 *)", "day of week: '6' is not"),
        ("cron(0 0 * * ? 1969)", "year: '1969' is not"),
        ("cron(5-1 0 * * ? *)", "must have the lower end first"),
        ("cron(*/0 0 * * ? *)", "must be 1 or more"),
        ("cron(a b * * ? *)", "minutes: 'A' is not"),
        ("cron(, 0 * * ? *)", "minutes: '' is not"),
        ("rate(0 minutes)", "rate: '0 minutes' is not"),
        ("rate(1 minutes)", "the singular"),
        ("rate(5 minute)", "the plural"),
        ("rate(5 seconds)", "minutes, hours or days"),
        ("rate(999999999 days)", "a hundred years"),
    ],
)
def test_a_wrong_expression_is_refused_with_its_field(expression: str, words: str) -> None:
    """The message says what was found and what was wanted."""
    with pytest.raises(ScheduleError, match=words):
        parse_schedule(expression)


def test_scheduler_takes_the_plural_of_one() -> None:
    """EventBridge's own rules do not: ``rate(1 hours)`` is due each hour."""
    for unit, hours in (("hours", 1), ("days", 24)):
        text = f"rate(1 {unit})"
        schedule = parse_schedule(text, with_once=True)
        assert schedule.next(0, 0) == hours * 3_600_000
        with pytest.raises(ScheduleError, match="the singular"):
            parse_schedule(text)


@pytest.mark.parametrize("zone", ["", "Europe", "Mars/Base", "../etc/passwd", "x\0y"])
def test_a_time_zone_is_one_of_the_known(zone: str) -> None:
    """Nothing else is looked for."""
    with pytest.raises(ScheduleError, match="time zone"):
        parse_schedule("rate(1 minute)", zone)


# -- EventBridge Scheduler -------------------------------------------------------------------------


def limited(expression: str, limits: ScheduleDates, after: str, zone: str = "UTC") -> list[str]:
    """Return the next three moments of a schedule between its dates, in UTC."""
    schedule = parse_schedule(expression, zone, with_once=True)
    at = ms(after)
    moments: list[str] = []
    while len(moments) < 3 and (due := limits.next(schedule, at)) is not None:
        moments.append(datetime.fromtimestamp(due / 1000, UTC).strftime("%Y-%m-%dT%H:%M"))
        at = due
    return moments


NEW_YEAR = ms("2026-01-01T00:00")


@pytest.mark.parametrize(
    ("expression", "limits", "after", "expected"),
    [
        # a rate is due at its start date for the first time
        (
            "rate(1 hour)",
            ScheduleDates(NEW_YEAR),
            "2025-12-01T00:00",
            ["2026-01-01T00:00", "2026-01-01T01:00", "2026-01-01T02:00"],
        ),
        (
            "rate(1 day)",
            ScheduleDates(NEW_YEAR, NEW_YEAR),
            "2025-12-01T00:00",
            ["2026-01-01T00:00"],
        ),
        ("rate(1 day)", ScheduleDates(NEW_YEAR, NEW_YEAR), "2026-01-01T00:00", []),
        # a cron expression neither before its start date nor after its end date
        (
            "cron(0 0 * * ? *)",
            ScheduleDates(NEW_YEAR, ms("2026-01-02T12:00")),
            "2025-06-01T00:00",
            ["2026-01-01T00:00", "2026-01-02T00:00"],
        ),
        # no date says what comes after the year 9999
        (
            "rate(1 day)",
            ScheduleDates(ms("9999-12-31T12:00")),
            "2026-01-01T00:00",
            ["9999-12-31T12:00"],
        ),
        # one moment, whatever the dates say
        (
            "at(2025-12-24T18:00:00)",
            ScheduleDates(NEW_YEAR, 0),
            "2025-01-01T00:00",
            ["2025-12-24T18:00"],
        ),
        ("at(2025-12-24T18:00:00)", ScheduleDates(NEW_YEAR), "2025-12-24T18:00", []),
    ],
)
def test_dates_limit_a_schedule(
    expression: str, limits: ScheduleDates, after: str, expected: list[str]
) -> None:
    """Moments are those between the start date and the end date, both included."""
    assert limited(expression, limits, after) == expected


def test_one_moment_is_of_its_time_zone() -> None:
    """In the gap of spring the clock's next hour counts; a moment that comes twice is the first."""
    limits, before = ScheduleDates(0), "2026-01-01T00:00"
    assert limited("at(2026-07-01T12:00:00)", limits, before, ROME) == ["2026-07-01T10:00"]
    assert limited("at(2026-03-29T02:30:00)", limits, before, ROME) == ["2026-03-29T01:30"]
    assert limited("at(2026-10-25T02:30:00)", limits, before, ROME) == ["2026-10-25T00:30"]


def test_one_moment_is_no_schedule_of_a_rule() -> None:
    """EventBridge's rules have rates and cron expressions only."""
    with pytest.raises(ScheduleError, match=r"Write cron\(...\) or rate\(...\)"):
        parse_schedule("at(2026-07-01T12:00:00)")
