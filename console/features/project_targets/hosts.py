"""Check the host names in an owner's targets when they are saved.

``outbound`` checks the resolved addresses at each call. It allows loopback if written as such,
because the operator wrote it. An owner's loopback needs the operator's permission, unless only
users of this machine can reach the server.
"""

from __future__ import annotations

import ipaddress
from urllib.parse import urlsplit

from django.conf import settings
from django.http.request import validate_host

SETTING = "STATEYARD_TARGET_HOSTS"


def refusal_of_address(url: str) -> str:
    """Return why an owner may not use a target's URL, "" if allowed."""
    parts = urlsplit(url)
    if "@" in parts.netloc:
        return "An address of a target has no user and no password: enter them as credentials."
    return refusal_of_host(parts.hostname or "")


def refusal_of_host(host: str) -> str:
    """Return why an owner may not use a host, "" if allowed."""
    allowed = settings.STATEYARD_TARGET_HOSTS
    name = host.rstrip(".").lower()
    if _is_loopback(name):
        if name in allowed or _serves_this_machine_only():
            return ""
        return (
            f"{host} is the machine of the server itself: a target there has to be allowed by the"
            f" operator, in {SETTING}."
        )
    if validate_host(name, allowed):
        return ""
    return (
        f"{host} is not allowed as a target: the operator allows {', '.join(allowed)} ({SETTING})."
    )


def _serves_this_machine_only() -> bool:
    return not settings.STATEYARD_HOSTS and not settings.STATEYARD_HTTPS


def _is_loopback(host: str) -> bool:
    """Whether a host is written as a loopback address; ``outbound`` refuses disguised ones."""
    if host == "localhost" or host.endswith(".localhost"):
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
