"""Find, store and read the address at which people and clients reach this server."""

from __future__ import annotations

import contextlib

from django.conf import settings

from console.config.data_folder import write_private
from console.config.public_address import public_names

_EVERY_INTERFACE = {"0.0.0.0": "127.0.0.1", "::": "::1"}  # noqa: S104
_DEFAULT = "http://127.0.0.1:8083"


def local_address(host: str, port: int) -> str:
    """Return the URL of a listening socket; a browser on this machine can open it."""
    name = _EVERY_INTERFACE.get(host, host)
    return f"http://[{name}]:{port}" if ":" in name else f"http://{name}:{port}"


def public_address(host: str, port: int) -> str:
    """Return the URL that people open: HTTPS on the first public name in STATEYARD_HOSTS.

    Without HTTPS, or if there is no such name, return the URL of the listening socket.
    """
    names = public_names()
    return (
        f"https://{names[0]}" if settings.STATEYARD_HTTPS and names else local_address(host, port)
    )


def store_address(address: str) -> None:
    """Write the address into the data folder, where other commands read it.

    Errors are ignored: a full disk does not keep the server from starting.
    """
    with contextlib.suppress(OSError):
        write_private(settings.DATA_DIR / "address", address + "\n")


def stored_address() -> str:
    """Return the address that the server printed at its last start, or the default one."""
    path = settings.DATA_DIR / "address"
    return path.read_text(encoding="utf-8").strip() if path.exists() else _DEFAULT
