"""Forms of the state machine pages."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from django.core.exceptions import ValidationError

from console.integrations import mocks
from console.web.core.forms import PageForm, PresenceField, TextField

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
_SECONDS = re.compile(r"0*[1-9]\d{0,7}", re.ASCII)


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
