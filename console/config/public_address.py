"""Find the public URL of this server, which people open, as opposed to its internal one."""

from __future__ import annotations

from urllib.parse import urlsplit

from django.conf import settings


def public_names() -> list[str]:
    """Return the hosts of STATEYARD_HOSTS that people may use, names with a dot first.

    Two kinds of names are skipped: the host in STATEYARD_URL, which may be an address inside a
    private network, and patterns such as ``*.example.com``. A name without a dot, such as ``web``,
    exists in a private network only.
    """
    inside = urlsplit(settings.STATEYARD_URL or "").hostname
    names = [
        name
        for name in settings.STATEYARD_HOSTS
        if name != inside and not name.startswith((".", "*"))
    ]
    return sorted(names, key=lambda name: "." not in name)


def page_address() -> str:
    """Return the address for links in messages to people; "" if the server does not know its own.

    With STATEYARD_HTTPS people come through a proxy by HTTPS, so that an address with ``http`` in
    STATEYARD_URL is for workers alone.
    """
    address: str = settings.STATEYARD_URL or ""
    names = public_names()
    if settings.STATEYARD_HTTPS and names and not address.startswith("https:"):
        return f"https://{names[0]}"
    return address
