"""The forms of alarms."""

from __future__ import annotations

import re
from typing import Any

from django.core.exceptions import ValidationError

from console.statuses import AlarmKind
from console.web.core.formatting import DAY, MINUTE, SECOND, visible_text
from console.web.core.forms import PageForm, TextField
from console.web.search.moments import parse_span

OFFERED = (AlarmKind.FAILURE_RATE, AlarmKind.NO_SUCCESS, AlarmKind.DURATION, AlarmKind.STUCK)
"""What a form can make; alarms on metrics come by CloudWatch's API."""
_LONGEST = 31 * DAY
_MOST_COUNT = 1_000_000


class _SpanField(TextField):
    """A span of time from a minute to a month; its value is seconds."""

    def clean(self, value: Any) -> Any:
        """Return seconds; raise ``ValidationError``."""
        text = super().clean(value)
        try:
            span = parse_span(text)
        except ValueError as problem:
            raise ValidationError(f"Time: {problem}") from None
        if not MINUTE <= span <= _LONGEST:
            raise ValidationError("Time: wanted 1 min to 31 d.")
        return span // SECOND


class _PercentField(TextField):
    """A number of percent."""

    def clean(self, value: Any) -> Any:
        """Return the number; raise ``ValidationError``."""
        text = super().clean(value)
        if not re.fullmatch(r"\d{1,6}(\.\d{1,3})?", text or "0", re.ASCII):
            raise ValidationError(f"Percent: got “{visible_text(text[:40])}”, wanted a number.")
        return float(text or 0)


class _CountField(TextField):
    """A whole number from 1."""

    def clean(self, value: Any) -> Any:
        """Return the number; raise ``ValidationError``."""
        text = super().clean(value)
        good = re.fullmatch(r"\d{1,7}", text or "1", re.ASCII)
        if not good or not 1 <= int(text or 1) <= _MOST_COUNT:
            raise ValidationError(
                f"Executions: got “{visible_text(text[:40])}”, wanted 1 to {_MOST_COUNT:,}."
            )
        return int(text or 1)


class AlarmForm(PageForm):
    """An alarm to create or to change. ``revision``: of the alarm that was on display, "" if none.

    ``period``: how far back the alarm looks, or how long is too long.
    """

    name = TextField()
    kind = TextField(strip=False)
    period = _SpanField()
    threshold = _PercentField()
    minimum = _CountField()
    state = TextField()
    revision = TextField(strip=False)

    def clean_kind(self) -> str:
        """Refuse what no form makes."""
        kind = str(self.cleaned_data["kind"])
        if kind not in OFFERED:
            raise ValidationError(f"Got “{visible_text(kind[:40])}”, wanted {', '.join(OFFERED)}.")
        return kind


class DeleteAlarmForm(PageForm):
    """The name of an alarm to delete."""

    name = TextField(strip=False)


class NotifyForm(PageForm):
    """Where the changes of a machine's alarms are sent."""

    target = TextField()
