"""Serve callables of a test as Lambda functions to the test server, over HTTP."""

from __future__ import annotations

import inspect
import json
import threading
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, unquote

from console.functions import lambda_runtime
from console.functions.runner import InvocationError

if TYPE_CHECKING:
    from collections.abc import Callable

_ARN = "arn:aws:lambda:us-east-1:123456789012:function:"
_CLOSE_LOOK_S = 0.02
"""Interval of checks for the end, for which each test waits once."""


@dataclass(frozen=True, slots=True)
class Invocation:
    """A call of a test's function. ``event``: its JSON value."""

    function: str
    event: Any


class FunctionServer:
    """HTTP server on a free loopback port, until it is closed.

    A callable takes the event, or the event and a context, as a Lambda handler.
    """

    def __init__(self) -> None:
        self.functions: dict[str, Callable[..., Any]] = {}
        self.invocations: list[Invocation] = []
        self._server = _Listener(("127.0.0.1", 0), _handler_class(self))
        self._thread = threading.Thread(
            target=self._server.serve_forever, args=(_CLOSE_LOOK_S,), daemon=True
        )
        self._thread.start()

    def address(self, name: str) -> str:
        """Return the URL of a function."""
        return f"http://127.0.0.1:{self._server.server_port}/{quote(name, safe='')}"

    def close(self) -> None:
        """Stop answering."""
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def invoke(self, name: str, event: str, key: str) -> tuple[bool, str]:
        """Call a function; return whether it succeeded, and the JSON text of the answer."""
        handler = self.functions[name]
        self.invocations.append(Invocation(name, json.loads(event)))
        context = lambda_runtime.make_context(name, _ARN + name, key, None)
        try:
            return True, lambda_runtime.run_handler(lambda: _of_two(handler), event, context)
        except InvocationError as error:
            return False, error.cause


class _Listener(ThreadingHTTPServer):
    """Socket server with room for all concurrent calls of a Map: a full queue costs a second."""

    request_queue_size = 512


def _of_two(handler: Callable[..., Any]) -> Callable[[Any, Any], Any]:
    """Return a callable with two parameters for a handler with one or two."""
    try:
        inspect.signature(handler).bind(None, None)
    except TypeError:
        return lambda event, _: handler(event)
    except ValueError:  # a builtin that does not say what it takes
        return lambda event, _: handler(event)
    return handler


def _handler_class(functions: FunctionServer) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        """Answers POST /NAME."""

        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            """Invoke the function that the path names."""
            length = int(self.headers.get("Content-Length", 0))
            event = self.rfile.read(length).decode() or "{}"
            name = unquote(self.path.lstrip("/"))
            if name not in functions.functions:
                self.send_error(404)
                return
            key = self.headers.get("Stateyard-Idempotency-Key", "")
            good, text = functions.invoke(name, event, key)
            self._answer(text.encode(), good=good)

        def _answer(self, body: bytes, *, good: bool) -> None:
            self.send_response(200)
            if not good:
                self.send_header("X-Amz-Function-Error", "Unhandled")
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: Any) -> None:
            """Say nothing: the output is the test's."""

    return Handler
