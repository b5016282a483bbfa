"""Export a project's settings as a document of sections, and import such a document.

An imported section replaces that section of the project; missing sections stay. The operator's
settings are not exported. An import is one transaction.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from pydantic import ValidationError

from console.config import environment, quotas, setting_shapes
from console.db import project_settings
from console.db.setting_sections import CheckedEntry, MemberError
from console.db.writer import write
from console.errors import ConflictException, ServiceError, ValidationException
from console.feature import Hook, hooked
from console.features.project_settings import checks, documents
from console.integrations import mocks, permissions
from console.models import Project
from console.store.executions import retention
from console.store.people import masks

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from pydantic import TypeAdapter

    from console.db.audit import Actor
    from console.db.project_settings import StoredSetting
    from console.db.setting_sections import SettingSection
    from console.features.project_settings.documents import Document

QUOTAS, DENY, RETENTION, MASKS, MOCKS = "quotas", "deny", "retention_days", "masks", "mocks"
_SINGLE = {RETENTION: retention.KIND, MOCKS: mocks.KIND}
"""Sections that are a single setting without a name."""
_NAMED = {QUOTAS: quotas.KIND, DENY: permissions.KIND}
"""Sections of settings by name."""
_OF_CORE = (QUOTAS, DENY, RETENTION, MASKS, MOCKS)


@dataclass(frozen=True, slots=True)
class SettingChange:
    """The change of one setting by an import. ``before``, ``after``: a text, "" for none.

    ``note``: a further effect.
    """

    section: str
    name: str
    before: str
    after: str
    note: str = ""

    def __str__(self) -> str:
        name = f"{self.section}: {self.name}" if self.name else self.section
        if not self.before:
            words = f"+ {name}: {self.after}"
        elif not self.after:
            words = f"- {name}: {self.before}"
        else:
            words = f"~ {name}: {self.before} -> {self.after}"
        return f"{words} ({self.note})" if self.note else words


@dataclass(frozen=True, slots=True)
class _Step:
    """A change, and the function that makes it."""

    change: SettingChange
    apply: Callable[[Actor], object]


@dataclass(frozen=True, slots=True)
class LackingSecret:
    """A setting without effect until its secrets are entered. ``page``: the place for that."""

    section: str
    name: str
    words: str
    page: str

    def __str__(self) -> str:
        return f"{self.section}: {self.name}: {self.words}"


@dataclass(frozen=True, slots=True)
class Plan:
    """The changes of an import. ``state``: a fingerprint of the settings that it is based on.

    ``secrets``: to be entered after the import.
    """

    changes: tuple[SettingChange, ...]
    state: str
    secrets: tuple[LackingSecret, ...] = ()


@dataclass(slots=True)
class _Steps:
    """The steps of an import, and the secrets that are missing after it."""

    steps: list[_Step]
    secrets: list[LackingSecret]

    def plan(self, state: str) -> Plan:
        """Return the plan of the steps."""
        return Plan(tuple(step.change for step in self.steps), state, tuple(self.secrets))


def export_settings(project: Project) -> str:
    """Return the settings of a project as YAML."""
    return documents.write_document(_sections_of(project), project.name)


def plan_import(project: Project, text: str) -> Plan:
    """Return the changes of an import; raise ValidationException for invalid sections."""
    return _steps(project, documents.read_document(text)).plan(_state(project))


def import_settings(project: Project, text: str, actor: Actor, state: str = "") -> Plan:
    """Import a document; return the changes.

    ``state``: the fingerprint in the dry run. Raise ValidationException, and ConflictException if
    the settings have changed since.
    """
    document = documents.read_document(text)

    def store() -> Plan:
        locked = Project.objects.select_for_update(no_key=True).get(pk=project.pk)
        now = _state(locked)
        if state and state != now:
            raise ConflictException("The settings were changed meanwhile.")
        plan = _steps(locked, document)
        for step in plan.steps:
            step.apply(actor)
        return plan.plan(now)

    return write(store)


def _sections_of(project: Project) -> dict[str, Any]:
    """Return all sections as values of a document."""
    sections: dict[str, Any] = {}
    for section in _OF_CORE:
        if section in _NAMED:
            rows = project_settings.list_settings(project, _NAMED[section])
            sections[section] = {row.name: row.value for row in rows}
        elif section == MASKS:
            sections[section] = project.masked.splitlines()
        else:
            row = project_settings.find_setting(project, _SINGLE[section])
            empty: Any = {} if section == MOCKS else None
            sections[section] = empty if row is None else row.value
    for added in _added_sections().values():
        rows = project_settings.list_settings(project, added.kind)
        values = {row.name: row.value for row in rows}
        sections[added.name] = list(values) if added.is_list else values
    return sections


def _added_sections() -> dict[str, SettingSection]:
    """Return the sections declared by features, by name."""
    return {each.name: each for sections in hooked(Hook.SETTING_SECTIONS) for each in sections()}


def _state(project: Project) -> str:
    """Return a fingerprint of a project's settings."""
    current = Project.objects.get(pk=project.pk)
    text = json.dumps(_sections_of(current), sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()


# -- what a document changes -----------------------------------------------------------------------


def _steps(project: Project, document: Document) -> _Steps:
    plan, added = _Steps([], []), _added_sections()
    for section, value in document.sections.items():
        if section in added:
            _add_entries(plan, project, document, added[section], value)
        elif section in _NAMED:
            plan.steps += _named_steps(project, document, section, value)
        elif section == MASKS:
            plan.steps += _mask_steps(project, document, value)
        elif section in _SINGLE:
            plan.steps += _single_steps(project, document, section, value)
        else:
            sections = ", ".join((*_OF_CORE, *added))
            raise document.refusal((section,), f"{section}: an unknown section, wanted {sections}")
    return plan


def _named_steps(project: Project, document: Document, section: str, value: Any) -> list[_Step]:
    """Return the steps of a section of settings by name."""
    if not isinstance(value, dict):
        raise document.refusal((section,), f"{section}: this section must have settings by name")
    rows = {row.name: row for row in project_settings.list_settings(project, _NAMED[section])}
    steps = []
    for name, new in value.items():
        checked = _check_setting(project, document, section, name, new)
        if name not in rows or rows[name].value != checked:
            steps.append(_step(project, section, name, rows.get(name), checked))
    return steps + [
        _removal(project, section, row) for name, row in rows.items() if name not in value
    ]


def _single_steps(project: Project, document: Document, section: str, value: Any) -> list[_Step]:
    """Return the steps of a single setting; null or an empty object removes it."""
    row = project_settings.find_setting(project, _SINGLE[section])
    if value is None or value == {}:
        return [] if row is None or row.value == value else [_removal(project, section, row)]
    checked = _check_setting(project, document, section, "", value)
    if row is not None and row.value == checked:
        return []
    return [_step(project, section, "", row, checked)]


def _mask_steps(project: Project, document: Document, value: Any) -> list[_Step]:
    """Return the step that replaces the masked paths."""
    if not isinstance(value, list) or not all(isinstance(path, str) for path in value):
        raise document.refusal((MASKS,), f"{MASKS}: this section must be a list of JSONPaths")
    for index, path in enumerate(value):
        try:
            masks.check_path(index + 1, path.strip())
        except ServiceError as error:
            raise document.refusal((MASKS, index), f"{MASKS}: {error.message}") from None
    paths = list(dict.fromkeys(path.strip() for path in value if path.strip()))
    before = project.masked.splitlines()
    if paths == before:
        return []
    change = SettingChange(MASKS, "", ", ".join(before), ", ".join(paths))
    return [_Step(change, lambda actor: masks.put_paths(project, paths, actor))]


def _step(
    project: Project, section: str, name: str, row: StoredSetting | None, value: Any
) -> _Step:
    """Return the step that sets a setting to a value."""
    before = "" if row is None else _words(section, row.value)
    after = _words(section, value)
    change = SettingChange(section, name, before, after, _note(project, section, value))

    def apply(actor: Actor) -> None:
        project_settings.put_setting(
            project,
            _kind(section),
            name,
            value,
            actor,
            revision="" if row is None else row.revision,
            summary=after,
        )

    return _Step(change, apply)


def _removal(project: Project, section: str, row: StoredSetting) -> _Step:
    """Return the step that removes a setting."""
    change = SettingChange(section, row.name, _words(section, row.value), "")
    return _Step(change, partial(_remove_row, project, row))


def _remove_row(project: Project, row: StoredSetting, actor: Actor) -> None:
    project_settings.remove_setting(project, row.kind, row.name, actor, revision=row.revision)


def _add_entries(
    plan: _Steps, project: Project, document: Document, section: SettingSection, value: Any
) -> None:
    """Add the steps of a feature's section, and the secrets missing in its entries."""
    rows = {row.name: row for row in project_settings.list_settings(project, section.kind)}
    names = set()
    for place, name, new in _entries(document, section, value):
        row = rows.get(name)
        if row is not None and row.value == new:
            entry = CheckedEntry(name, new, section.lacking(row))  # also one refused by now
        else:
            entry = _checked_entry(project, document, section, place, name, new)
        if entry.name in names:
            raise document.refusal(place, f"{section.name}: {entry.name}: it stands twice")
        names.add(entry.name)
        row = rows.get(entry.name)
        if row is None or row.value != entry.value:
            plan.steps.append(_entry_step(project, section, row, entry))
        if entry.lacking:
            lacking = LackingSecret(section.name, entry.name, entry.lacking, section.page)
            plan.secrets.append(lacking)
    for name, row in rows.items():
        if name not in names:
            change = SettingChange(section.name, name, section.words(row.value), "")
            plan.steps.append(_Step(change, partial(_remove_row, project, row)))


def _entries(
    document: Document, section: SettingSection, value: Any
) -> Iterator[tuple[documents.Place, str, Any]]:
    """Yield place, name and value of the entries of a section."""
    place = (section.name,)
    if not section.is_list:
        if not isinstance(value, dict):
            raise document.refusal(place, f"{section.name}: this section must have entries by name")
        yield from (((section.name, name), name, entry) for name, entry in value.items())
    elif isinstance(value, list) and all(isinstance(name, str) for name in value):
        yield from (((section.name, index), name, {}) for index, name in enumerate(value))
    else:
        raise document.refusal(place, f"{section.name}: this section must be a list of texts")


def _checked_entry(
    project: Project,
    document: Document,
    section: SettingSection,
    place: documents.Place,
    name: str,
    value: Any,
) -> CheckedEntry:
    """Return a valid entry; raise ValidationException with the line of its member."""
    try:
        return section.check(project, name, value)
    except MemberError as error:
        member = (error.member,) if error.member else ()
        words = ": ".join((section.name, name, *member, error.words))
        raise document.refusal((*place, *member), words) from None


def _entry_step(
    project: Project, section: SettingSection, row: StoredSetting | None, entry: CheckedEntry
) -> _Step:
    """Return the step that sets a feature's setting to an entry."""
    before = "" if row is None else section.words(row.value)
    after = section.words(entry.value)
    note = f"enter its {entry.lacking} after the import" if entry.lacking else ""

    def apply(actor: Actor) -> None:
        project_settings.put_setting(
            project,
            section.kind,
            entry.name,
            entry.value,
            actor,
            revision="" if row is None else row.revision,
            secrets={} if entry.drops_secrets else None,
            summary=after,
        )

    return _Step(SettingChange(section.name, entry.name, before, after, note), apply)


def _kind(section: str) -> str:
    return _NAMED.get(section) or _SINGLE[section]


def _note(project: Project, section: str, value: Any) -> str:
    """Return a further effect of a change."""
    if section != RETENTION:
        return ""
    older = retention.count_older(project, value)
    if not older:
        return ""
    executions = f"{older} execution{'' if older == 1 else 's'}"
    return f"removes {executions} within the hour; there is no undo"


def _words(section: str, value: Any) -> str:
    """Return a value as text, for the plan and the audit."""
    if section == QUOTAS:
        return quotas.show_quota(quotas.Rate(**value) if isinstance(value, dict) else value)
    if section == DENY:
        return ", ".join(value)
    if section == RETENTION:
        return f"{value:g} days"
    return f"{len(value.get('StateMachines', {}))} state machines"


# -- what a document has ---------------------------------------------------------------------------


def _check_setting(
    project: Project, document: Document, section: str, name: str, value: Any
) -> Any:
    """Return a valid value of a setting; raise ValidationException with its line."""
    place = (section, name) if name else (section,)
    try:
        if section == QUOTAS:
            return checks.checked_quota(project.name, name, value)
        if section == DENY:
            _check_shape(document, setting_shapes.PERMISSIONS, {DENY: {name: value}}, ())
            return checks.checked_denial(name, value)
        if section == RETENTION:
            return checks.checked_days(value)
        _check_shape(document, setting_shapes.MOCKS, value, (MOCKS,))
        return checks.checked_mocks(value)
    except _PlacedError:
        raise
    except ServiceError as error:
        raise document.refusal(place, f"{section}: {error.message}") from None


class _PlacedError(ValidationException):
    """An error whose message already has its line."""


def _check_shape(
    document: Document, shape: TypeAdapter[Any], value: Any, place: documents.Place
) -> None:
    """Raise an error with the line of the member that does not match a shape."""
    try:
        shape.validate_python(value, strict=True)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
    else:
        return
    parts = [part for part in first["loc"] if part not in environment.KINDS_OF_ENTRY]
    if first["type"] == environment.UNKNOWN:
        parts.append(first["ctx"]["name"])
    line = document.line((*place, *parts))
    try:
        environment.check_object(value, ": ".join(map(str, place)), shape)
    except environment.SettingError as error:
        raise _PlacedError(f"line {line}: {str(error).removeprefix(': ')}") from None
