"""Refuse unknown query parameters of file and API URLs with an error.

Otherwise a program with a misspelt parameter would get a wrong answer. Exempt are pages (their
lists name unread parameters), health probes (callers add cache busters) and start links (webhooks
add parameters).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.http import HttpResponse

from console.feature import chosen_features

if TYPE_CHECKING:
    from django.http import HttpRequest

EVENT_FILTERS = ("order", "region", "since", "state", "text", "type", "until")
_EVENTS = frozenset(EVENT_FILTERS)
_REGION = frozenset({"region"})
_NONE: frozenset[str] = frozenset()
PARAMETERS: dict[str, frozenset[str]] = {
    "audit-csv": frozenset({"act", "by", "from", "key", "region", "to", "what", "who"}),
    "download": _REGION,
    "event-payload": _REGION,
    "events-csv": _EVENTS,
    "events-json": _EVENTS,
    "execution-export": _REGION,
    "execution-svg": frozenset({"at", "region", "unfold"}),
    "machine-export": _REGION,
    "machine-mermaid": _REGION,
    "machine-svg": frozenset({"region", "unfold"}),
    "outline": _REGION,
    "payload": _REGION,
    "ran-text": _REGION,
    "reset": _NONE,
    "shared": _NONE,
    **{
        address: frozenset(names)
        for feature in chosen_features()
        for address, names in feature.parameters.items()
    },
}
"""Name of an address that programs read -> its query parameters."""


def refuse_unknown(request: HttpRequest, address: str) -> HttpResponse | None:
    """Return the error response for a request with an unknown parameter."""
    names = PARAMETERS.get(address)
    unknown = [] if names is None else [name for name in request.GET if name not in names]
    if not unknown:
        return None
    listed = ", ".join(sorted(names or ())) or "none"
    return HttpResponse(
        f"{unknown[0][:100]} is not a query parameter of this page. Accepted: {listed}\n",
        status=400,
        content_type="text/plain; charset=utf-8",
    )
