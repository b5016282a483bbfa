"""The address at which people and clients reach this server."""

from __future__ import annotations

import contextlib
from urllib.parse import urlsplit

from django.conf import settings

from console.config.data_folder import write_private

_EVERY_INTERFACE = {"0.0.0.0": "127.0.0.1", "::": "::1"}  # noqa: S104
_DEFAULT = "http://127.0.0.1:8083"


def local_address(host: str, port: int) -> str:
    """Return the address of a listening socket that a browser on this machine can open."""
    name = _EVERY_INTERFACE.get(host, host)
    return f"http://[{name}]:{port}" if ":" in name else f"http://{name}:{port}"


def public_address(host: str, port: int) -> str:
    """Return the address behind the proxy: HTTPS on the first public name of STATEYARD_HOSTS.

    The name in STATEYARD_URL is the one that workers use, and patterns of names are no address. A
    name with a dot comes first, because others are of a private network.
    Without HTTPS or such a name, return the address of the listening socket.
    """
    inside = urlsplit(settings.STATEYARD_URL or "").hostname
    names = [
        name
        for name in settings.STATEYARD_HOSTS
        if name != inside and not name.startswith((".", "*"))
    ]
    if settings.STATEYARD_HTTPS and names:
        return f"https://{max(names, key=lambda name: '.' in name)}"
    return local_address(host, port)


def store_address(address: str) -> None:
    """Write the address into the data folder, where other commands read it.

    A server starts without that, too: the disk may be full.
    """
    with contextlib.suppress(OSError):
        write_private(settings.DATA_DIR / "address", address + "\n")


def stored_address() -> str:
    """Return the address that the server printed at its last start, or the default one."""
    path = settings.DATA_DIR / "address"
    return path.read_text(encoding="utf-8").strip() if path.exists() else _DEFAULT
