"""Forms of the people pages; forms for passwords are Django's."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from console.errors import ValidationException
from console.models.key_scope import ActionSet
from console.store.people.key_scopes import read_scope
from console.web.core.forms import PageForm, TextField

if TYPE_CHECKING:
    from console.models.key_scope import KeyScope

LIST = "list"
"""The value of the form of a new key for actions that are listed by their names."""


class NextForm(PageForm):
    """The URL after a login. ``unsent``: a form was lost because the session had ended."""

    next = TextField(strip=False)
    unsent = TextField()


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
