"""Refuse unknown query parameters of file and API URLs, and repeated ones of API URLs.

Otherwise a program with a misspelt parameter would get a wrong answer. Not checked are pages, which
name ignored parameters in a notice; health probes, to which callers add cache busters; and start
links, to which webhooks add parameters.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.http import HttpResponse

from console.feature import chosen_features

if TYPE_CHECKING:
    from django.http import HttpRequest

EVENT_FILTERS = ("order", "region", "since", "state", "text", "type", "until")
_REGION = frozenset({"region"})
_NONE: frozenset[str] = frozenset()
PARAMETERS: dict[str, frozenset[str]] = {
    "download": _REGION,
    "event-payload": _REGION,
    "payload": _REGION,
    "ran-text": _REGION,
    "reset": _NONE,
    **{
        address: frozenset(names)
        for feature in chosen_features()
        for address, names in feature.parameters.items()
    },
}
"""Name of a URL for programs -> its query parameters. A URL of an API without an entry has none."""


def refuse_parameters(request: HttpRequest, address: str) -> HttpResponse | None:
    """Return the error response for a request with an unknown or repeated parameter."""
    of_api = address.startswith("api-")
    names = PARAMETERS.get(address, _NONE if of_api else None)
    if names is None:
        return None
    for name, values in request.GET.lists():
        if name not in names:
            listed = ", ".join(sorted(names)) or "none"
            return _error(f"{name[:100]} is not a query parameter of this page. Accepted: {listed}")
        if len(values) > 1 and of_api:
            return _error(f"{name} is given {len(values)} times in this URL. Accepted: once")
    return None


def _error(sentence: str) -> HttpResponse:
    return HttpResponse(f"{sentence}\n", status=400, content_type="text/plain; charset=utf-8")
