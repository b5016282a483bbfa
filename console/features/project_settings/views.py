"""Views on which owners set quotas, denied actions, retention and mocks of their project."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from django.conf import settings
from django.contrib import messages
from django.shortcuts import redirect
from django.views.decorators.http import require_http_methods

from console.config import quotas
from console.db import project_settings
from console.errors import ConflictException, ServiceError
from console.features.project_settings import checks
from console.features.project_settings.forms import (
    DeniedRoleForm,
    MocksForm,
    QuotaForm,
    RetentionForm,
    SettingForm,
)
from console.integrations import mocks, permissions
from console.store.executions import retention
from console.web.core.forms import SaveConflict
from console.web.core.scope import Scope, actor_of, render, require, scope_of

if TYPE_CHECKING:
    from django.http import HttpRequest, HttpResponse

    from console.db.project_settings import StoredSetting

_QUOTAS = {
    "state_machines": ("State machines", "in each region"),
    "activities": ("Activities", "in the project"),
    "activity_pollers": ("Pollers of an activity", "calls of GetActivityTask that wait"),
    "open_executions": ("Open executions", "that run at the same time, without children of Maps"),
    "nesting_depth": ("Nesting depth", "executions above one that a Task starts"),
    "waiting_calls": ("Waiting calls", "of one access key, in each process"),
    "start_link_waits": ("Waiting callers of a start link", "in each process"),
    "start_link": ("Requests of a start link", "in each process"),
    "start_execution": ("Starts", "a start above the rate is refused"),
    "state_transition": ("State transitions", "a transition above the rate waits"),
}
"""Quota -> its name and unit on the page, in display order."""
_CONFLICT, _REFUSED = 409, 422


@dataclass(frozen=True, slots=True)
class QuotaRow:
    """A quota on the page: its value, its source, and the initial form values."""

    quota: quotas.EffectiveQuota
    label: str
    unit: str
    value: str
    of_server: str
    ceiling: str
    sent: dict[str, Any]
    problem: str = ""

    @property
    def is_bucket_wrong(self) -> bool:
        """Whether the error may be in the first number of a rate."""
        return bool(self.problem) and ": refill: " not in self.problem

    @property
    def is_refill_wrong(self) -> bool:
        """Whether the error may be in the second number of a rate."""
        return bool(self.problem) and ": bucket: " not in self.problem

    @property
    def is_above(self) -> bool:
        """Whether the operator has since lowered the ceiling below the owners' value."""
        stored = self.quota.stored
        return stored is not None and not self.quota.is_fixed and self.value != _words(stored.value)


@dataclass(frozen=True, slots=True)
class DeniedRole:
    """A role and its denied actions. ``stored``: None if denied by the operator."""

    role: str
    actions: list[str]
    stored: StoredSetting | None


@require_http_methods(["GET", "POST"])
def quotas_page(request: HttpRequest) -> HttpResponse:
    """Show ``/settings/quotas/``; a POST changes a quota."""
    scope = scope_of(request)
    problem, status, sent = "", 200, dict[str, Any]()
    if request.method == "POST":
        form = QuotaForm(request.POST)
        sent = form.values
        name = sent["name"]
        try:
            if sent["remove"]:
                _remove_setting(scope, quotas.KIND, form)
            else:
                is_rate = isinstance(request.POST.get("bucket"), str)
                value = checks.checked_quota(scope.project.name, name, form.quota(is_rate=is_rate))
                _save_setting(scope, quotas.KIND, form, value, _words(value))
        except ServiceError as error:
            problem, status = error.message, _status(error)
        else:
            messages.success(request, f"{_QUOTAS[name][0]}: saved.")
            return redirect("quotas")
    rows = [_quota_row(quota) for quota in _effective_quotas(scope)]
    rows = [
        replace(row, sent=sent, problem=problem)
        if status == _REFUSED and row.quota.name == sent["name"]
        else row
        for row in rows
    ]
    is_shown = any(row.problem and not row.quota.is_fixed for row in rows)
    context = {"rows": rows, "problem": "" if is_shown else problem}
    return _render(request, scope, "project_settings/quotas.html", context, status)


@require_http_methods(["GET", "POST"])
def denied_actions_page(request: HttpRequest) -> HttpResponse:
    """Show ``/settings/denied-actions/``; a POST changes the actions of a role."""
    scope = scope_of(request)
    problem, status, sent = "", 200, dict[str, Any]()
    if request.method == "POST":
        form = DeniedRoleForm(request.POST)
        sent = form.values
        try:
            if sent["remove"]:
                _remove_setting(scope, permissions.KIND, form)
            else:
                lines = (line.strip() for line in sent["actions"].replace(",", "\n").splitlines())
                role = sent["name"].strip()
                actions = checks.checked_denial(role, [line for line in lines if line])
                _save_setting(scope, permissions.KIND, form, actions, ", ".join(actions))
        except ServiceError as error:
            problem, status = error.message, _status(error)
        else:
            words = "is denied nothing by this project now" if sent["remove"] else "saved"
            messages.success(request, f"{sent['name'].strip()}: {words}.")
            return redirect("denied-actions")
    rows = [
        *(
            DeniedRole(role, actions, None)
            for role, actions in sorted(permissions.denied_by_operator().items())
        ),
        *(
            DeniedRole(row.name, row.value, row)
            for row in project_settings.list_settings(scope.project, permissions.KIND)
        ),
    ]
    context = {"rows": rows, "sent": sent if problem else {}, **_problem_context(problem, status)}
    if status == _REFUSED:
        field = "role" if checks.role_problem(sent["name"]) else "actions"
        context["errors"] = {field: problem}
    return _render(request, scope, "project_settings/denied_actions.html", context, status)


@require_http_methods(["GET", "POST"])
def retention_page(request: HttpRequest) -> HttpResponse:
    """Show ``/settings/retention/``; a change that deletes executions must be confirmed."""
    scope = scope_of(request)
    problem, status, sent, older = "", 200, dict[str, Any](), 0
    if request.method == "POST":
        form = RetentionForm(request.POST)
        sent = form.values
        try:
            if sent["remove"]:
                _remove_setting(scope, retention.KIND, form)
                return _saved(request, "retention")
            days = checks.checked_days(form.number())
            older = retention.count_older(scope.project, days)
            if sent["confirmed"] == sent["days"] or not older:
                _save_setting(scope, retention.KIND, form, days, f"{days:g} days")
                return _saved(request, "retention")
            require(scope, project_settings.PUT)
            status = _REFUSED
        except ServiceError as error:
            problem, status = error.message, _status(error)
    stored = project_settings.find_setting(scope.project, retention.KIND)
    context = {
        "stored": stored,
        "days": retention.retention_days(scope.project.name),
        "of_server": settings.STATEYARD_RETENTION_DAYS,
        **_problem_context(problem, status, "days"),
        "sent": sent,
        "older": older,
    }
    return _render(request, scope, "project_settings/retention.html", context, status)


@require_http_methods(["GET", "POST"])
def mocks_page(request: HttpRequest) -> HttpResponse:
    """Show ``/settings/mocks/``; a POST replaces the mock configuration."""
    scope = scope_of(request)
    stored = project_settings.find_setting(scope.project, mocks.KIND)
    text, problem, status = _mocks_text(stored), "", 200
    conflict: SaveConflict | None = None
    revision = "" if stored is None else stored.revision
    if request.method == "POST":
        form = MocksForm(request.POST)
        sent = form.values
        text, revision = sent["text"], sent["revision"]
        try:
            if sent["remove"]:
                _remove_setting(scope, mocks.KIND, form)
            else:
                value = checks.read_mocks(text)
                words = f"{len(value.get('StateMachines', {}))} state machines"
                over = sent["over"] if "over" in request.POST else None
                _save_setting(scope, mocks.KIND, form, value, words, over)
            return _saved(request, "mocks")
        except ConflictException:
            stored = project_settings.find_setting(scope.project, mocks.KIND)
            conflict, status = _mocks_conflict(stored), _CONFLICT
        except ServiceError as error:
            problem, status = error.message, _status(error)
    of_file = settings.STATEYARD_MOCKS.get("StateMachines", {})
    own = {} if stored is None else stored.value.get("StateMachines", {})
    context = {
        "stored": stored,
        "text": text,
        "revision": revision,
        **_problem_context(problem, status, "text"),
        "conflict": conflict,
        "of_file": _test_cases(of_file),
        "own": _test_cases(own),
        "hidden": sorted(own.keys() & of_file.keys()),
    }
    return _render(request, scope, "project_settings/mocks.html", context, status)


def _render(
    request: HttpRequest, scope: Scope, template: str, context: dict[str, Any], status: int
) -> HttpResponse:
    common = {
        "section": "settings",
        "page": template.rpartition("/")[2].removesuffix(".html"),
        "may_change": scope.may(project_settings.PUT),
    }
    return render(request, template, {**common, **context}, status=status)


def _problem_context(problem: str, status: int, field: str = "") -> dict[str, Any]:
    """Return the context of an error: of the field if its value is invalid, else of the page."""
    if status == _REFUSED:
        return {"problem": "", "errors": {field: problem}}
    return {"problem": problem, "errors": {}}


def _saved(request: HttpRequest, page: str) -> HttpResponse:
    messages.success(request, "Saved. It counts from now on.")
    return redirect(page)


def _save_setting(
    scope: Scope, kind: str, form: SettingForm, value: Any, summary: str, over: str | None = None
) -> None:
    """Save a form. ``over``: the revision to overwrite despite a conflict."""
    require(scope, project_settings.PUT)
    sent = form.values
    project_settings.put_setting(
        scope.project,
        kind,
        sent["name"].strip(),
        value,
        actor_of(scope),
        revision=sent["revision"] if over is None else over,
        summary=summary,
    )


def _remove_setting(scope: Scope, kind: str, form: SettingForm) -> None:
    require(scope, project_settings.REMOVE)
    sent = form.values
    project_settings.remove_setting(
        scope.project, kind, sent["name"], actor_of(scope), revision=sent["revision"]
    )


def _status(error: ServiceError) -> int:
    return _CONFLICT if isinstance(error, ConflictException) else _REFUSED


def _effective_quotas(scope: Scope) -> list[quotas.EffectiveQuota]:
    """Return the quotas in display order."""
    order = list(_QUOTAS)
    return sorted(
        quotas.effective_quotas(scope.project.name), key=lambda quota: order.index(quota.name)
    )


def _quota_row(quota: quotas.EffectiveQuota) -> QuotaRow:
    label, unit = _QUOTAS[quota.name]
    value = None if quota.stored is None else quota.stored.value
    sent = dict(value) if isinstance(value, dict) else {"value": value}
    return QuotaRow(
        quota,
        label,
        unit,
        quotas.show_quota(quota.value),
        quotas.show_quota(quota.of_server),
        quotas.show_quota(quota.ceiling),
        {name: "" if number is None else f"{number:g}" for name, number in sent.items()},
    )


def _words(value: Any) -> str:
    return quotas.show_quota(quotas.Rate(**value) if isinstance(value, dict) else value)


def _mocks_text(stored: StoredSetting | None) -> str:
    return "" if stored is None else json.dumps(stored.value, indent=2, ensure_ascii=False)


def _mocks_conflict(stored: StoredSetting | None) -> SaveConflict:
    theirs = (("Their configuration", _mocks_text(stored)),)
    if stored is None:
        return SaveConflict("", "", None, theirs)
    return SaveConflict(stored.revision, stored.changed_by, stored.changed_ms, theirs)


def _test_cases(machines: dict[str, Any]) -> list[tuple[str, list[str]]]:
    """Return state machines and the names of their test cases, sorted."""
    return [(name, sorted(about.get("TestCases", {}))) for name, about in sorted(machines.items())]
