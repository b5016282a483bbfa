"""Forms of the state machine pages."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from django.core.exceptions import ValidationError

from console.integrations import mocks
from console.web.core.forms import PageForm, PresenceField, TextField
from console.web.core.numbers import whole_number

if TYPE_CHECKING:
    from collections.abc import Mapping

    from console.integrations.targets import MachineKey

LEVELS = {
    "OFF": "Off",
    "FATAL": "Fatal: failures of executions",
    "ERROR": "Error: all failures",
    "ALL": "All: full history",
}
_LONGEST_KEY, _LONGEST_VALUE = 128, 256
_LONGEST_DESCRIPTION = 256
_ALIAS = re.compile(r"(?=.*[a-zA-Z_.-])[\w.-]{1,80}", re.ASCII)
_SECONDS = re.compile(r"0*[1-9]\d{0,7}", re.ASCII)
_PERCENT = 100


# -- start -----------------------------------------------------------------------------------------


class StartForm(PageForm):
    """A new execution. ``timeout``: in seconds; ``origin``: the execution that gave the input.

    ``saved``: the named input that it comes from, "" for none. ``run``: a version's number or an
    alias's name, "" for the current definition.
    """

    name = TextField()
    input = TextField(strip=False)
    origin = TextField(strip=False)
    saved = TextField(strip=False)
    run = TextField(strip=False)
    timeout = TextField()
    case = TextField(strip=False)

    def __init__(self, sent: Mapping[str, Any], machine: MachineKey) -> None:
        super().__init__(sent)
        self._machine = machine

    def clean_timeout(self) -> int | None:
        """Return the seconds, None for no limit."""
        text: str = self.cleaned_data["timeout"]
        if text and not _SECONDS.fullmatch(text):
            raise ValidationError(
                f"“{text}” is not a time limit. Enter whole seconds from 1 to 99999999."
            )
        return int(text) if text else None

    def clean_case(self) -> str:
        """Return the test case of the mock configuration, "" for none."""
        case: str = self.cleaned_data["case"]
        if case and case not in mocks.test_cases(self._machine):
            raise ValidationError(
                f"The mock configuration has no test case '{case}' for this state machine."
            )
        return case


# -- settings --------------------------------------------------------------------------------------


class LoggingForm(PageForm):
    """Log level, destination, and whether input and output are logged."""

    level = TextField(strip=False)
    group = TextField()
    data = PresenceField()  # type: ignore[assignment] # Django takes fields out of the class

    def clean_level(self) -> str:
        """Return the level, a key of ``LEVELS``."""
        level: str = self.cleaned_data["level"]
        if level not in LEVELS:
            raise ValidationError(f"“{level}” is not a level. Select one of {', '.join(LEVELS)}.")
        return level


class TracingForm(PageForm):
    """Whether executions are traced."""

    tracing = PresenceField()


class RoleForm(PageForm):
    """The ARN of the executions' role."""

    role = TextField()


class TagForm(PageForm):
    """A tag to set."""

    key = TextField()
    value = TextField()

    def clean(self) -> dict[str, Any]:
        """Refuse a key or a value that is too long, and an empty key."""
        key, value = self.cleaned_data["key"], self.cleaned_data["value"]
        if not 1 <= len(key) <= _LONGEST_KEY or len(value) > _LONGEST_VALUE:
            self.add_error(
                "key",
                f"A tag has a key of 1 to {_LONGEST_KEY} characters and a value of up to "
                f"{_LONGEST_VALUE}.",
            )
        return self.cleaned_data


class RemoveTagForm(PageForm):
    """The key of a tag to remove."""

    key = TextField(strip=False)


# -- versions and aliases --------------------------------------------------------------------------


class PublishForm(PageForm):
    """A new version."""

    description = TextField(strip=False, cut=_LONGEST_DESCRIPTION)


class DeleteVersionForm(PageForm):
    """The number of a version to delete."""

    number = TextField(strip=False)

    def clean_number(self) -> str:
        """Return the digits as they were sent."""
        number: str = self.cleaned_data["number"]
        if not number.isdecimal():
            raise ValidationError(f"“{number}” is not a version number.")
        return number


class RestoreForm(PageForm):
    """The revision to restore, and the revision of the state machine that the reader saw."""

    number = TextField(strip=False)
    revision = TextField(strip=False)

    def clean_number(self) -> int:
        """Return the number of a revision."""
        number: str = self.cleaned_data["number"]
        if not re.fullmatch(r"\d{1,9}", number, re.ASCII):
            raise ValidationError(f"“{number}” is not a revision number.")
        return int(number)


class AliasForm(PageForm):
    """An alias for one or two versions.

    ``share``: percent for the second version. ``seen``: the update date of the alias on the page.
    """

    name = TextField()
    first = TextField()
    second = TextField()
    share = TextField()
    description = TextField(strip=False, cut=_LONGEST_DESCRIPTION)
    seen = TextField()
    act = TextField(strip=False)

    def clean_name(self) -> str:
        """Return the name."""
        name: str = self.cleaned_data["name"]
        if not _ALIAS.fullmatch(name):
            raise ValidationError(
                f"“{name}” is not an alias name. Use up to 80 letters, digits, “_”, “-” or “.”, "
                "not digits alone."
            )
        return name

    def clean_share(self) -> int:
        """Return the second version's percent; 0 without a second version."""
        if not self.cleaned_data["second"]:
            return 0
        text: str = self.cleaned_data["share"]
        share = whole_number(text)
        if share is None or share > _PERCENT:
            raise ValidationError(
                f"“{text[:40]}” is not a share. Enter a whole number from 0 to 100."
            )
        return share


class DeleteAliasForm(PageForm):
    """The name of an alias to delete."""

    name = TextField(strip=False)
