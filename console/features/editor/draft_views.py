"""Keep and forget the drafts of the editor: what is typed and not saved."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import redirect
from django.views.decorators.http import require_POST

from console.errors import ValidationException
from console.features.editor.forms import DraftForm
from console.store.machines import drafts
from console.web.core.addresses import page_address, page_before
from console.web.core.scope import Scope, require, scope_of

if TYPE_CHECKING:
    from django.http import HttpRequest


@require_POST
def keep_new_draft(request: HttpRequest) -> HttpResponse:
    """Keep the draft of a machine that is not created yet, or forget it."""
    scope = scope_of(request)
    require(scope, "CreateStateMachine")
    return _keep(request, scope, "")


@require_POST
def keep_draft(request: HttpRequest, machine_name: str) -> HttpResponse:
    """Keep the draft of a machine's definition, or forget it."""
    scope = scope_of(request)
    require(scope, "UpdateStateMachine")
    return _keep(request, scope, scope.machine(machine_name).arn)


def _keep(request: HttpRequest, scope: Scope, machine_arn: str) -> HttpResponse:
    sent = DraftForm(request.POST).values
    user = scope.principal.user
    if sent["discard"]:
        drafts.remove_draft(scope.project, user, machine_arn)
        if not sent["back"]:
            return HttpResponse(status=204)
        messages.success(request, "The draft was discarded.")
        name = machine_arn.rpartition(":")[2]
        view, names = ("definition", [name]) if name else ("machines", [])
        return redirect(page_before(request) or page_address(scope, view, *names))
    try:
        text, revision, page = sent["text"], sent["revision"], sent["page"]
        drafts.put_draft(scope.project, user, machine_arn, text, revision, page)
    except ValidationException as error:
        return HttpResponse(error.message, status=422, content_type="text/plain")
    return HttpResponse(status=204)
