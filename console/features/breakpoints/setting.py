"""The project setting that forbids breakpoints, also in exports of the project's settings."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from console.db import project_settings
from console.db.setting_sections import CheckedEntry, MemberError, SettingSection
from console.store.executions.breakpoints import ALLOWED, SETTING

if TYPE_CHECKING:
    from console.db.audit import Actor
    from console.db.project_settings import StoredSetting
    from console.models import Project


def sections() -> tuple[SettingSection, ...]:
    """Return the section of the settings file (``Hook.SETTING_SECTIONS``)."""
    return (SettingSection(SETTING, SETTING, _check, _words, _lacking, "halted-lines"),)


def put_allowed(project: Project, actor: Actor, *, allowed: bool) -> None:
    """Allow or forbid breakpoints in a project; raise ConflictException after another change."""
    row = project_settings.find_setting(project, SETTING, ALLOWED)
    revision = "" if row is None else row.revision
    project_settings.put_setting(
        *(project, SETTING, ALLOWED, allowed, actor), revision=revision, summary=_words(allowed)
    )


def _check(project: Project, name: str, value: Any) -> CheckedEntry:
    del project
    if name != ALLOWED:
        raise MemberError("", f"an unknown entry, wanted {ALLOWED}")
    if not isinstance(value, bool):
        raise MemberError("", f"got {str(value)[:80]!r}, wanted true or false")
    return CheckedEntry(name, value)


def _words(value: Any) -> str:
    return "allowed" if value else "forbidden"


def _lacking(setting: StoredSetting) -> str:
    del setting
    return ""
