"""System checks for ``manage.py check --deploy``: settings unsuitable for a team.

Each warning is about a setting meant for one person on one machine. The ids are explained in
``docs/reference/settings.md``.
"""

from __future__ import annotations

import stat
from typing import TYPE_CHECKING, Any

import psycopg
from django.conf import settings
from django.core.checks import Tags, Warning, register  # noqa: A004 - Django's own word

from console.config import environment

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

_OTHERS = stat.S_IRWXG | stat.S_IRWXO
_SECRET = (
    "secret",
    "credentials",
    "login-url",
    "stateyard.sqlite3*",
    "stepyard.sqlite3*",
    "targets.json",
    "functions.json",
    "oidc.json",
)
"""Files of the data folder that hold secrets or people's data."""


@register(Tags.security, deploy=True)
def check_https(**_: Any) -> list[Warning]:
    """Warn about passwords and keys sent without HTTPS."""
    if settings.STATEYARD_HTTPS:
        return []
    message = "STATEYARD_HTTPS is not set: passwords, cookies and payloads travel in plain text."
    hint = "Put a proxy that speaks HTTPS before the server and set STATEYARD_HTTPS=1."
    return [Warning(message, hint=hint, id="stateyard.W001")]


@register(Tags.security, deploy=True)
def check_secret(**_: Any) -> list[Warning]:
    """Warn about a master secret that each host generates for itself."""
    if environment.read_text("STATEYARD_SECRET"):
        return []
    path = settings.DATA_DIR / "secret"
    message = f"STATEYARD_SECRET is not set: the secret is {path}, which only this host has."
    hint = "Set STATEYARD_SECRET to what that file says, for all processes, and keep a copy."
    return [Warning(message, hint=hint, id="stateyard.W002")]


@register(Tags.security, deploy=True)
def check_address(**_: Any) -> list[Warning]:
    """Warn about workers without the server's address. ``up`` knows its own."""
    if settings.STATEYARD_URL or not _has_workers():
        return []
    message = "STATEYARD_URL is not set: workers do not know the address of this server."
    hint = "Set it to where workers reach a web process, and name its host in STATEYARD_HOSTS."
    return [Warning(message, hint=hint, id="stateyard.W003")]


@register(Tags.security, deploy=True)
def check_database(**_: Any) -> list[Warning]:
    """Warn about SQLite, which only one process can use."""
    if _has_workers():
        return []
    message = (
        "The database is a SQLite file: one process does everything, web and worker refuse it."
    )
    hint = "Set STATEYARD_DATABASE_URL to a PostgreSQL to have more than one process."
    return [Warning(message, hint=hint, id="stateyard.W004")]


@register(Tags.security, deploy=True)
def check_connections(**_: Any) -> list[Warning]:
    """Warn about a PostgreSQL with too few connections for a web process and a worker."""
    pool = settings.DATABASES["default"].get("OPTIONS", {}).get("pool")
    if not _has_workers() or not pool:
        return []
    from console.management import capacity  # imports Django's connection

    try:
        allowed = capacity.count_capacity().allowed
    except psycopg.Error:
        return []  # the commands that start processes say that it is out of reach
    each = pool["max_size"] + capacity.BESIDE
    if allowed >= 2 * each:
        return []
    message = (
        f"PostgreSQL allows {allowed} connections (max_connections); a process takes up to {each}."
    )
    hint = f"Allow {each} for each process, or lower STATEYARD_DATABASE_CONNECTIONS."
    return [Warning(message, hint=hint, id="stateyard.W007")]


@register(Tags.security, deploy=True)
def check_proxies(**_: Any) -> list[Warning]:
    """Warn about HTTPS without STATEYARD_PROXIES: all clients then share the proxy's address."""
    if settings.STATEYARD_PROXIES or not settings.STATEYARD_HTTPS:
        return []
    message = (
        "STATEYARD_PROXIES is not set: everybody has the proxy's address and shares its limits."
    )
    hint = "Name the proxy's address, and let it set X-Forwarded-For itself."
    return [Warning(message, hint=hint, id="stateyard.W006")]


@register(Tags.security, deploy=True)
def check_files(**_: Any) -> list[Warning]:
    """Warn about secret files that other users of this machine can read."""
    readable = [
        f"{path} ({stat.S_IMODE(path.stat().st_mode):04o})"
        for path in _secret_files(settings.DATA_DIR)
        if path.stat().st_mode & _OTHERS
    ]
    if not readable:
        return []
    message = f"Other users of this machine may read or change: {', '.join(readable)}."
    return [Warning(message, hint="chmod 600 makes them private.", id="stateyard.W005")]


def _has_workers() -> bool:
    """Whether several processes share the database."""
    return bool(settings.DATABASES["default"]["ENGINE"] == "django.db.backends.postgresql")


def _secret_files(folder: Path) -> Iterator[Path]:
    for pattern in _SECRET:
        yield from sorted(path for path in folder.glob(pattern) if path.is_file())
