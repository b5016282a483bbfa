"""An admitted request holds a database connection only during its admission."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from asgiref.sync import sync_to_async
from django.conf import settings
from django.db import connection

from console.server import admission
from tests.loops import looped

if TYPE_CHECKING:
    from django.test import Client

    from console.models import Project


def end_kept_session() -> bool:
    """Let the server end the session of this thread, as if it restarted; tell if there was one."""
    if connection.vendor != "postgresql" or connection.connection is None:
        return False
    number = connection.connection.info.backend_pid
    session = connection.copy()
    with session.cursor() as cursor:
        cursor.execute("SELECT pg_terminate_backend(%s)", [number])
    session.close()
    return True


def test_an_import_is_admitted_after_an_outage(project: Project, client: Client) -> None:
    """The thread that looks at sessions is no request's: nobody else renews its connection."""
    del project
    cookie = f"{settings.SESSION_COOKIE_NAME}={client.cookies[settings.SESSION_COOKIE_NAME].value}"
    headers = [(b"cookie", cookie.encode()), (b"content-length", b"60000000")]
    scope = {"type": "http", "path": "/import/", "headers": headers}

    async def most_bytes() -> list[Any]:
        results: list[Any] = []
        for _ in range(3):
            results.append(await admission._max_body_bytes(scope))
            results.append(await sync_to_async(end_kept_session)())
        return results

    assert looped(most_bytes) == [admission._IMPORT_BYTES, False] * 3
