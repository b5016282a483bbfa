"""How does a page of a state machine take one of several acts?  By name, with the right for it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.contrib import messages
from django.http import Http404
from django.shortcuts import redirect

from console.errors import ServiceError
from console.web.core.scope import require, scope_of

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from django.http import HttpRequest, HttpResponse, QueryDict

    from console.models import StateMachine
    from console.web.core.scope import Scope

    Acts = Mapping[str, tuple[str, Callable[[Scope, StateMachine, QueryDict], str]]]


def answer_form_action(
    request: HttpRequest,
    machine_name: str,
    acts: Acts,
    page: Callable[..., HttpResponse],
    address: str,
    refused: Callable[[str, str], dict[str, Any]],
) -> HttpResponse:
    """Show ``page``; a POST does the act it names and leads back to ``address``.

    ``acts``: name -> (the action it takes the right for, what does it and says so). ``refused``:
    of an act and a message, what the page shows beside what was typed, with 422.
    """
    scope = scope_of(request)
    machine = scope.machine(machine_name)
    if request.method == "GET":
        return page(request, machine)
    act = request.POST.get("act", "")
    if act not in acts:
        raise Http404(f"Nothing is called “{act}” here.")
    action, do = acts[act]
    require(scope, action)
    try:
        messages.success(request, do(scope, machine, request.POST))
    except ServiceError as error:
        typed = {name: request.POST.get(name, "") for name in request.POST}
        return page(request, machine, status=422, typed=typed, **refused(act, error.message))
    return redirect(address, machine.name)
