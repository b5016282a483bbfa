"""How do people hand an execution over: with a note, and by saying that they look into it?"""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.contrib import messages
from django.http import Http404
from django.shortcuts import redirect
from django.urls import reverse
from django.views.decorators.http import require_POST

from console.errors import ServiceError
from console.store.people import notes as store
from console.web.core.preference_views import local
from console.web.core.scope import actor, require, scope_of

if TYPE_CHECKING:
    from django.http import HttpRequest, HttpResponse


@require_POST
def change(request: HttpRequest, machine: str, execution: str) -> HttpResponse:
    """Write the note, or say that one looks into the execution or no longer does."""
    here = scope_of(request)
    require(here, "PutNote")
    one = here.execution(machine, execution)
    act = request.POST.get("act", "")
    if act not in ("note", "look", "leave"):
        raise Http404(f"This page has no action “{act}”.")
    try:
        if act == "note":
            store.put_note(one, request.POST.get("note", ""), actor(here))
        else:
            store.set_assignee(one, actor(here), on=act == "look")
    except ServiceError as refused:
        messages.error(request, refused.message)
    own = reverse("execution", args=[machine, one.name])
    return redirect(local(request, request.POST.get("next", ""), own))
