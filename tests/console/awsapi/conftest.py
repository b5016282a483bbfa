"""What the tests of the API share."""

from __future__ import annotations

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any

import pytest

from console.config import quotas
from tests.console.awsapi.requests import existing
from tests.console.awsapi.world import World

if TYPE_CHECKING:
    from collections.abc import Iterator

    from console.models import Project


@pytest.fixture
def world(project: Project, django_user_model: Any, settings: Any) -> Iterator[World]:
    """Return a project with something of each kind."""
    settings.STATEYARD_QUOTAS = {}
    quotas.forget()
    yield World(project, django_user_model.objects.create_user("ana"))
    quotas.forget()


@pytest.fixture
def samples(world: World) -> dict[str, Any]:
    """Member -> something that exists."""
    return existing(world)


class _Web(BaseHTTPRequestHandler):
    """Answers in a known way."""

    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        """Answer 200, or 418 for one path."""
        self.rfile.read(int(self.headers.get("Content-Length", 0)))
        data = json.dumps({"key": self.headers.get("X-Key")}).encode()
        self.send_response(418 if self.path.startswith("/tea") else 200)
        self.send_header("X-Two", "2")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *_: Any) -> None:
        """Print nothing."""


@pytest.fixture
def web(settings: Any) -> Iterator[str]:
    """An address that answers and that the operator has named, with a connection."""
    served = ThreadingHTTPServer(("127.0.0.1", 0), _Web)
    threading.Thread(target=served.serve_forever, args=(0.02,), daemon=True).start()
    address = f"http://127.0.0.1:{served.server_port}"
    connections = {"shop": {"name": "X-Key", "value": "hush"}}
    settings.STATEYARD_TARGETS = {"http": {"endpoints": [address], "connections": connections}}
    yield address
    served.shutdown()
    served.server_close()
