"""Decide which hosts an owner may name: a name is refused here, an address when it is called.

``outbound`` judges at each call where a name leads. It allows loopback where it is written as such,
since the operator wrote it. An owner is not the operator, so loopback takes the operator's word,
unless nobody but the users of this machine can reach the server.
"""

from __future__ import annotations

import ipaddress
from urllib.parse import urlsplit

from django.conf import settings
from django.http.request import validate_host

SETTING = "STATEYARD_TARGET_HOSTS"


def refusal_of_address(url: str) -> str:
    """Return why an owner may not name the address of a target, "" if they may."""
    parts = urlsplit(url)
    if "@" in parts.netloc:
        return "An address of a target has no user and no password: enter them as credentials."
    return refusal_of_host(parts.hostname or "")


def refusal_of_host(host: str) -> str:
    """Return why an owner may not name a host, "" if they may."""
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
    """Tell whether a host is written as the loopback address; ``outbound`` refuses disguises."""
    if host == "localhost" or host.endswith(".localhost"):
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
