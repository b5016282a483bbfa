"""Error pages: 400, 403, 404, 405, 500 and 503."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from django.contrib.auth.decorators import login_not_required
from django.core.exceptions import PermissionDenied
from django.http import HttpResponse
from django.template import loader

from console import access
from console.config import logging_setup
from console.db import refusals
from console.db.branch_names import is_branch
from console.db.writer import is_outage
from console.models import Membership, Role, StateMachine
from console.web.core.addresses import page_before
from console.web.core.formatting import action_words
from console.web.core.scope import ActionNotAllowed, actor_of, render, scope_of

if TYPE_CHECKING:
    from collections.abc import Iterable

    from django.http import HttpRequest


_OWNERS = 5


@login_not_required
def bad_request(request: HttpRequest, exception: Exception) -> HttpResponse:  # noqa: ARG001
    """400: the request is malformed."""
    return _plain_page("400", "Bad request", "")


@login_not_required
def forbidden(request: HttpRequest, exception: Exception) -> HttpResponse:
    """403: the reader's role lacks the right; attempted changes are in the audit trail."""
    if isinstance(exception, ActionNotAllowed) and request.method == "POST":
        scope = exception.scope
        refusals.record_refused(scope.project, actor_of(scope), exception.action, request.path)
    context = {"code": 403, "title": "Not allowed", "reason": str(exception)}
    if isinstance(exception, ActionNotAllowed):
        context |= _who_may(exception)
    context["back"] = page_before(request)
    return render(request, "core/error.html", context, status=403)


@login_not_required
def csrf_failure(request: HttpRequest, reason: str = "") -> HttpResponse:
    """403: the form was not sent from our pages, or its page was too old."""
    text = f"This form is no longer valid. Reload its page and try again. {reason}".strip()
    context = {"code": 403, "title": "The form was refused", "reason": text}
    context["back"] = page_before(request)
    return render(request, "core/error.html", context, status=403)


def method_not_allowed(request: HttpRequest, methods: Iterable[str]) -> HttpResponse:
    """405: a GET of a URL that only takes POST, such as a start."""
    allowed = sorted(methods)
    reason = f"It accepts only {' and '.join(allowed)} requests, not {request.method}."
    context = {"code": 405, "title": "This address is not a page", "reason": reason}
    context["back"] = page_before(request)
    response = render(request, "core/error.html", context, status=405)
    response["Allow"] = ", ".join(allowed)
    return response


@login_not_required
def not_found(request: HttpRequest, exception: Exception) -> HttpResponse:
    """404, with suggestions of the page that was meant."""
    reason = exception.args[0] if exception.args else ""
    context = {
        "code": 404,
        "title": "Page not found",
        "reason": reason if isinstance(reason, str) else "",
    }
    if request.user.is_authenticated and request.resolver_match is not None:
        context |= _meant_page(request, request.resolver_match.kwargs)
    return render(request, "core/error.html", context, status=404)


def _who_may(refused: ActionNotAllowed) -> dict[str, Any]:
    """Return the reader's role, the missing right, roles with the right, and the owners.

    For an archived project: a note that it is read-only.
    """
    scope, action = refused.scope, refused.action
    if scope.project.archived_ms is not None:
        return {"reason": f"{access.archive_words(scope.project)}."}
    owners = Membership.objects.filter(project=scope.project, role=Role.OWNER)
    names = owners.order_by("user__username").values_list("user__username", flat=True)
    return {
        "reason": "",
        "role": scope.principal.role,
        "needed": access.least_role(*(refused.any_of or (action,))),
        "action": action,
        "act": "A change on this page" if refused.any_of else action_words(action),
        "owners": ", ".join(names[:_OWNERS]),
        "reader_owns": scope.principal.role == Role.OWNER,
    }


def _meant_page(request: HttpRequest, names: dict[str, Any]) -> dict[str, Any]:
    """Return the suggested page for a wrong URL.

    ``meant``: the last name in the URL, to search for; ``machine_name``: its state machine, if the
    project has it; ``elsewhere``: the reader's other projects with a state machine of this name,
    because a URL does not name the project.
    """
    texts = [name for name in names.values() if isinstance(name, str)]
    machine = names.get("machine_name", "").partition("~")[0]
    try:
        scope = scope_of(request)
    except PermissionDenied:
        return {}
    rows = StateMachine.objects.filter(
        name=machine, region=scope.region, project__name__in=scope.principal.projects
    )
    projects = set(rows.values_list("project__name", flat=True)) if machine else set()
    branches = {name for name in projects if is_branch(name) and name != scope.project.name}
    return {
        "meant": texts[-1] if texts else "",
        "machine_name": machine if scope.project.name in projects else "",
        "elsewhere": sorted(projects - {scope.project.name} - branches),
    }


@login_not_required
def server_error(request: HttpRequest) -> HttpResponse:  # noqa: ARG001
    """500 for an internal error, 503 while the database is down. Uses nothing that may fail."""
    failure = sys.exception()
    if failure is not None and is_outage(failure):
        reason = "No accepted work is lost. Reload the page in a moment."
        return _plain_page("503", "The database is out of reach", reason)
    where = (
        "No accepted work is lost. Reload the page. If the error persists, tell the operator; "
        f"the server's log has the details under {logging_setup.request_id()}."
    )
    return _plain_page("500", "Something went wrong on the server", where)


def _plain_page(code: str, title: str, reason: str) -> HttpResponse:
    page = loader.render_to_string(
        "core/error_plain.html", {"code": code, "title": title, "reason": reason}
    )
    return HttpResponse(page, status=int(code), headers={"Cache-Control": "no-store"})
