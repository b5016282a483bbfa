"""Views of *Versions & aliases* of a state machine, and of the diff of two definitions."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from django.http import Http404
from django.views.decorators.http import require_http_methods, require_safe

from console.errors import ServiceError
from console.features.versions.definition_diff import diff_rows, drift_of, state_changes
from console.features.versions.forms import (
    AliasForm,
    DeleteAliasForm,
    DeleteVersionForm,
    PublishForm,
    RestoreForm,
)
from console.models import Alias, MachineRevision, Version
from console.store.machines import machines, revisions
from console.store.machines import versions as store
from console.store.machines.published import revision_numbers, versions_by_revision
from console.web.core import forms
from console.web.core.numbers import whole_number
from console.web.core.scope import Scope, actor_of, render, scope_of
from console.web.machines.views import machine_context

if TYPE_CHECKING:
    from collections.abc import Sequence

    from django.http import HttpRequest, HttpResponse

    from console.models import StateMachine
    from console.web.core.forms import FormActions

_PAGE = 50
_CHOICES = 200


@dataclass(frozen=True, slots=True)
class AliasFields:
    """The texts of an alias form. ``is_typed``: they were sent and refused."""

    first: str = ""
    second: str = ""
    share: str = ""
    description: str = ""
    is_typed: bool = False


@dataclass(frozen=True, slots=True)
class AliasRow:
    """A row of the alias table. ``routes``: (version number, percent)."""

    alias: Alias
    routes: list[tuple[int, int]]
    fields: AliasFields


@require_http_methods(["GET", "POST"])
def versions_page(request: HttpRequest, machine_name: str) -> HttpResponse:
    """Show ``/machines/<name>/versions/``; a POST runs one of ``_ACTIONS``."""
    return forms.answer_form_action(
        request,
        machine_name,
        _ACTIONS,
        _render_page,
        "versions",
        lambda _act, why: {"problem": why},
    )


def _render_page(
    request: HttpRequest, machine: StateMachine, *, status: int = 200, **more: Any
) -> HttpResponse:
    before = whole_number(request.GET.get("before", "")) or 0
    rows = store.list_versions(machine, before=before, limit=_PAGE + 1)
    newest = store.list_versions(machine, limit=1)
    before_revision = whole_number(request.GET.get("before_revision", "")[:9]) or 0
    saves = revisions.list_revisions(machine, before=before_revision, limit=_PAGE + 1)
    versions = store.list_versions(machine, limit=_CHOICES)
    typed = more.get("typed", {})
    aliases = [_alias_row(each, typed) for each in store.list_aliases(store.Target(machine))]
    context = machine_context(machine) | {
        "tab": "versions",
        "drift": drift_of(machine),
        "revisions": saves[:_PAGE],
        "older_revisions": saves[_PAGE - 1].number if len(saves) > _PAGE else None,
        "versions": rows[:_PAGE],
        "older": rows[_PAGE - 1].number if len(rows) > _PAGE else None,
        "aliases": aliases,
        "new_alias": _typed_alias(typed) if typed.get("act") == "create" else AliasFields(),
        "revision_of_version": revision_numbers(machine, rows[:_PAGE]),
        "versions_of_revision": versions_by_revision(machine, saves[:_PAGE]),
        "aliases_of_version": _aliases_by_version(aliases),
        "choices": [each.number for each in versions],
        "diff_choices": _diff_choices(versions, saves[:_PAGE]),
        "after": DiffSide("", "Current", "", ""),
        "revision": machines.revision_of(machine),
        "to_publish": _publication(machine, newest[0] if newest else None),
    }
    return render(request, "versions/page.html", context | more, status=status)


def _alias_row(alias: Alias, typed: dict[str, str]) -> AliasRow:
    """Return a row, whose form has the texts that were refused or the stored ones."""
    routes: list[tuple[int, int]] = json.loads(alias.routing)
    if typed.get("act") == "change" and typed.get("name") == alias.name:
        return AliasRow(alias, routes, _typed_alias(typed))
    second, share = map(str, routes[1]) if len(routes) > 1 else ("", "")
    return AliasRow(alias, routes, AliasFields(str(routes[0][0]), second, share, alias.description))


def _typed_alias(typed: dict[str, str]) -> AliasFields:
    first, second = typed.get("first", ""), typed.get("second", "")
    share, description = typed.get("share", ""), typed.get("description", "")
    return AliasFields(first, second, share, description, is_typed=True)


@dataclass(frozen=True, slots=True)
class Publication:
    """The result of *Publish version*, if it was just used.

    ``revision``: the current revision, None if it is not stored. ``since``: the number of the
    newest version, 0 without one. ``changes``: a summary of changes since then, "" for none.
    """

    revision: MachineRevision | None
    since: int
    changes: str


def _current_revision(machine: StateMachine) -> MachineRevision | None:
    """Return the current revision of a machine, None if it is not stored.

    A change of settings changes the revision id of the machine without storing a revision. The
    newest revision is then the current one, if its definition and role are the same.
    """
    saved = revisions.find_revision(machine, machine.revision_id)
    newest = None if saved else next(iter(revisions.list_revisions(machine, limit=1)), None)
    if newest is not None:
        is_current = (newest.definition_id, newest.role_arn) == (
            machine.definition_id,
            machine.role_arn,
        )
        saved = newest if is_current else None
    return saved


def _publication(machine: StateMachine, newest: Version | None) -> Publication:
    saved = _current_revision(machine)
    if newest is None or newest.revision_id == machine.revision_id:
        return Publication(saved, newest.number if newest else 0, "")
    parts = []
    if newest.definition_id != machine.definition_id:
        changed = state_changes(newest.definition.text, machine.definition.text)
        parts.append(changed.words if changed else "The definition changed")
    if newest.role_arn != machine.role_arn:
        parts.append("Role changed")
    words = "; ".join(parts) or "Only settings changed"
    return Publication(saved, newest.number, words)


def _aliases_by_version(aliases: Sequence[AliasRow]) -> dict[int, list[str]]:
    """Return version number -> names of the aliases that route to it."""
    names: dict[int, list[str]] = {}
    for row in aliases:
        for number, _weight in row.routes:
            names.setdefault(number, []).append(row.alias.name)
    return names


# -- what a form does ------------------------------------------------------------------------------


def _publish(scope: Scope, machine: StateMachine, sent: dict[str, Any]) -> str:
    text, numbers = sent["description"], machine.version_set.values_list("number", flat=True)
    published = set(numbers)
    version = store.publish_version(machine, description=text, actor=actor_of(scope))
    if version.number in published:
        return f"No changes since version {version.number}, so no version was published."
    return f"Version {version.number} was published."


def _delete_version(scope: Scope, machine: StateMachine, sent: dict[str, Any]) -> str:
    number = sent["number"]
    store.delete_version(scope.project, f"{machine.arn}:{number}", actor_of(scope))
    return f"Version {number} was deleted."


def _put_alias(scope: Scope, machine: StateMachine, sent: dict[str, Any]) -> str:
    name = sent["name"]
    routing, text = _routing(machine, sent), sent["description"]
    if sent["act"] == "change":
        arn = f"{machine.arn}:{name}"
        store.update_alias(
            *(scope.project, arn),
            routing=routing,
            description=text,
            seen_ms=whole_number(sent["seen"]),
            actor=actor_of(scope),
        )
        return f"{name} was changed."
    store.create_alias(scope.project, name, routing, description=text, actor=actor_of(scope))
    return f"{name} was created."


def _routing(machine: StateMachine, sent: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the routing configuration of a form, with one or two versions."""
    first, second, weight = sent["first"], sent["second"], sent["share"]
    if not second:
        return [{"stateMachineVersionArn": f"{machine.arn}:{first}", "weight": 100}]
    return [
        {"stateMachineVersionArn": f"{machine.arn}:{first}", "weight": 100 - weight},
        {"stateMachineVersionArn": f"{machine.arn}:{second}", "weight": weight},
    ]


def _delete_alias(scope: Scope, machine: StateMachine, sent: dict[str, Any]) -> str:
    name = sent["name"]
    store.delete_alias(scope.project, f"{machine.arn}:{name}", actor_of(scope))
    return f"{name} was deleted."


def _restore(scope: Scope, machine: StateMachine, sent: dict[str, Any]) -> str:
    row = revisions.get_revision(machine, sent["number"])
    now = (machine.definition_id, machine.role_arn)
    if now == (row.definition_id, row.role_arn):
        return f"The state machine is already as revision {row.number}."
    machines.update_machine(
        machine,
        definition=row.definition.text,
        role_arn=row.role_arn,
        revision=sent["revision"],
        note=f"Restored revision {row.number}",
        actor=actor_of(scope),
    )
    return f"Revision {row.number} was restored."


_ACTIONS: FormActions = {
    "restore": ("UpdateStateMachine", RestoreForm, _restore),
    "publish": ("PublishStateMachineVersion", PublishForm, _publish),
    "delete-version": ("DeleteStateMachineVersion", DeleteVersionForm, _delete_version),
    "create": ("CreateStateMachineAlias", AliasForm, _put_alias),
    "change": ("UpdateStateMachineAlias", AliasForm, _put_alias),
    "delete-alias": ("DeleteStateMachineAlias", DeleteAliasForm, _delete_alias),
}


# -- what changed ----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class DiffSide:
    """One of two definitions to compare. ``key``: its value in the query string.

    ``revision``: its number, 0 if it is not stored. ``by``, ``at_ms``, ``note``: author, time and
    note of the save. For a version (``published``) they are "", the time of its publication and
    its description.
    """

    key: str
    label: str
    text: str
    role_arn: str
    revision: int = 0
    by: str = ""
    at_ms: int | None = None
    note: str = ""
    published: bool = False


@require_safe
def definition_diff(request: HttpRequest, machine_name: str) -> HttpResponse:
    """Answer ``/machines/<name>/diff/?from=…&to=…``.

    A value is a version number, ``rev:NUMBER``, ``run:EXECUTION``, or "" for the current
    definition. Without both, the page shows the changes of the last save.
    """
    scope = scope_of(request)
    machine = scope.machine(machine_name)
    saves = revisions.list_revisions(machine, limit=_PAGE)
    start = request.GET.get("from", "")
    if "from" not in request.GET and "to" not in request.GET and len(saves) > 1:
        start = f"rev:{saves[1].number}"
    before = _diff_side(scope, machine, start)
    after = _diff_side(scope, machine, request.GET.get("to", ""))
    rows = diff_rows(before.text, after.text)
    context = machine_context(machine) | {
        "before": before,
        "after": after,
        "sides": [(side, _is_restorable(side, machine)) for side in (before, after)],
        "revision": machines.revision_of(machine),
        "rows": rows,
        "states": state_changes(before.text, after.text) if rows else None,
        "added": sum(row.sign == "+" for row in rows or ()),
        "removed": sum(row.sign == "-" for row in rows or ()),
        "diff_choices": _diff_choices(
            store.list_versions(machine, limit=_CHOICES),
            saves,
            (before, after),
        ),
    }
    return render(request, "versions/diff.html", context)


def _diff_choices(
    versions: Sequence[Version], saves: Sequence[MachineRevision], sides: Sequence[DiffSide] = ()
) -> dict[str, str]:
    """Return key -> label of the choices. ``sides``: the definitions on display."""
    return {
        **{side.key: side.label for side in sides if side.key.startswith("run:")},
        **{str(each.number): f"Version {each.number}" for each in versions},
        **{f"rev:{each.number}": f"Revision {each.number}" for each in saves},
        **{side.key: side.label for side in sides if side.key},
        "": "Current",
    }


def _diff_side(scope: Scope, machine: StateMachine, key: str) -> DiffSide:
    if key.isdecimal():
        rows = Version.objects.select_related("definition").filter(state_machine=machine)
        version = rows.filter(number=int(key[:9])).first()
        if version is None:
            raise Http404(f"“{machine.name}” has no version {key}.")
        return DiffSide(
            *(key, f"Version {key}", version.definition.text, version.role_arn),
            revision=revision_numbers(machine, [version]).get(version.number, 0),
            at_ms=version.created_ms,
            note=version.description,
            published=True,
        )
    if key.startswith("rev:"):
        number = whole_number(key.removeprefix("rev:")[:9]) or 0
        try:
            revision = revisions.get_revision(machine, number)
        except ServiceError as error:
            raise Http404(error.message) from None
        return _side_of_revision(key, f"Revision {number}", revision)
    if key.startswith("run:"):
        name = key.removeprefix("run:")
        run = scope.execution(machine.name, name)
        return DiffSide(key, f"Execution {name}", run.definition.text, run.role_arn)
    saved = _current_revision(machine)
    if saved is None:
        return DiffSide("", "Current", machine.definition.text, machine.role_arn)
    return replace(
        _side_of_revision("", "Current", saved),
        text=machine.definition.text,
        role_arn=machine.role_arn,
    )


def _side_of_revision(key: str, label: str, row: MachineRevision) -> DiffSide:
    return DiffSide(
        *(key, label, row.definition.text, row.role_arn, row.number),
        by=row.saved_by,
        at_ms=row.saved_ms,
        note=row.note,
    )


def _is_restorable(side: DiffSide, machine: StateMachine) -> bool:
    """Return whether a side is a revision that differs from the current machine."""
    now = (machine.definition.text, machine.role_arn)
    return side.revision > 0 and (side.text, side.role_arn) != now
