"""Forms of versions, revisions and aliases."""

from __future__ import annotations

import re

from django.core.exceptions import ValidationError

from console.web.core.forms import PageForm, TextField
from console.web.core.numbers import whole_number

_LONGEST_DESCRIPTION = 256
_ALIAS = re.compile(r"(?=.*[a-zA-Z_.-])[\w.-]{1,80}", re.ASCII)
_PERCENT = 100


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
