"""Lead from addresses of the release before to those of now, so that bookmarks and scripts go on.

Each entry lasts for one release. The old address takes the same rights as the new one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.http import HttpResponsePermanentRedirect
from django.urls import reverse

if TYPE_CHECKING:
    from collections.abc import Callable

    from django.http import HttpRequest, HttpResponse


def moved_to(name: str) -> Callable[..., HttpResponse]:
    """Return a view that leads to the address called ``name`` with the same parts and query.

    GET and HEAD are answered with 301; any other method with 308, which repeats method and body.
    """

    def redirect_old_address(request: HttpRequest, **parts: str) -> HttpResponse:
        query = request.META.get("QUERY_STRING", "")
        address = reverse(name, kwargs=parts) + (f"?{query}" if query else "")
        preserved = request.method not in ("GET", "HEAD")
        return HttpResponsePermanentRedirect(address, preserve_request=preserved)

    return redirect_old_address
