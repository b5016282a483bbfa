"""Forms of a project's settings."""

from __future__ import annotations

import json
import math
import re
from typing import Any

from console.errors import ValidationException
from console.web.core.forms import PageForm, PresenceField, TextField

_LONGEST_SHOWN = 80
_THOUSANDS = re.compile(r"\d{1,3}(,\d{3})+(\.\d+)?")


class SettingForm(PageForm):
    """The common fields of the settings forms: the revision of the row, and the button *Remove*."""

    name = TextField(strip=False)
    revision = TextField()
    remove = PresenceField()


class QuotaForm(SettingForm):
    """A number, or both numbers of a rate; ``unlimited``: no limit."""

    value = TextField()
    bucket = TextField()
    refill = TextField()
    unlimited = PresenceField()

    def quota(self, *, is_rate: bool) -> Any:
        """Return the quota as JSON; raise ValidationException for an invalid number."""
        sent = self.values
        if sent["unlimited"]:
            return None
        if is_rate:
            name = sent["name"]
            return {key: _number(sent[key], f"{name}: {key}") for key in ("bucket", "refill")}
        number = _number(sent["value"], sent["name"])
        return int(number) if number.is_integer() else number


class DeniedRoleForm(SettingForm):
    """The denied actions of a role, one per line."""

    actions = TextField(lines=True)


class RetentionForm(SettingForm):
    """The days of retention.

    ``confirmed``: the days for which the reader has seen how many executions would be deleted.
    """

    days = TextField()
    confirmed = TextField()

    def number(self) -> float:
        """Return the days; raise ValidationException for an invalid number."""
        return _number(self.values["days"], "days")


class MocksForm(SettingForm):
    """A mock configuration in JSON. ``over``: the revision of another person to overwrite."""

    text = TextField(strip=False, lines=True)
    over = TextField()


class SettingsImportForm(PageForm):
    """A document to import. ``state``: the state of the settings in the dry run."""

    text = TextField(strip=False, lines=True)
    state = TextField()


def _number(text: str, name: str) -> float:
    # 10,000 is ten thousand; 1,5 might be one and a half, and is refused
    plain = text.replace(",", "") if _THOUSANDS.fullmatch(text) else text
    try:
        number = float(plain)
    except ValueError:
        number = math.nan
    if not math.isfinite(number):
        if not text:
            raise ValidationException(f"{name}: enter a number")
        raise ValidationException(f"{name}: {json.dumps(text[:_LONGEST_SHOWN])} is not a number")
    return number
