"""The functions of the recorded cases, behind the Lambda invoke protocol."""

from __future__ import annotations

import json
import threading
import time
import uuid
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self

_FRAMES = {
    "raise_exception.py": (
        "Exception",
        "Some exception was raised.",
        (
            '  File "/var/task/handler.py", line 2, in handler\n'
            '    raise Exception("Some exception was raised.")\n'
        ),
    ),
    "raise_custom_exception.py": (
        "CustomException",
        "",
        '  File "/var/task/handler.py", line 9, in handler\n    raise CustomException()\n',
    ),
}


class _Listener(ThreadingHTTPServer):
    # Twenty children of a Map call at once; with the default of 5 the kernel resets some of them.
    request_queue_size = 128


class Lambdas:
    """An HTTP server; ``behaviours``: function name -> which of the recorded functions it is."""

    def __init__(self, behaviours: dict[str, str]) -> None:
        owner = self
        self.behaviours = behaviours

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                event = self.rfile.read(int(self.headers.get("Content-Length") or 0))
                failed, body = owner.answer(self.path.split("/")[1], event)
                self.send_response(200)
                if failed:
                    self.send_header("X-Amz-Function-Error", "Unhandled")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_: Any) -> None:
                """Say nothing."""

        self.server = _Listener(("127.0.0.1", 0), Handler)
        self.thread = threading.Thread(target=self.server.serve_forever, args=(0.02,), daemon=True)

    def __enter__(self) -> Self:
        """Serve."""
        self.thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        """Stop serving."""
        self.server.shutdown()
        self.server.server_close()

    def registrations(self) -> dict[str, str]:
        """Return what ``functions.json`` says."""
        home = f"http://127.0.0.1:{self.server.server_port}"
        path = "2015-03-31/functions/function/invocations"
        return {name: f"{home}/{name}/{path}" for name in self.behaviours}

    def answer(self, name: str, event: bytes) -> tuple[bool, bytes]:
        """Return whether the function failed, and its body."""
        behaviour = self.behaviours[name]
        if behaviour in _FRAMES:
            return True, _failure(*_FRAMES[behaviour])
        if behaviour == "wait_60_seconds.py":
            time.sleep(60)
        if behaviour == "return_bytes_str.py":
            return False, b'"HelloWorld!"'
        if behaviour == "large_output_string.py":
            return False, json.dumps("0" * 263_168).encode()
        return False, event


def _failure(kind: str, message: str, frame: str) -> bytes:
    report = {
        "errorMessage": message,
        "errorType": kind,
        "requestId": str(uuid.uuid4()),
        "stackTrace": [frame],
    }
    return json.dumps(report, separators=(",", ":")).encode()
