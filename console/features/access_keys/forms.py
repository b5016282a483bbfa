"""Forms of access keys, their limits, and service accounts."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from console.errors import ValidationException
from console.features.access_keys.key_scopes import read_scope
from console.models.key_scope import ActionSet, KeyScope
from console.store.people.people import check_expiry
from console.web.core.forms import PageForm, TextField

if TYPE_CHECKING:
    from console.models import AccessKey


LIST = "list"
"""The value of the form of a new key for actions that are listed by their names."""


class KeyForm(PageForm):
    """``act``: ``delete``, ``enable``, ``describe``; other values disable the key."""

    act = TextField(strip=False)
    description = TextField()


class LimitsForm(PageForm):
    """The limits of a key. ``until``: its last day, "" for no expiry.

    ``actions``: a set of actions by its name, ``list`` for the actions of ``listed``. ``machines``:
    names and prefixes of state machines.
    """

    until = TextField()
    actions = TextField(default=ActionSet.ALL)
    listed = TextField()
    machines = TextField()

    @property
    def scope(self) -> KeyScope:
        """Return the scope; raise ValidationException."""
        sent = self.values
        actions = None if sent["actions"] == LIST else sent["actions"]
        return read_scope(actions, _words(sent["listed"]), _words(sent["machines"]))

    @property
    def expires_ms(self) -> int | None:
        """Return the end of the last day; raise ValidationException."""
        return end_of_day(self.values["until"])


class NewKeyForm(LimitsForm):
    """``member``: the service account that gets the key, "" for oneself.

    ``description``: the program or person that uses the key.
    """

    member = TextField()
    description = TextField()


def end_of_day(text: str) -> int | None:
    """Return the end of a day in UTC, None without a day; raise ValidationException."""
    if not text:
        return None
    try:
        day = datetime.strptime(text, "%Y-%m-%d").replace(tzinfo=UTC)
    except ValueError:
        raise ValidationException(
            f"The expiry date must be a day such as 2030-12-31, not {text[:40]!r}"
        ) from None
    return int((day + timedelta(days=1)).timestamp() * 1000) - 1


def _words(text: str) -> list[str]:
    return [word for word in re.split(r"[\s,]+", text) if word]


class ServiceAccountForm(PageForm):
    """``act``: ``create``, ``change`` or ``delete``."""

    act = TextField(default="create")
    name = TextField()
    role = TextField()
    description = TextField()


class ChangedLimitsForm(LimitsForm):
    """The limits of an existing key."""

    def limits(self, key: AccessKey) -> tuple[KeyScope, int | None]:
        """Return scope and expiry date, or raise ``LimitError``."""
        return self._checked_scope(), self._checked_expiry(key)

    def _checked_scope(self) -> KeyScope:
        try:
            return self.scope
        except ValidationException as error:
            field = "listed" if self.values["actions"] == LIST else "actions"
            if error.message.startswith("state machines:"):
                field = "machines"
            raise LimitError(field, error.message) from None

    def _checked_expiry(self, key: AccessKey) -> int | None:
        if self.values["until"] == shown_limits(key)["until"]:
            return key.expires_ms  # within the day on display, as it is
        try:
            expires_ms = self.expires_ms
            check_expiry(expires_ms)
        except ValidationException as error:
            raise LimitError("until", error.message) from None
        return expires_ms


class LimitError(ValidationException):
    """A field of the limits form is invalid."""

    def __init__(self, field: str, message: str) -> None:
        self.field = field
        super().__init__(message)


def shown_limits(key: AccessKey) -> dict[str, Any]:
    """Return the limits of a key as form values."""
    scope, ends = KeyScope.of_text(key.scope), ""
    if key.expires_ms is not None:
        ends = f"{datetime.fromtimestamp(key.expires_ms / 1000, UTC):%Y-%m-%d}"
    return {
        "until": ends,
        "actions": LIST if scope.actions is None else scope.actions.value,
        "listed": " ".join(sorted(scope.listed)),
        "machines": " ".join(scope.machines),
    }
