"""Views that change the masked paths of a project, and reveal an execution to one reader."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.contrib import messages
from django.shortcuts import redirect
from django.views.decorators.http import require_http_methods, require_POST

from console.db import clock
from console.errors import ConflictException, ServiceError, ValidationException
from console.masking import path_matches
from console.store.people import masks as store
from console.web.core import formatting, forms
from console.web.core.addresses import page_address
from console.web.core.forms import PageForm, TextField
from console.web.core.scope import REVEALED, actor_of, render, require, scope_of
from console.web.core.views import local_address

if TYPE_CHECKING:
    from django.http import HttpRequest, HttpResponse


@require_http_methods(["GET", "POST"])
def masking_page(request: HttpRequest) -> HttpResponse:
    """Show ``/settings/``: the masked paths; an editor can change them."""
    scope = scope_of(request)
    typed, problem, conflict, status = scope.project.masked, "", None, 200
    revision = store.revision_of(typed)
    if request.method == "POST":
        require(scope, "PutMaskedPaths")
        sent = PathsForm(request.POST).values
        over = sent["over"] or sent["revision"]
        try:
            if "paths" not in request.POST:
                raise ValidationException("The masked paths are missing. Send one path per line.")
            typed, revision = sent["paths"], sent["revision"]
            paths = store.put_paths(scope.project, typed.splitlines(), actor_of(scope), over)
        except ConflictException:
            conflict, status = forms.paths_conflict(scope.project), 409
        except ServiceError as refused:
            problem, status = refused.message, 422
        else:
            messages.success(request, _success_message(len(paths)))
            return redirect("project-settings")
    context = {
        "section": "settings",
        "role": scope.principal.role,
        "paths": typed,
        "problem": problem,
        "revision": revision,
        "conflict": conflict,
        "may_change": scope.may("PutMaskedPaths"),
        "matches": path_matches.path_matches(scope.project),
        "looked_at": path_matches.LOOKED_AT,
        "nothing": formatting.StatusLabel("caught", "Nothing found"),
        "change": store.last_change(scope.project),
    }
    return render(request, "masking/project_settings.html", context, status=status)


def _success_message(count: int) -> str:
    if not count:
        return "No values are masked now."
    return "1 path is masked." if count == 1 else f"{count} paths are masked."


@require_POST
def reveal_execution(request: HttpRequest, machine_name: str, execution_name: str) -> HttpResponse:
    """Reveal an execution's masked values to this reader for ten minutes; or mask them again."""
    scope = scope_of(request)
    require(scope, "RevealPayloads")
    execution = scope.execution(machine_name, execution_name)
    revealed = {
        number: until
        for number, until in _revealed_until(request).items()
        if until > clock.now_ms()
    }
    revealed.pop(str(execution.pk), None)
    sent = RevealForm(request.POST).values
    if sent["act"] != "hide":
        store.reveal_values(execution, sent["reason"], actor_of(scope))
        revealed[str(execution.pk)] = clock.now_ms() + store.FOR_MS
    request.session[REVEALED] = revealed
    own = page_address(scope, "execution", machine_name, execution.name)
    return redirect(local_address(request, sent["next"], own))


def _revealed_until(request: HttpRequest) -> dict[str, int]:
    return dict(request.session.get(REVEALED, {}))


class PathsForm(PageForm):
    """The masked paths, one per line.

    ``revision``: the revision of the displayed paths; ``over``: the later revision that the reader
    has agreed to overwrite, "" for none.
    """

    paths = TextField(strip=False)
    revision = TextField(strip=False)
    over = TextField(strip=False)


class RevealForm(PageForm):
    """The reason for revealing values; ``act``: ``hide`` to mask them again."""

    act = TextField(strip=False)
    reason = TextField()
    next = TextField(strip=False)
