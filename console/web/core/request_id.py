"""Give every request an id for its log lines, audit entry and response."""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING

from django.core.exceptions import BadRequest
from structlog.contextvars import bind_contextvars, clear_contextvars

if TYPE_CHECKING:
    from collections.abc import Callable

    from django.http import HttpRequest
    from django.http.response import HttpResponseBase


def request_id_middleware(
    get_response: Callable[[HttpRequest], HttpResponseBase],
) -> Callable[[HttpRequest], HttpResponseBase]:
    """Add the request id (a middleware)."""

    def answer(request: HttpRequest) -> HttpResponseBase:
        number = str(uuid.uuid4())
        clear_contextvars()
        bind_contextvars(request_id=number)
        try:
            _refuse_nul(request)
            response = get_response(request)
        finally:
            clear_contextvars()
        response["X-Request-Id"] = number
        return response

    return answer


def _refuse_nul(request: HttpRequest) -> None:
    """Raise ``BadRequest`` for a NUL character: PostgreSQL cannot store it.

    Start links are exempt: their body is an input, whatever its media type.
    """
    values = [value for _, many in request.GET.lists() for value in many]
    if not request.path.startswith("/start/"):
        values += [text for name, many in request.POST.lists() for text in (name, *many)]
    if any("\0" in text for text in (request.path, *values, *request.COOKIES.values())):
        raise BadRequest("a NUL character")
