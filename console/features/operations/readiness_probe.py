"""Check whether the server is ready and its own address answers, and store the result."""

from __future__ import annotations

import http.client
import ssl
import time
from urllib.parse import urlsplit

from django.conf import settings

from console.db import writer
from console.features.operations import readiness
from console.store.state import health

EVERY_S = 15.0
_ANSWER_S = 5.0
_SERVER_ERROR = 500
_loaded_at = time.monotonic()


def note_start() -> None:
    """Record one failed check at the start of a single-process server.

    Nobody could measure while the server was stopped (``readiness.note_stop``). With several
    processes nothing is recorded: the others may have been ready all the time.
    """
    if writer.is_embedded():
        readiness.note_stop()


def begin() -> None:
    """Check for the first time: at once, unless this process has just started.

    A server that is starting has not opened its port yet. A worker that takes over from another one
    goes on with the checks.
    """
    note_start()
    if time.monotonic() >= _loaded_at + EVERY_S:
        measure()


def measure() -> None:
    """Record why the server is not ready; if it is, whether ``STATEYARD_URL`` answers."""
    reasons = health.check_health().reasons or _web_problem(settings.STATEYARD_URL)
    readiness.note_look("; ".join(reasons))


def _web_problem(address: str) -> tuple[str, ...]:
    """Return why the server's own address does not answer.

    Without an address nothing is checked. A redirect, a refusal or an unknown certificate may come
    from a proxy in front of the server, and counts as an answer.
    """
    if not address:
        return ()
    parts = urlsplit(address)
    connect = http.client.HTTPSConnection if parts.scheme == "https" else http.client.HTTPConnection
    connection = connect(parts.hostname or "", parts.port, timeout=_ANSWER_S)
    try:
        connection.request("GET", "/healthz")
        status = connection.getresponse().status
    except ssl.SSLError:
        return ()
    except (OSError, http.client.HTTPException) as error:
        return (f"no web process answers: {type(error).__name__}",)
    finally:
        connection.close()
    return (f"the web process answers {status}",) if status >= _SERVER_ERROR else ()
