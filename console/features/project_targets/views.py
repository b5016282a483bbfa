"""Views on which owners set the targets and functions of their project."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from django.conf import settings
from django.contrib import messages
from django.http import Http404
from django.shortcuts import redirect
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from console.db import project_settings
from console.errors import ConflictException, ServiceError
from console.features.project_targets import fields, rows, store, trial
from console.features.project_targets.entries import TargetKind
from console.features.project_targets.forms import (
    ChosenTargetForm,
    ConnectionForm,
    FunctionForm,
    OwnTargetForm,
    ServiceForm,
)
from console.web.core.forms import SaveConflict
from console.web.core.scope import actor_of, render, scope_of

if TYPE_CHECKING:
    from django.http import HttpRequest, HttpResponse

    from console.db.project_settings import StoredSetting
    from console.web.core.scope import Scope

_FORMS: dict[TargetKind, type[OwnTargetForm]] = {
    TargetKind.SERVICE: ServiceForm,
    TargetKind.ADDRESS: OwnTargetForm,
    TargetKind.CONNECTION: ConnectionForm,
    TargetKind.FUNCTION: FunctionForm,
}
_WORDS = {
    TargetKind.SERVICE: "AWS service",
    TargetKind.ADDRESS: "address",
    TargetKind.CONNECTION: "connection",
    TargetKind.FUNCTION: "function",
}


@require_safe
def targets_page(request: HttpRequest) -> HttpResponse:
    """Show ``/settings/targets/``."""
    scope = scope_of(request)
    context = {
        "section": "own-targets",
        "may_change": scope.may("PutProjectSetting"),
        "cards": rows.list_cards(scope.project),
        "replaces_http": "http" in settings.STATEYARD_TARGETS,
    }
    return render(request, "project_targets/page.html", context)


@require_http_methods(["GET", "POST"])
def edit_target(request: HttpRequest, kind: str) -> HttpResponse:
    """Show ``/settings/targets/edit/KIND/``: add a target, or change the target ``?name=``."""
    scope = scope_of(request)
    chosen = _kind(kind)
    name = request.GET.get("name", "")
    stored = project_settings.find_setting(scope.project, chosen, name) if name else None
    if name and stored is None:
        raise Http404(f"There is no {_WORDS[chosen]} of this name.")
    if request.method == "POST":
        return _save(request, scope, chosen, stored)
    sent = fields.sent_of(chosen, stored.value) if stored else {"type": request.GET.get("type", "")}
    return _render_form(request, chosen, stored, sent)


def _save(
    request: HttpRequest, scope: Scope, kind: TargetKind, stored: StoredSetting | None
) -> HttpResponse:
    """Save a form; show it again, without secrets, if it is invalid."""
    sent = _FORMS[kind](request.POST).values
    if stored:
        sent["name"] = stored.name
    try:
        name = store.save_target(scope.project, kind, sent, actor_of(scope))
    except ConflictException as error:
        now = project_settings.find_setting(scope.project, kind, sent["name"])
        if now is None:
            sent["revision"] = ""
            return _render_form(request, kind, None, sent, 409, problem=error.message)
        theirs = (("Their entry", json.dumps(now.value, indent=2)),)
        conflict = SaveConflict(now.revision, now.changed_by, now.changed_ms, theirs)
        return _render_form(request, kind, stored, sent, 409, conflict=conflict)
    except store.TargetError as error:
        return _render_form(request, kind, stored, sent, 422, error)
    except ServiceError as refused:
        return _render_form(request, kind, stored, sent, 422, problem=refused.message)
    messages.success(request, f"The {_WORDS[kind]} {name} is saved. The next call uses it.")
    return redirect("own-targets")


@require_POST
def remove_target(request: HttpRequest) -> HttpResponse:
    """Remove a target or a function."""
    scope = scope_of(request)
    sent = ChosenTargetForm(request.POST).values
    kind = _kind(sent["kind"])
    try:
        project_settings.remove_setting(
            scope.project, kind, sent["name"], actor_of(scope), revision=sent["revision"]
        )
    except ServiceError as error:
        messages.error(request, error.message)
    else:
        messages.success(request, f"The {_WORDS[kind]} {sent['name']} is removed.")
    return redirect("own-targets")


@require_POST
def test_target(request: HttpRequest) -> HttpResponse:
    """Call a target once, and show the outcome."""
    scope = scope_of(request)
    sent = ChosenTargetForm(request.POST).values
    row = project_settings.find_setting(scope.project, _kind(sent["kind"]), sent["name"])
    if row is None:
        messages.error(request, "The target was removed meanwhile.")
        return redirect("own-targets")
    works, outcome = trial.try_target(row)
    (messages.success if works else messages.error)(request, f"{row.name}: {outcome}")
    return redirect("own-targets")


def _render_form(
    request: HttpRequest,
    kind: TargetKind,
    stored: StoredSetting | None,
    sent: dict[str, Any],
    status: int = 200,
    error: store.TargetError | None = None,
    **more: Any,
) -> HttpResponse:
    types = fields.types_of(kind)
    form_fields = fields.fields_of(kind, sent, error, is_new=stored is None)
    is_shown = error is None or any(field.problem for field in form_fields)
    context = {
        "section": "own-targets",
        "kind": kind.name.lower(),
        "word": _WORDS[kind],
        "stored": stored,
        "fields": form_fields,
        "can_save": sent.get("type") != fields.PYTHON or bool(settings.STATEYARD_FUNCTION_FOLDERS),
        "types": types,
        "type": sent.get("type") or (types[0].value if types else ""),
        "revision": sent.get("revision", stored.revision if stored else ""),
        "problem": "" if error is None or is_shown else error.message,
    }
    return render(request, "project_targets/form.html", {**context, **more}, status=status)


def _kind(text: str) -> TargetKind:
    """Return the kind in a URL; raise ``Http404``."""
    for kind in TargetKind:
        if text in (kind.name.lower(), str(kind)):
            return kind
    raise Http404("There is no such kind of target.")
