"""Serve the Prometheus metrics of a process at a separate port.

A worker has no pages; and behind a proxy, ``/metrics`` reaches only one of several web processes.
With ``STATEYARD_METRICS_TOKEN`` the port accepts other machines that send the token; without it
only this machine.
"""

from __future__ import annotations

import secrets
import threading
from typing import TYPE_CHECKING, Any
from wsgiref.simple_server import WSGIRequestHandler, make_server

from django.conf import settings
from django.db import connection
from prometheus_client import CollectorRegistry, make_wsgi_app
from prometheus_client.exposition import ThreadingWSGIServer

from console.features.metrics.engine_metrics import OwnCollector
from console.features.metrics.openmetrics import MetricsCollector

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    Start = Callable[[str, list[tuple[str, str]]], object]
    Environment = dict[str, Any]

_REFUSAL = b"metrics: send Authorization: Bearer TOKEN with the value of STATEYARD_METRICS_TOKEN\n"


class _Handler(WSGIRequestHandler):
    """Handles one connection at a time on a thread, and drops a silent client."""

    timeout = 10

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - its name there
        """Log nothing: Prometheus scrapes every few seconds."""


def serve_metrics(port: int, *, whole: bool) -> int:
    """Serve this process's metrics on a thread; return the port. Raise OSError if it is taken.

    ``whole``: include the metrics of the server and its projects, read from the database.
    """
    registry = CollectorRegistry()
    registry.register(MetricsCollector() if whole else OwnCollector())
    host = "0.0.0.0" if settings.STATEYARD_METRICS_TOKEN else "127.0.0.1"  # noqa: S104 - as above
    server = make_server(
        host, port, _require_token(make_wsgi_app(registry)), ThreadingWSGIServer, _Handler
    )
    threading.Thread(target=server.serve_forever, name="metrics", daemon=True).start()
    return server.server_port


def _require_token(answer: Any) -> Callable[[Environment, Start], Iterable[bytes]]:
    """Return a WSGI application that answers GET /metrics to clients with the token."""

    def application(environ: Environment, start: Start) -> Iterable[bytes]:
        if environ["PATH_INFO"] != "/metrics" or environ["REQUEST_METHOD"] not in ("GET", "HEAD"):
            start("404 Not Found", [("Content-Type", "text/plain")])
            return [b"Not found: GET /metrics\n"]
        token = settings.STATEYARD_METRICS_TOKEN
        header = environ.get("HTTP_AUTHORIZATION", "")
        if token and not secrets.compare_digest(header.encode(), f"Bearer {token}".encode()):
            start(
                "401 Unauthorized",
                [("Content-Type", "text/plain"), ("WWW-Authenticate", "Bearer")],
            )
            return [_REFUSAL]
        try:
            lines: Iterable[bytes] = answer(environ, start)
        finally:
            connection.close()  # this thread ends with its client
        return lines

    return application
