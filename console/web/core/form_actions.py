"""Run the named action of a form on a state machine's page, after a check of rights."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.contrib import messages
from django.http import Http404
from django.shortcuts import redirect

from console.errors import ServiceError, ValidationException
from console.web.core.forms import PageForm, TextField
from console.web.core.scope import require, scope_of

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from django.http import HttpRequest, HttpResponse

    from console.models import StateMachine
    from console.web.core.scope import Scope

    FormActions = Mapping[
        str,
        tuple[str, type[PageForm], Callable[[Scope, StateMachine, dict[str, Any]], str]],
    ]


class ActForm(PageForm):
    """The name of the action that a form asks for."""

    act = TextField(strip=False)


def answer_form_action(
    request: HttpRequest,
    machine_name: str,
    actions: FormActions,
    page: Callable[..., HttpResponse],
    address: str,
    refused: Callable[[str, str], dict[str, Any]],
) -> HttpResponse:
    """Show ``page``; a POST runs the named action and redirects to ``address``.

    ``actions``: value of ``act`` -> (required API action, form, function that runs the action and
    returns a message). ``refused``: called with ``act`` and an error message; returns the context
    that shows the error with the typed values, with status 422.
    """
    scope = scope_of(request)
    machine = scope.machine(machine_name)
    if request.method == "GET":
        return page(request, machine)
    act: str = ActForm(request.POST).values["act"]
    if act not in actions:
        raise Http404(f"This page has no action “{act}”.")
    action, form_class, run = actions[act]
    require(scope, action)
    form = form_class(request.POST)
    try:
        if not form.is_valid():
            raise ValidationException(form.first_error[1])
        messages.success(request, run(scope, machine, form.values))
    except ServiceError as error:
        typed = dict(form.data.items())
        return page(request, machine, status=422, typed=typed, **refused(act, error.message))
    return redirect(address, machine.name)
