"""The server's URL: find, store and read the address that people and clients use."""

from __future__ import annotations

import contextlib

from django.conf import settings

from console.config.data_folder import write_private
from console.config.public_address import public_names

_EVERY_INTERFACE = {"0.0.0.0": "127.0.0.1", "::": "::1"}  # noqa: S104
_DEFAULT = "http://127.0.0.1:8083"


def local_address(host: str, port: int) -> str:
    """Return the URL of a listening socket for a browser on this machine."""
    name = _EVERY_INTERFACE.get(host, host)
    return f"http://[{name}]:{port}" if ":" in name else f"http://{name}:{port}"


def public_address(host: str, port: int) -> str:
    """Return the URL for people: HTTPS on the first public name in STATEYARD_HOSTS.

    Without HTTPS, or if there is no such name, return the URL of the listening socket.
    """
    names = public_names()
    return (
        f"https://{names[0]}" if settings.STATEYARD_HTTPS and names else local_address(host, port)
    )


def store_address(address: str) -> None:
    """Write the URL into the data folder for other commands.

    Errors are ignored: a full disk does not keep the server from starting.
    """
    with contextlib.suppress(OSError):
        write_private(settings.DATA_DIR / "address", address + "\n")


def stored_address() -> str:
    """Return the server's URL at its last start, or the default one."""
    path = settings.DATA_DIR / "address"
    return path.read_text(encoding="utf-8").strip() if path.exists() else _DEFAULT
