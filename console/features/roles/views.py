"""View of the role rehearsal (``evaluation``), on which owners enter policies."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

from django.contrib import messages
from django.shortcuts import redirect
from django.urls import reverse
from django.views.decorators.http import require_http_methods

from console.arns import partition_of
from console.db import project_settings
from console.errors import ErrorCode, ServiceError
from console.features.roles import role_rehearsal
from console.features.roles.evaluation import (
    Decision,
    PolicyError,
    RoleAccount,
    RoleOptions,
    RoleVerdict,
    examine,
    least_policy,
    needs_of,
    resource_words,
)
from console.web.core.formatting import StatusLabel
from console.web.core.forms import PageForm, PresenceField, TextField
from console.web.core.scope import actor_of, render, require, scope_of
from console.web.machines.views import machine_context

if TYPE_CHECKING:
    from django.http import HttpRequest, HttpResponse

    from console.features.roles.evaluation import RoleReport
    from console.features.roles.role_rehearsal import RoleRehearsal
    from console.models import StateMachine
    from console.web.core.scope import Scope

MOST_LINES = 500
_CONFLICT, _REFUSED = 409, 422
_LABELS = {
    RoleVerdict.MISSING: StatusLabel("failed", "Missing"),
    RoleVerdict.DENIED: StatusLabel("failed", "Denied"),
    RoleVerdict.UNKNOWN: StatusLabel("caught", "Unknown"),
    RoleVerdict.ALLOWED: StatusLabel("succeeded", "Allowed"),
}
"""Verdict -> its label, in display order."""


class RolePoliciesForm(PageForm):
    """The policies as JSON text, whether they are enforced, and the revision of the row."""

    policies = TextField(lines=True)
    enforced = PresenceField()
    revision = TextField()
    remove = PresenceField()


@dataclass(frozen=True, slots=True)
class PermissionRow:
    """One row of the table of permissions."""

    decision: Decision
    status: StatusLabel
    resource: str
    details: str


@require_http_methods(["GET", "POST"])
def role_page(request: HttpRequest, machine_name: str) -> HttpResponse:
    """Show ``/machines/<name>/role/``: permissions, unused actions, and the least policy."""
    scope = scope_of(request)
    machine = scope.machine(machine_name)
    if request.method == "GET":
        return _render_page(request, scope, machine, {})
    sent = RolePoliciesForm(request.POST).values
    require(scope, "RemoveProjectSetting" if sent["remove"] else "PutProjectSetting")
    try:
        _save(scope, machine, sent)
    except PolicyError as error:
        fields = {"sent": sent, "problem": str(error)}
        return _render_page(request, scope, machine, fields, _REFUSED)
    except ServiceError as refused:
        is_conflict = refused.code == ErrorCode.ConflictException
        status = _CONFLICT if is_conflict else _REFUSED
        return _render_page(
            request, scope, machine, {"sent": sent, "problem": refused.message}, status
        )
    messages.success(
        request, f"Role of {machine.name}: {'removed' if sent['remove'] else 'saved'}."
    )
    region = f"?{urlencode({'region': scope.region})}" if scope.elsewhere else ""
    return redirect(reverse("role", args=[machine.name]) + region)


def _save(scope: Scope, machine: StateMachine, sent: dict[str, Any]) -> None:
    """Save or remove the policies; raise PolicyError and ServiceError."""
    place = (scope.project, role_rehearsal.KIND, machine.name)
    if sent["remove"]:
        project_settings.remove_setting(*place, actor_of(scope), revision=sent["revision"])
        return
    policies = role_rehearsal.parse_policies(sent["policies"])
    rehearsal = role_rehearsal.RoleRehearsal(policies, enforced=sent["enforced"])
    words = f"{len(policies)} policies, {'enforced' if rehearsal.enforced else 'not enforced'}"
    project_settings.put_setting(
        *place, rehearsal.value, actor_of(scope), revision=sent["revision"], summary=words
    )


def _render_page(
    request: HttpRequest,
    scope: Scope,
    machine: StateMachine,
    fields: dict[str, Any],
    status: int = 200,
) -> HttpResponse:
    stored = project_settings.find_setting(scope.project, role_rehearsal.KIND, machine.name)
    rehearsal = None if stored is None else role_rehearsal.read_rehearsal(stored.value)
    context = machine_context(machine) | {"tab": "role", "stored": stored, "rehearsal": rehearsal}
    context["may_change"] = scope.may(project_settings.PUT)
    if rehearsal is not None:
        documents = list(rehearsal.policies)
        shown = documents[0] if len(documents) == 1 else documents
        context["text"] = json.dumps(shown, indent=2)
    context |= _report_context(machine, rehearsal) | fields
    return render(request, "roles/page.html", context, status=status)


def _report_context(machine: StateMachine, rehearsal: RoleRehearsal | None) -> dict[str, Any]:
    _, _, _, region, account, *_ = machine.arn.split(":")
    home = RoleAccount(account, region, partition_of(region))
    try:
        needs = needs_of(machine.definition.text, machine.name, home, _options_of(machine))
    except ValueError:  # stored by a version that checked less
        return {}
    role = None if rehearsal is None else rehearsal.role(machine.role_arn.rpartition("/")[2])
    report = examine(needs, role, machine.name)
    rows = _rows_of(report)
    return {
        "report": report,
        "counts": [(label.word, len(report.of_verdict(each))) for each, label in _LABELS.items()],
        "rows": rows[:MOST_LINES],
        "more_rows": max(len(rows) - MOST_LINES, 0),
        "least": json.dumps(least_policy(needs), indent=2),
    }


def _options_of(machine: StateMachine) -> RoleOptions:
    """Return the options of a state machine that need permissions."""
    logging, tracing, encryption = (
        json.loads(text or "{}") for text in (machine.logging, machine.tracing, machine.encryption)
    )
    return RoleOptions(
        logging.get("level", "OFF") != "OFF",
        tracing.get("enabled") is True,
        encryption.get("kmsKeyId") or "",
    )


def _rows_of(report: RoleReport) -> list[PermissionRow]:
    """Return a line for each permission, missing permissions first."""
    return [
        PermissionRow(
            decision,
            label,
            resource_words(decision.need.resource),
            "; ".join(decision.reasons) or decision.place,
        )
        for verdict, label in _LABELS.items()
        for decision in report.of_verdict(verdict)
    ]
