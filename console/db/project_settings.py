"""Read and change project settings: values that owners set on pages, beside the operator's files.

Theory of operation
===================

A setting is a row of ``ProjectSetting`` with the key project, kind and name. Users of a setting
read it by ``read_settings`` each time: no process has to be restarted.

**At once.** ``read_settings`` remembers the rows of a project for a second. A change is published
as a signal (``Topic.RIGHTS``), which clears the cache of every process. A lost signal delays the
change by a second and a half at most. During an outage of the database, the cached values count.

**The file wins.** The operator may set the same in a file. A name that the file has is the file's,
and its page shows it as read-only.

**Concurrent changes.** Each row has a ``revision``. A form contains the revision that it shows, and
``put_setting`` raises ``ConflictException`` if the row has another one by now.

**Secrets** are encrypted (``console.db.sealing``) and bound to their row. ``open_setting`` is the
only way to them, for calls. No page shows them, and no export has them. A caller that changes the
destination of a secret must request the secret again; otherwise a second owner could read it in
this way.

**Branches** have the settings of their parent, which are changed there.
"""

from __future__ import annotations

import json
import threading
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from django.db import Error, connection
from django.db.models import Max, Sum

from console.db import audit, clock, sealing, signals
from console.db.branch_names import is_branch, parent_name
from console.db.rows import storable
from console.db.writer import release_connection, write
from console.errors import ConflictException, ErrorCode, ServiceError, ValidationException
from console.models import Project, ProjectSetting
from console.statuses import Topic

if TYPE_CHECKING:
    from collections.abc import Mapping

PUT, REMOVE = "PutProjectSetting", "RemoveProjectSetting"
"""The actions that change settings, for rights and the audit."""
MOST = 500
"""Settings of one kind in a project."""
ROLE = "role"
OF_MACHINES = (ROLE,)
"""The kinds whose names are those of state machines: the settings are deleted with them."""
LONGEST_VALUE = 256 * 1024
LONGEST_NAME = 256
_KEPT_S = 1.0
_GRACE_S = 0.25
"""How long other threads use the expired rows while one thread reads them again."""
_MOST_PROJECTS = 1000


@dataclass(frozen=True, slots=True)
class StoredSetting:
    """A setting in the database. ``revision``: changes with every change of the row.

    ``sealed``: its secrets for ``open_setting``, "" without any.
    """

    project_id: int
    kind: str
    name: str
    value: Any
    sealed: str
    revision: str
    changed_ms: int
    changed_by: str


_Remembered = dict[tuple[str, str], StoredSetting]
_remembered: dict[str, tuple[float, _Remembered]] = {}
_changes = 0
_claiming = threading.Lock()
"""Held while a thread extends the validity of the cache, before it reads the rows again."""


@dataclass(slots=True)
class SettingsInUse:
    """The settings of a kind, of all projects. ``sums``: differ whenever the rows do.

    A caller may keep it ``until`` its expiry, by the monotonic clock. A change sets that to 0.
    """

    until: float
    sums: tuple[int | None, ...]
    values: tuple[tuple[str, Any], ...]
    names: frozenset[str]


_used: dict[str, SettingsInUse] = {}


def forget_settings() -> None:
    """Clear the cache of settings."""
    global _changes  # noqa: PLW0603 - one a process
    with _claiming:
        _changes += 1
        for project, (_, rows) in list(_remembered.items()):
            _remembered[project] = 0.0, rows
        for in_use in list(_used.values()):
            in_use.until = 0.0


signals.subscribe((Topic.RIGHTS,), forget_settings)


# -- reading ---------------------------------------------------------------------------------------


def read_settings(project: str, kind: str) -> dict[str, StoredSetting]:
    """Return the settings of a kind by name. ``project``: its name; no project has none."""
    return {name: row for (of, name), row in _rows_of(project).items() if of == kind}


def read_value(project: str, kind: str, name: str = "") -> Any:
    """Return the value of a setting, None if it is not set."""
    row = _rows_of(project).get((kind, name))
    return None if row is None else row.value


def names_in_use(kind: str) -> frozenset[str]:
    """Return the names of the settings of a kind that any project has, as of the last second."""
    return settings_in_use(kind).names


def settings_in_use(kind: str) -> SettingsInUse:
    """Return the settings of a kind of all projects, as of the last second.

    Unchanged settings are returned as the same object. Sums are read once a second, and the rows if
    a sum differs: each change raises a version or the highest number, or lowers the sum of numbers.
    """
    remembered = _used.get(kind)
    now = time.monotonic()
    if remembered is not None and now < remembered.until:
        return remembered
    with _claiming:  # one thread reads; the others return the values of before meanwhile
        if remembered is not None and now < remembered.until + _GRACE_S:
            remembered.until = now + _GRACE_S
        before, is_idle = _changes, connection.connection is None
    try:
        rows = ProjectSetting.objects.filter(kind=kind)
        columns = Max("pk"), Sum("pk"), Sum("version"), Max("changed_ms")
        sums = tuple(rows.aggregate(*columns).values())
        in_use = remembered
        if in_use is None or sums != in_use.sums:
            pairs = rows.order_by("pk").values_list("name", "value") if any(sums) else ()
            values = tuple((name, json.loads(value)) for name, value in pairs)
            in_use = SettingsInUse(0.0, sums, values, frozenset(name for name, _ in values))
    except Error:
        if remembered is None:
            raise
        return remembered
    finally:
        if is_idle:
            release_connection()
    with _claiming:
        if remembered is not None:
            remembered.until = 0.0  # for callers that keep it
        in_use.until = now + _KEPT_S if before == _changes else 0.0
        _used[kind] = in_use
    return in_use


def list_settings(project: Project, kind: str) -> list[StoredSetting]:
    """Return the current settings of a kind by name, uncached: for pages and exports.

    A value has no secrets.
    """
    name = parent_name(project.name)
    rows = ProjectSetting.objects.filter(project__name=name, kind=kind).order_by("name")
    return [_stored(row) for row in rows]


def find_setting(project: Project, kind: str, name: str = "") -> StoredSetting | None:
    """Return a current setting, uncached; None if it is not set."""
    rows = ProjectSetting.objects.filter(project__name=parent_name(project.name), kind=kind)
    row = rows.filter(name=name).first()
    return None if row is None else _stored(row)


def open_setting(setting: StoredSetting) -> dict[str, str]:
    """Return the secrets of a setting, {} without any; raise ``sealing.SealError``."""
    if not setting.sealed:
        return {}
    return sealing.open_secrets(
        setting.sealed, _place(setting.project_id, setting.kind, setting.name)
    )


def _rows_of(project: str) -> _Remembered:
    """Return the settings of a project by kind and name, as of the last second."""
    if not project:
        return {}
    project = parent_name(project)
    remembered = _remembered.get(project)
    now = time.monotonic()
    if remembered is not None and now < remembered[0]:
        return remembered[1]
    with _claiming:  # one thread reads; the others return the rows of before meanwhile
        expired = remembered is not None and now < remembered[0] + _GRACE_S
        if remembered is not None and expired and _remembered.get(project) is remembered:
            _remembered[project] = now + _GRACE_S, remembered[1]
        before, is_idle = _changes, connection.connection is None
    try:
        rows = {
            (row.kind, row.name): _stored(row)
            for row in ProjectSetting.objects.filter(project__name=project)
        }
    except Error:
        if remembered is None:
            raise
        return remembered[1]
    finally:
        if is_idle:
            release_connection()  # a call of a Task may take its time
    if len(_remembered) >= _MOST_PROJECTS:
        _remembered.clear()
    # A race: this thread reads, another one commits a change and voids what is remembered, this
    # thread remembers what it read before: it counts for this call only.
    _remembered[project] = (now + _KEPT_S if before == _changes else 0.0), rows
    return rows


def _stored(row: ProjectSetting) -> StoredSetting:
    return StoredSetting(
        row.project_id,
        row.kind,
        row.name,
        json.loads(row.value),
        row.sealed,
        f"{row.pk}.{row.version}",  # the number: a removed and recreated row is another one
        row.changed_ms,
        row.changed_by,
    )


def _place(project_id: int, kind: str, name: str) -> str:
    """Return the context that binds secrets to their row."""
    return f"{project_id}/{kind}/{name}"


# -- changes ---------------------------------------------------------------------------------------


def put_setting(
    project: Project,
    kind: str,
    name: str,
    value: Any,
    actor: audit.Actor,
    *,
    revision: str,
    secrets: Mapping[str, str] | None = None,
    summary: str = "",
) -> StoredSetting:
    """Save a setting and its audit entry.

    ``revision``: the revision that was edited, "" for a new row. ``secrets``: None
    leaves them as they are. ``summary``: describes the change in the audit, without secrets. Raise
    ConflictException if the row is not at that revision, ValidationException for a value that is
    too large and for too many settings.
    """
    text = json.dumps(value)
    if len(text) > LONGEST_VALUE:
        raise ValidationException(
            f"The setting has {len(text)} characters. At most {LONGEST_VALUE} are stored."
        )
    if len(name) > LONGEST_NAME or name != storable(name):
        raise ValidationException(f"The name must be a text of at most {LONGEST_NAME} characters.")

    def store() -> StoredSetting:
        row = _locked_row(project, kind, name, revision)
        if row is None:
            if ProjectSetting.objects.filter(project=project, kind=kind).count() >= MOST:
                raise ValidationException(f"A project has at most {MOST} settings of this kind.")
            row = ProjectSetting(project=project, kind=kind, name=name, version=0)
        row.value, row.version = text, row.version + 1
        if secrets is not None:
            place = _place(project.pk, kind, name)
            row.sealed = sealing.seal_secrets(secrets, place) if secrets else ""
        row.changed_ms, row.changed_by = clock.now_ms(), actor.name
        row.save()
        audit.record(project, actor, PUT, str(row), summary)
        signals.publish((Topic.RIGHTS,))
        return _stored(row)

    return write(store)


def remove_setting(
    project: Project, kind: str, name: str, actor: audit.Actor, *, revision: str
) -> None:
    """Remove a setting, and write the audit entry.

    Raise ResourceNotFound if there is none, ConflictException if it is at another revision.
    """

    def store() -> None:
        row = _locked_row(project, kind, name, revision)
        if row is None:
            raise ServiceError(ErrorCode.ResourceNotFound, f"There is no {kind} {name!r}.")
        row.delete()
        audit.record(project, actor, REMOVE, str(row))
        signals.publish((Topic.RIGHTS,))

    write(store)


def remove_settings_of_machine(project: Project, name: str) -> None:
    """Remove the settings of a deleted state machine; part of the caller's transaction."""
    for row in ProjectSetting.objects.filter(project=project, kind__in=OF_MACHINES, name=name):
        row.delete()
        audit.record(project, audit.NOBODY, REMOVE, str(row))
        signals.publish((Topic.RIGHTS,))


def _locked_row(project: Project, kind: str, name: str, revision: str) -> ProjectSetting | None:
    """Return the row to change, None if there is none; raise ConflictException.

    Raise ValidationException for a branch. Changes of a project's settings wait for each other
    (inside the caller's transaction).
    """
    if is_branch(project.name):
        parent = parent_name(project.name)
        raise ValidationException(f"The settings of a branch are those of {parent!r}.")
    if not Project.objects.select_for_update(no_key=True).filter(pk=project.pk):
        raise ServiceError(ErrorCode.ResourceNotFound, f"There is no project {project.name!r}.")
    row = ProjectSetting.objects.filter(project=project, kind=kind, name=name).first()
    words = f"{kind} {name!r}" if name else kind
    if revision != ("" if row is None else f"{row.pk}.{row.version}"):
        if row is None:
            raise ConflictException(f"The {words} was removed meanwhile.")
        raise ConflictException(
            f"The {words} was changed meanwhile by {row.changed_by or 'the server'}."
        )
    return row
