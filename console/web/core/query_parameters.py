"""Refuse query parameters that the addresses of files and of programs do not read.

A program that misspells a parameter would get the answer of another question. Pages are not held to
this: their lists say what they read. Nor are probes, whose callers add a time against caches, and
start links, whose callers, such as webhooks, add parameters of their own.
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
    """Return the refusal of a request with a parameter that its address does not read."""
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
