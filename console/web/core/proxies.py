"""Detect whether a request came directly from this machine or through a proxy."""

from __future__ import annotations

import ipaddress
from typing import TYPE_CHECKING

from django.conf import settings

if TYPE_CHECKING:
    from django.http import HttpRequest

_FORWARDED = ("forwarded", "x-forwarded", "x-real-ip", "x-original-", "cf-connecting-ip", "via")
"""Prefixes of headers that proxies add."""


def forwarding_header(request: HttpRequest) -> str:
    """Return the name of the request's forwarding header; "" without a proxy."""
    names = (name for name in request.headers if name.lower().startswith(_FORWARDED))
    return next(names, "")


def is_direct(request: HttpRequest) -> bool:
    """Whether a request came from this machine without a visible proxy."""
    return not settings.STATEYARD_HTTPS and not forwarding_header(request) and _is_local(request)


def _is_local(request: HttpRequest) -> bool:
    try:
        return ipaddress.ip_address(request.META.get("REMOTE_ADDR", "")).is_loopback
    except ValueError:
        return False
