"""Forms of rules, schedules and start links."""

from __future__ import annotations

import re
from typing import Any

from django.core.exceptions import ValidationError

from console.features.notifications.phrases import expression_of
from console.features.notifications.web import rule_display
from console.statuses import AfterCompletion
from console.web.core.forms import PageForm, PresenceField, SubsetField, TextField

_LONGEST_WINDOW = 1_440


class _ScheduleField(TextField):
    """A schedule expression; a phrase such as ``every 5 minutes`` is converted."""

    def to_python(self, value: Any) -> str:
        """Return the expression."""
        text = super().to_python(value)
        return expression_of(text) or text


class _ZoneField(TextField):
    """A time zone; empty means UTC."""

    def to_python(self, value: object) -> str:
        """Return the zone."""
        return super().to_python(value) or "UTC"


class NewRuleForm(PageForm):
    """A new rule with its first target and the target's input."""

    name = TextField()
    target = TextField(strip=False)
    machine = TextField(strip=False)
    input = TextField()


class _ChoicesForm(PageForm):
    """The conditions of a rule: execution statuses or, with ``about`` alarms, alarm states."""

    about = TextField()
    status = SubsetField(rule_display.STATUSES)
    alarm_state = SubsetField(rule_display.ALARM_STATES)
    machine = TextField(strip=False)


class NotificationForm(NewRuleForm, _ChoicesForm):
    """A rule with a pattern; without one, from execution statuses or alarm states."""

    pattern = TextField()


class ScheduleForm(NewRuleForm):
    """A rule with a schedule. ``back``: ``triggers`` for a form of the page *Triggers*."""

    back = TextField()

    schedule = _ScheduleField()
    timezone = _ZoneField()


class RuleForm(_ChoicesForm):
    """Changes of a rule.

    ``revision``: the displayed revision; ``over``: the later revision that the reader has agreed to
    overwrite, "" for none. ``choices``: the events were selected in the form, instead of typing a
    ``pattern``.
    """

    choices = PresenceField()
    pattern = TextField()
    schedule = _ScheduleField()
    timezone = _ZoneField()
    description = TextField()
    revision = TextField(strip=False)
    over = TextField(strip=False)


class ScheduleEditForm(PageForm):
    """Changes of a schedule of EventBridge Scheduler.

    ``revision``: the displayed revision; ``over``: the later revision that the reader has agreed to
    overwrite, "" for none.
    """

    schedule = _ScheduleField()
    timezone = _ZoneField()
    window = TextField()
    after_completion = TextField()
    input = TextField(lines=True)
    description = TextField()
    revision = TextField(strip=False)
    over = TextField(strip=False)

    def clean_window(self) -> int:
        """Return the minutes of the flexible time window, 0 for none."""
        text = str(self.cleaned_data["window"]) or "0"
        if not re.fullmatch(r"\d{1,4}", text, re.ASCII) or int(text) > _LONGEST_WINDOW:
            raise ValidationError(
                f"The flexible time window must be 1 to {_LONGEST_WINDOW:,} minutes."
            )
        return int(text)

    def clean_after_completion(self) -> AfterCompletion:
        """Return the action after the schedule's last time."""
        deletes = self.cleaned_data["after_completion"] == AfterCompletion.DELETE
        return AfterCompletion.DELETE if deletes else AfterCompletion.NONE


class SwitchForm(PageForm):
    """``act``: ``enable``; other values disable the rule."""

    act = TextField(strip=False)


class TargetForm(PageForm):
    """A new target and its input."""

    target = TextField(strip=False)
    input = TextField()


class TargetIdForm(PageForm):
    """The id of a target to remove or test."""

    id = TextField(strip=False)


class DeadLettersForm(PageForm):
    """``cause``: the key of a group of dead letters, "" for all."""

    cause = TextField()


class StartLinkForm(PageForm):
    """The name of a new start link."""

    name = TextField(strip=False)


class ScheduleTimesForm(PageForm):
    """A schedule expression and its time zone, while being typed.

    ``began``: what a rate counts from, ``end``: the end date, epoch ms, "" for none.
    """

    schedule = _ScheduleField()
    timezone = _ZoneField()
    began = TextField()
    end = TextField()


class SchedulePauseForm(PageForm):
    """The pause of all schedules. ``note``: the reason."""

    note = TextField(lines=True, cut=1000)
