"""URL helpers of the pages: build URLs, find the previous page, redirect old URLs."""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import urlencode, urlsplit, urlunsplit

from django.http import HttpResponsePermanentRedirect
from django.urls import reverse
from django.utils.http import url_has_allowed_host_and_scheme

if TYPE_CHECKING:
    from collections.abc import Callable

    from django.http import HttpRequest, HttpResponse

    from console.models import Execution
    from console.web.core.scope import Scope

MACHINE = "machines/<str:machine_name>/"
"""The pages of one state machine."""
EXECUTION = f"{MACHINE}executions/<str:execution_name>/"
"""The pages of one execution."""


def page_address(scope: Scope, view: str, *names: str, **parameters: str) -> str:
    """Return the URL of a page in the same region; empty parameters are omitted."""
    query = {key: value for key, value in parameters.items() if value}
    if scope.elsewhere:
        query["region"] = scope.region
    return reverse(view, args=names) + (f"?{urlencode(query)}" if query else "")


def page_before(request: HttpRequest) -> str:
    """Return the URL of the previous page, "" if unknown or the current page."""
    referrer = request.headers.get("Referer", "")
    own = url_has_allowed_host_and_scheme(
        referrer, {request.get_host()}, require_https=request.is_secure()
    )
    parts = urlsplit(referrer)
    address = urlunsplit(("", "", parts.path, parts.query, ""))
    # a path of ours that begins with two slashes would be the address of another host
    local = url_has_allowed_host_and_scheme(address, None)
    again = request.method == "GET" and address == request.get_full_path()
    return address if own and local and not again else ""


def moved_to(name: str) -> Callable[..., HttpResponse]:
    """Return a view that redirects to the URL ``name``, with the same arguments and query.

    GET and HEAD are answered with 301; any other method with 308, which repeats method and body.
    An old address lasts for one release, and takes the same rights as the new one.
    """

    def redirect_old_address(request: HttpRequest, **parts: str) -> HttpResponse:
        query = request.META.get("QUERY_STRING", "")
        address = reverse(name, kwargs=parts) + (f"?{query}" if query else "")
        preserved = request.method not in ("GET", "HEAD")
        return HttpResponsePermanentRedirect(address, preserve_request=preserved)

    return redirect_old_address


def import_address(execution: Execution) -> str:
    """Return the machine's name for the address of an imported execution."""
    machine = execution.state_machine_arn.rpartition(":")[2].replace("/", "~")
    return f"{machine}~import-{execution.pk}"
