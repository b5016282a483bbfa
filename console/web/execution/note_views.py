"""Change the note and the assignee of an execution."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.contrib import messages
from django.http import Http404
from django.shortcuts import redirect
from django.urls import reverse
from django.views.decorators.http import require_POST

from console.errors import ServiceError
from console.store.people import notes as store
from console.web.core.preference_views import local_address
from console.web.core.scope import actor_of, require, scope_of
from console.web.execution.forms import NoteForm

if TYPE_CHECKING:
    from django.http import HttpRequest, HttpResponse

# Pages of the release before send ``look`` and ``leave``.
_ASSIGNS = {"assign": True, "unassign": False, "look": True, "leave": False}


@require_POST
def change_note(request: HttpRequest, machine_name: str, execution_name: str) -> HttpResponse:
    """Save the note, or set or remove the reader as the assignee."""
    scope = scope_of(request)
    require(scope, "PutNote")
    execution = scope.execution(machine_name, execution_name)
    sent = NoteForm(request.POST).values
    act = sent["act"]
    if act not in ("note", *_ASSIGNS):
        raise Http404(f"This page has no action “{act}”.")
    try:
        if act == "note":
            store.put_note(execution, sent["note"], actor_of(scope))
        else:
            store.set_assignee(execution, actor_of(scope), on=_ASSIGNS[act])
    except ServiceError as refused:
        messages.error(request, refused.message)
    own = reverse("execution", args=[machine_name, execution.name])
    return redirect(local_address(request, sent["next"], own))
