"""Run each page request on one thread, from the first middleware to the view."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

from asgiref.sync import sync_to_async
from django.core.handlers.asgi import ASGIHandler

if TYPE_CHECKING:
    from django.http import HttpRequest
    from django.http.response import HttpResponseBase

_LOG = logging.getLogger(__name__)


class PageHandler(ASGIHandler):
    """Django's ASGI handler, with middleware and views loaded as for WSGI.

    Django's handler runs all middleware that can be asynchronous in the event loop, and each of
    its methods, which are synchronous, on a thread: a request went from the loop to a thread and
    back ten times. No view here is asynchronous, so one such way is enough.
    """

    def load_middleware(self, is_async: bool = False) -> None:
        """Load the synchronous middleware."""
        del is_async
        super().load_middleware(is_async=False)

    async def get_response_async(self, request: HttpRequest) -> HttpResponseBase:
        """Return the response, made on the thread of this request."""
        return await sync_to_async(self.get_response, thread_sensitive=True)(request)

    async def send_response(self, response: HttpResponseBase, send: Any) -> None:
        """Send a response; end its request even if sending fails.

        Django would skip the end, which returns the connection to the database: forty responses
        that could not be sent used up all connections of a process. If the end fails, too, that is
        logged, and the first error is raised.
        """
        try:
            await super().send_response(response, send)
        except BaseException:
            try:
                await sync_to_async(response.close, thread_sensitive=True)()
            except Exception:  # noqa: BLE001 - the first error is raised
                _LOG.exception("A response that could not be sent could not be closed")
            raise
