"""Answer the versions and aliases of a state machine, and the difference of two definitions."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from django.http import Http404
from django.views.decorators.http import require_http_methods, require_safe

from console.errors import ServiceError
from console.models import Alias, MachineRevision, Version
from console.store.machines import machines, revisions
from console.store.machines import versions as store
from console.store.machines.published import revision_numbers, versions_by_revision
from console.web.core import form_actions
from console.web.core.numbers import whole_number
from console.web.core.scope import Scope, actor_of, render, scope_of
from console.web.machines.definition_diff import diff_rows, state_changes
from console.web.machines.drift import drift_of
from console.web.machines.forms import (
    AliasForm,
    DeleteAliasForm,
    DeleteVersionForm,
    PublishForm,
    RestoreForm,
)
from console.web.machines.machine_views import machine_context

if TYPE_CHECKING:
    from collections.abc import Sequence

    from django.http import HttpRequest, HttpResponse

    from console.models import StateMachine
    from console.web.core.form_actions import FormActions

_PAGE = 50
_CHOICES = 200


@dataclass(frozen=True, slots=True)
class AliasRow:
    """An alias as its table shows it. ``routes``: (version, percent)."""

    alias: Alias
    routes: list[tuple[int, int]]


@require_http_methods(["GET", "POST"])
def versions_page(request: HttpRequest, machine_name: str) -> HttpResponse:
    """Answer ``/machines/<name>/versions/``; a POST publishes, routes or deletes."""
    return form_actions.answer_form_action(
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
    aliases = [
        AliasRow(each, json.loads(each.routing))
        for each in store.list_aliases(store.Target(machine))
    ]
    context = machine_context(machine) | {
        "tab": "versions",
        "drift": drift_of(machine),
        "revisions": saves[:_PAGE],
        "older_revisions": saves[_PAGE - 1].number if len(saves) > _PAGE else None,
        "versions": rows[:_PAGE],
        "older": rows[_PAGE - 1].number if len(rows) > _PAGE else None,
        "aliases": aliases,
        "revision_of_version": revision_numbers(machine, rows[:_PAGE]),
        "versions_of_revision": versions_by_revision(machine, saves[:_PAGE]),
        "aliases_of_version": _aliases_by_version(aliases),
        "choices": [each.number for each in versions],
        "diff_choices": _diff_choices(versions, saves[:_PAGE]),
        "after": DiffSide("", "Current", "", ""),
        "revision": machines.revision_of(machine),
        "unpublished": not newest or newest[0].revision_id != machine.revision_id,
    }
    return render(request, "machines/versions.html", context | more, status=status)


def _aliases_by_version(aliases: Sequence[AliasRow]) -> dict[int, list[str]]:
    """Return version -> the aliases that point at it."""
    names: dict[int, list[str]] = {}
    for row in aliases:
        for number, _weight in row.routes:
            names.setdefault(number, []).append(row.alias.name)
    return names


# -- what a form does ------------------------------------------------------------------------------


def _publish(scope: Scope, machine: StateMachine, sent: dict[str, Any]) -> str:
    text = sent["description"]
    made = store.publish_version(machine, description=text, actor=actor_of(scope))
    return f"Version {made.number} was published."


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
            scope.project, arn, routing=routing, description=text, actor=actor_of(scope)
        )
        return f"{name} was changed."
    store.create_alias(scope.project, name, routing, description=text, actor=actor_of(scope))
    return f"{name} was created."


def _routing(machine: StateMachine, sent: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the routing of a form: one version, or two with the weight of each."""
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
    """One of two definitions to compare. ``key``: how the address names it."""

    key: str
    label: str
    text: str
    role_arn: str


@require_safe
def definition_diff(request: HttpRequest, machine_name: str) -> HttpResponse:
    """Answer ``/machines/<name>/diff/?from=…&to=…``.

    Both name a version, a revision (``rev:…``), an execution (``run:…``) or, by "", now. Without
    both, it is what the last save changed.
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
    return render(request, "machines/diff.html", context)


def _diff_choices(
    versions: Sequence[Version], saves: Sequence[MachineRevision], sides: Sequence[DiffSide] = ()
) -> dict[str, str]:
    """Return key -> label of what can be compared. ``sides``: the two that are, if any."""
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
        return DiffSide(key, f"Version {key}", version.definition.text, version.role_arn)
    if key.startswith("rev:"):
        number = whole_number(key.removeprefix("rev:")[:9]) or 0
        try:
            revision = revisions.get_revision(machine, number)
        except ServiceError as error:
            raise Http404(error.message) from None
        label = f"Revision {number}"
        return DiffSide(key, label, revision.definition.text, revision.role_arn)
    if key.startswith("run:"):
        name = key.removeprefix("run:")
        run = scope.execution(machine.name, name)
        return DiffSide(key, f"Execution {name}", run.definition.text, run.role_arn)
    return DiffSide("", "Current", machine.definition.text, machine.role_arn)
