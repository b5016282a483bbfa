"""Answer the pages of errors: 400, 403, 404 and 500."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.contrib.auth.decorators import login_not_required
from django.http import HttpResponse
from django.template import loader

from console import logging_setup
from console.store.db import refusals
from console.web.core.scope import ActionNotAllowed, actor_of, render

if TYPE_CHECKING:
    from django.http import HttpRequest


@login_not_required
def bad_request(request: HttpRequest, exception: Exception) -> HttpResponse:  # noqa: ARG001
    """400: the request makes no sense."""
    return _plain_page("400", "This request cannot be understood", "")


@login_not_required
def forbidden(request: HttpRequest, exception: Exception) -> HttpResponse:
    """403: the reader's role does not allow it; who tried to change something is on record."""
    if isinstance(exception, ActionNotAllowed) and request.method == "POST":
        scope = exception.scope
        refusals.record_refused(scope.project, actor_of(scope), exception.action, request.path)
    context = {"code": 403, "title": "Not allowed", "reason": str(exception)}
    return render(request, "core/error.html", context, status=403)


@login_not_required
def csrf_failure(request: HttpRequest, reason: str = "") -> HttpResponse:
    """403: the form did not come from one of our pages, or the page was too old."""
    text = f"This form is no longer valid. Load its page again and repeat. {reason}".strip()
    context = {"code": 403, "title": "The form was refused", "reason": text}
    return render(request, "core/error.html", context, status=403)


@login_not_required
def not_found(request: HttpRequest, exception: Exception) -> HttpResponse:
    """404: with a way to look for what was meant."""
    reason = exception.args[0] if exception.args else ""
    context = {
        "code": 404,
        "title": "There is nothing here",
        "reason": reason if isinstance(reason, str) else "",
    }
    return render(request, "core/error.html", context, status=404)


@login_not_required
def server_error(request: HttpRequest) -> HttpResponse:  # noqa: ARG001
    """500: ours. Nothing that could fail again is used to say so."""
    where = f"The server's log has the details, under {logging_setup.request_id()}."
    return _plain_page("500", "Something went wrong on the server", where)


def _plain_page(code: str, title: str, reason: str) -> HttpResponse:
    page = loader.render_to_string(
        "core/error_plain.html", {"code": code, "title": title, "reason": reason}
    )
    return HttpResponse(page, status=int(code), headers={"Cache-Control": "no-store"})
