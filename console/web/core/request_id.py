"""Give every request an id, which stands in its log lines, its audit entry and its answer."""

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
    """Give every request its id (a middleware)."""

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
    """Raise ``BadRequest`` for a NUL in address, query, cookie or form: PostgreSQL keeps none.

    Not of a start link, whose body is its input, whatever it says of itself.
    """
    values = [value for _, many in request.GET.lists() for value in many]
    if not request.path.startswith("/start/"):
        values += [text for name, many in request.POST.lists() for text in (name, *many)]
    if any("\0" in text for text in (request.path, *values, *request.COOKIES.values())):
        raise BadRequest("a NUL character")
