"""Forms of alarms."""

from __future__ import annotations

import re
from typing import Any

from django.core.exceptions import ValidationError

from console.statuses import AlarmKind
from console.web.core.formatting import DAY, MINUTE, SECOND, visible_text
from console.web.core.forms import PageForm, TextField
from console.web.search.moments import parse_span

OFFERED = (AlarmKind.FAILURE_RATE, AlarmKind.NO_SUCCESS, AlarmKind.DURATION, AlarmKind.STUCK)
"""The kinds that look at executions; alarms on metrics have a form of their own."""
_LONGEST = 31 * DAY
_MOST_COUNT = 1_000_000


class _SpanField(TextField):
    """A duration from a minute to a month, in seconds."""

    def clean(self, value: Any) -> Any:
        """Return seconds; raise ``ValidationError``."""
        text = super().clean(value)
        try:
            span = parse_span(text)
        except ValueError as problem:
            raise ValidationError(f"Time: {problem}") from None
        if not MINUTE <= span <= _LONGEST:
            raise ValidationError("The time must be 1 min to 31 d.")
        return span // SECOND


class _PercentField(TextField):
    """A percentage."""

    def clean(self, value: Any) -> Any:
        """Return the number; raise ``ValidationError``."""
        text = super().clean(value)
        if not re.fullmatch(r"\d{1,6}(\.\d{1,3})?", text or "0", re.ASCII):
            raise ValidationError(f"Percent must be a number, not “{visible_text(text[:40])}”.")
        return float(text or 0)


class _CountField(TextField):
    """A whole number from 1."""

    def clean(self, value: Any) -> Any:
        """Return the number; raise ``ValidationError``."""
        text = super().clean(value)
        good = re.fullmatch(r"\d{1,7}", text or "1", re.ASCII)
        if not good or not 1 <= int(text or 1) <= _MOST_COUNT:
            raise ValidationError(
                f"Executions must be 1 to {_MOST_COUNT:,}, not “{visible_text(text[:40])}”."
            )
        return int(text or 1)


class AlarmForm(PageForm):
    """An alarm to create or change. ``revision``: the displayed revision, "" for a new alarm.

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
        """Refuse a kind without a form."""
        kind = str(self.cleaned_data["kind"])
        if kind not in OFFERED:
            raise ValidationError(
                f"“{visible_text(kind[:40])}” is not one of {', '.join(OFFERED)}."
            )
        return kind


class _NumberField(TextField):
    """A number for a threshold."""

    def clean(self, value: Any) -> Any:
        """Return the number; raise ``ValidationError``."""
        text = super().clean(value)
        if not re.fullmatch(r"-?\d{1,12}(\.\d{1,6})?", text, re.ASCII):
            raise ValidationError(f"Threshold must be a number, not “{visible_text(text[:40])}”.")
        return float(text)


class _WholeNumberField(TextField):
    """A number of periods, or of seconds. ``parameter``: its name in PutMetricAlarm."""

    def __init__(self, parameter: str, default: str = "") -> None:
        super().__init__(default=default)
        self._parameter = parameter

    def clean(self, value: Any) -> Any:
        """Return the number; raise ``ValidationError``."""
        text = super().clean(value)
        if not re.fullmatch(r"\d{1,7}", text, re.ASCII):
            value = visible_text(text[:40])
            raise ValidationError(f"{self._parameter} must be a whole number, not “{value}”.")
        return int(text)


class MetricAlarmForm(PageForm):
    """An alarm on a metric. ``revision``: the displayed revision, "" for a new alarm.

    ``over``: the later revision that the reader has agreed to overwrite, "" for none.
    ``metric``, ``statistic`` and ``period``: "" to keep the current value; ``period`` is in
    seconds.
    """

    name = TextField()
    metric = TextField()
    statistic = TextField()
    period = _WholeNumberField("Period", default="0")
    comparison = TextField()
    threshold = _NumberField()
    datapoints = _WholeNumberField("DatapointsToAlarm")
    periods = _WholeNumberField("EvaluationPeriods")
    missing = TextField()
    description = TextField(cut=1_024)
    revision = TextField(strip=False)
    over = TextField(strip=False)

    def parameters(self) -> dict[str, Any]:
        """Return the condition by the names of PutMetricAlarm."""
        sent = self.values
        return {
            "Period": sent["period"],
            "EvaluationPeriods": sent["periods"],
            "DatapointsToAlarm": sent["datapoints"],
            "Threshold": sent["threshold"],
            "ComparisonOperator": sent["comparison"],
            "TreatMissingData": sent["missing"],
            "AlarmDescription": sent["description"],
        }


class DeleteAlarmForm(PageForm):
    """The name of an alarm to delete."""

    name = TextField(strip=False)


class NotifyForm(PageForm):
    """The target of notifications about a state machine's alarms."""

    target = TextField()
