"""Which request is this?  An id of its own, in its log lines, its audit row and its answer."""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING

from structlog.contextvars import bind_contextvars, clear_contextvars

if TYPE_CHECKING:
    from collections.abc import Callable

    from django.http import HttpRequest
    from django.http.response import HttpResponseBase


def named(
    get_response: Callable[[HttpRequest], HttpResponseBase],
) -> Callable[[HttpRequest], HttpResponseBase]:
    """Give every request its id (a middleware)."""

    def answer(request: HttpRequest) -> HttpResponseBase:
        number = str(uuid.uuid4())
        clear_contextvars()
        bind_contextvars(request_id=number)
        try:
            response = get_response(request)
        finally:
            clear_contextvars()
        response["X-Request-Id"] = number
        return response

    return answer
