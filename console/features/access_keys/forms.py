"""Forms of service accounts and of the limits of keys."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from console.errors import ValidationException
from console.models.key_scope import KeyScope
from console.store.people.people import check_expiry
from console.web.core.forms import PageForm, TextField
from console.web.people.forms import LIST, LimitsForm

if TYPE_CHECKING:
    from console.models import AccessKey


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
