"""One server whose targets are moto's services and a web address, for the tests of this folder."""

from __future__ import annotations

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any

import pytest

from tests.acceptance.aws import KEYS, Moto
from tests.acceptance.server import Server

if TYPE_CHECKING:
    from collections.abc import Iterator

MOCKS = {
    "StateMachines": {
        "mocked": {
            "TestCases": {
                "Happy": {"Call": "Flaky", "Send": "Sent"},
                "Sad": {"Call": "Broken"},
            }
        }
    },
    "MockedResponses": {
        "Flaky": {
            "0": {"Throw": {"Error": "Busy", "Cause": "try again"}},
            "1-2": {"Return": {"StatusCode": 200, "Payload": 7}},
        },
        "Sent": {"0": {"Return": {"MessageId": "m"}}},
        "Broken": {"0-5": {"Throw": {"Error": "Gone", "Cause": "for good"}}},
    },
}


@pytest.fixture(scope="package")
def aws() -> Iterator[Moto]:
    """The services."""
    moto = Moto().start()
    yield moto
    moto.stop()


@pytest.fixture(scope="package")
def server(aws: Moto, web: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server whose targets are those services."""
    http = {"endpoints": [web], "connections": {"shop": {"name": "X-Key", "value": "secret"}}}
    everything = {"endpoint_url": aws.url, **KEYS}
    named = {"events": everything, "http": http, "apigateway": {"endpoint_url": web}}
    targets = json.dumps({"*": everything, **named})
    data = tmp_path_factory.mktemp("targets") / "data"
    data.parent.joinpath("mocks.json").write_text(json.dumps(MOCKS), encoding="utf-8")
    mocks = str(data.parent / "mocks.json")
    functions = json.dumps({"AddressFinder": "console.samples.functions:find_address"})
    running = Server(
        data, STATEYARD_TARGETS=targets, STATEYARD_FUNCTIONS=functions, SFN_MOCK_CONFIG=mocks
    ).start()
    yield running
    running.stop()


@pytest.fixture
def sfn(server: Server) -> Any:
    """A client of the server."""
    return server.client()


class _Web(BaseHTTPRequestHandler):
    """Answers with what it was asked."""

    def do_POST(self) -> None:
        """Answer 200, or the status in the path."""
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        status = 200 if self.path.startswith("/ok") else 404
        told = {"path": self.path, "key": self.headers.get("X-Key"), "body": body.decode()}
        data = json.dumps(told).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *_: Any) -> None:
        """Print nothing."""


@pytest.fixture(scope="package")
def web() -> Iterator[str]:
    """An address that answers."""
    served = ThreadingHTTPServer(("127.0.0.1", 0), _Web)
    threading.Thread(target=served.serve_forever, args=(0.02,), daemon=True).start()
    yield f"http://127.0.0.1:{served.server_port}"
    served.shutdown()
    served.server_close()
