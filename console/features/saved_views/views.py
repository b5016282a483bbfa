"""Views that save, delete and count saved views."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

from django.contrib import messages
from django.http import Http404, HttpResponse, QueryDict
from django.shortcuts import redirect
from django.urls import reverse
from django.views.decorators.http import require_POST, require_safe

from console.errors import ServiceError, ValidationException
from console.features.saved_views import listed, store
from console.models import SavedView
from console.web.core.forms import PageForm, PresenceField, TextField
from console.web.core.scope import Scope, actor_of, require, scope_of
from console.web.search.filters import ExecutionFilters

if TYPE_CHECKING:
    from django.http import HttpRequest


class SavedViewForm(PageForm):
    """A view to save or to delete.

    ``act``: ``save`` or ``delete``. ``name``: the name of the view. ``query``: its filters as a
    query string. ``view``: the view shown now, to return to after an error. ``machine``: the state
    machine if the form is on its page, else "". ``default``: that page opens with this view (shown
    as "Default view of this page").
    """

    act = TextField(strip=False)
    name = TextField(strip=False)
    machine = TextField(strip=False)
    view = TextField(strip=False)
    query = TextField(strip=False)
    default = PresenceField()


_RIGHTS = {"save": "PutView", "delete": "DeleteView"}


@require_POST
def change_saved_view(request: HttpRequest) -> HttpResponse:
    """Save or delete a saved view, and redirect to its list."""
    scope = scope_of(request)
    sent = SavedViewForm(request.POST).values
    act, name, machine = sent["act"], sent["name"], sent["machine"]
    if act not in _RIGHTS:
        raise Http404(f"This page has no action “{act}”.")
    require(scope, _RIGHTS[act])
    back = reverse("machine", args=[machine]) if machine else reverse("executions")
    try:
        shown = _save_view(request, scope, sent) if act == "save" else ""
        if act == "delete":
            store.delete_view(scope.project, name, actor_of(scope))
            messages.success(request, f"The view “{name}” is deleted for everybody.")
    except ServiceError as refused:
        messages.error(request, refused.message)
        shown = sent["view"]
    region = {"region": scope.region} if scope.elsewhere else {}
    return redirect(f"{back}?{urlencode({'view': shown, **region})}")


def _save_view(request: HttpRequest, scope: Scope, sent: dict[str, Any]) -> str:
    """Save the view of a form; return its name."""
    filters = ExecutionFilters.of(QueryDict(sent["query"]))
    if filters.problems:
        raise ValidationException("A filter with errors cannot be saved.")
    machine = sent["machine"]
    default = machine if sent["default"] else ""
    # machine name: set as default; "": clear the default; None: leave it
    view = store.put_view(
        scope.project,
        sent["name"],
        filters.address,
        default if machine else None,
        actor_of(scope),
    )
    messages.success(request, f"Everybody in this project now has the view “{view.name}”.")
    return view.name


@require_safe
def saved_view_count(request: HttpRequest, number: int) -> HttpResponse:
    """Return how many executions a saved view contains.

    The page's script asks later, because counting needs a slow search.
    """
    scope = scope_of(request)
    view = SavedView.objects.filter(project=scope.project, pk=number).first()
    if view is None:
        raise Http404("There is no such view.")
    return HttpResponse(
        listed.count_view(scope, view),
        content_type="text/plain; charset=utf-8",
        headers={"Cache-Control": "no-store"},
    )
