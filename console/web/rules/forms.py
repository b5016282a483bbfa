"""The forms of event rules and start links."""

from __future__ import annotations

from console.web.core.forms import PageForm, PresenceField, SubsetField, TextField
from console.web.rules import rule_display


class _ZoneField(TextField):
    """A time zone; an empty one reads as UTC."""

    def to_python(self, value: object) -> str:
        """Return the zone."""
        return super().to_python(value) or "UTC"


class NewRuleForm(PageForm):
    """A new rule with its first target and what that gets."""

    name = TextField()
    target = TextField(strip=False)
    machine = TextField(strip=False)
    input = TextField()


class NotificationForm(NewRuleForm):
    """A rule for a pattern; without one, for statuses of a machine's executions."""

    pattern = TextField()
    status = SubsetField(rule_display.STATUSES)


class ScheduleForm(NewRuleForm):
    """A rule for times. Its target is ``machine``."""

    schedule = TextField()
    timezone = _ZoneField()


class RuleForm(PageForm):
    """Changes of a rule.

    ``revision``: of the rule that was on display; ``over``: of the one that the reader replaces.
    ``choices``: ``status`` and ``machine`` were chosen, instead of a typed ``pattern``.
    """

    choices = PresenceField()
    status = SubsetField(rule_display.STATUSES)
    machine = TextField(strip=False)
    pattern = TextField()
    schedule = TextField()
    timezone = _ZoneField()
    description = TextField()
    revision = TextField(strip=False)
    over = TextField(strip=False)


class SwitchForm(PageForm):
    """``act``: ``enable``, or anything else to disable a rule."""

    act = TextField(strip=False)


class TargetForm(PageForm):
    """A target to add, and what it gets."""

    target = TextField(strip=False)
    input = TextField()


class TargetIdForm(PageForm):
    """The id of a target to remove or to test."""

    id = TextField(strip=False)


class DeadLettersForm(PageForm):
    """``cause``: the key of a group of dead letters, "" for all of a rule."""

    cause = TextField()


class StartLinkForm(PageForm):
    """The name of a new start link."""

    name = TextField(strip=False)


class ScheduleTimesForm(PageForm):
    """A schedule expression and its time zone, as far as they are typed."""

    schedule = TextField()
    timezone = _ZoneField()
