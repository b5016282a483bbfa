"""Types with which a feature declares its part of a project's settings file (export and import).

A feature lists its sections in ``Hook.SETTING_SECTIONS``. The rows of a section are settings of one
kind (``console.db.project_settings``); a file has their values, and never their secrets.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from console.errors import ValidationException

if TYPE_CHECKING:
    from collections.abc import Callable

    from console.db.project_settings import StoredSetting
    from console.models import Project


class MemberError(ValidationException):
    """An entry of a file is invalid. ``member``: the key of the value, "" for the entry."""

    def __init__(self, member: str, words: str) -> None:
        self.member, self.words = member, words
        super().__init__(f"{member}: {words}" if member else words)


@dataclass(frozen=True, slots=True)
class CheckedEntry:
    """An entry that an import may store. ``lacking``: secrets to enter, in words.

    ``drops_secrets``: the stored secrets do not belong to this value.
    """

    name: str
    value: Any
    lacking: str = ""
    drops_secrets: bool = False


@dataclass(frozen=True, slots=True)
class SettingSection:
    """A section of a file. ``kind``: the kind of its rows. ``is_list``: its entries are names only.

    ``check``: checks an entry, given the row that it replaces; raises ``MemberError``. ``words``:
    describes a value, for plans and the audit. ``lacking``: names the secrets that a row lacks.
    ``page``: the name of the page on which secrets are entered.
    """

    name: str
    kind: str
    check: Callable[[Project, str, Any], CheckedEntry]
    words: Callable[[Any], str]
    lacking: Callable[[StoredSetting], str]
    page: str
    is_list: bool = False
