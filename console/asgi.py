"""The ASGI application of the server: it routes AWS API calls to ``awsapi``, all else to Django.

``console.server.serving`` runs it for ``up`` and ``web``.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "console.config.settings")

import django

django.setup(set_prefix=False)

from console.awsapi.asgi import aws_application  # noqa: E402 - as above
from console.awsapi.other_services import (  # noqa: E402 - as above
    is_aws_call,
    other_services_application,
)
from console.server import answers  # noqa: E402 - as above
from console.server.admission import Admission  # noqa: E402 - models need Django to be set up first
from console.server.page_handler import PageHandler  # noqa: E402 - as above

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from console.server.admission import Application

pages = Admission(PageHandler())  # type: ignore[arg-type]  # ASGI in plain dicts
_AWS_BODY = b"application/x-amz-json-1."


async def application(
    scope: dict[str, Any],
    receive: Callable[[], Awaitable[dict[str, Any]]],
    send: Callable[[dict[str, Any]], Awaitable[None]],
) -> None:
    """Route a request by its headers: AWS calls have ``X-Amz-Target``.

    Calls of other AWS services have a signature or other marks of an SDK, which requests of pages
    do not have. The server's own HTTP API is signed, too, but its paths begin like those of pages,
    so Django handles it.
    """
    if scope["type"] != "http":
        await pages(scope, receive, send)
        return
    answering: Application = pages
    if scope["method"] == "POST" and _is_aws(scope["headers"]):
        answering, kind = aws_application, answers.kind_of_call(scope)
    elif is_aws_call(scope) and not _is_own_api(scope):
        answering, kind = other_services_application, answers.SERVICE
    else:
        kind = answers.kind_of_page(scope["path"])
    answer = answers.CountedAnswer(kind, send)
    try:
        await answering(scope, receive, answer.send)
    finally:
        answer.end()


def _is_own_api(scope: dict[str, Any]) -> bool:
    return bool(scope["path"].startswith("/api/"))


def _is_aws(headers: list[tuple[bytes, bytes]]) -> bool:
    return any(
        name in (b"x-amz-target", b"smithy-protocol")
        or (name == b"content-type" and value.startswith(_AWS_BODY))
        for name, value in headers
    )
