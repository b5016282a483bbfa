"""A server that speaks the wire protocols of AWS services and answers what a test tells it to.

botocore's models say which operation a request is, how its members are spelled on the wire and
which members an answer may have; a test only deals in the services' own members.
"""

from __future__ import annotations

import json
import re
import threading
from dataclasses import dataclass, field
from functools import lru_cache
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self
from urllib.parse import parse_qsl, unquote, urlsplit

import botocore.session

_CLIENTS = {"elasticmapreduce": "emr"}  # signing name -> botocore's, where they differ
_SIGNED_FOR = re.compile(r"Credential=[^/]+/\d+/[\w-]+/([\w-]+)/aws4_request")


@dataclass(frozen=True)
class WireError:
    """What a service answers when it refuses."""

    code: str
    message: str
    status: int = 400


@dataclass(frozen=True)
class Seen:
    """A request that came in."""

    operation: str
    parameters: dict[str, Any]


@dataclass
class Wire:
    """``answers``: operation -> an answer, a ``WireError``, or a list of them (the last one stays).

    A threading.Event as ``held`` keeps the answer to an operation back until it is set.
    """

    answers: dict[str, Any] = field(default_factory=dict)
    held: dict[str, threading.Event] = field(default_factory=dict)
    seen: list[Seen] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)

    def __enter__(self) -> Self:
        """Serve."""
        handler = type("Handler", (_Handler,), {"wire": self})
        self.server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}"
        threading.Thread(target=self.server.serve_forever, args=(0.02,), daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        """Stop serving."""
        self.server.shutdown()
        self.server.server_close()

    def begin(self, answers: dict[str, Any]) -> None:
        """Forget what was; answer this from now on."""
        self.answers, self.held, self.seen, self.problems = dict(answers), {}, [], []

    def asked(self, operation: str) -> list[dict[str, Any]]:
        """Return the parameters of every request for an operation."""
        return [call.parameters for call in list(self.seen) if call.operation == operation]

    def answer(self, operation: str) -> Any:
        """Return what an operation answers now."""
        if operation in self.held:
            self.held[operation].wait(20)
        answer = self.answers[operation]
        if isinstance(answer, list):
            return answer.pop(0) if len(answer) > 1 else answer[0]
        return answer


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    wire: Wire

    def _serve(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        try:
            operation, parameters = self._asked(body)
            self.wire.seen.append(Seen(operation.name, parameters))
            told = self.wire.answer(operation.name)
            status = int(operation.http.get("responseCode", 200))
            if isinstance(told, WireError):
                error = {"__type": told.code, "message": told.message}
                self._send(told.status, error, told.code)
            else:
                self._send(status, _to_wire(operation.output_shape, told))
        except Exception as error:  # noqa: BLE001 - the test shows it
            self.wire.problems.append(f"{self.command} {self.path}: {error!r}")
            self._send(500, {"message": repr(error)}, "InternalFailure")

    do_GET = do_POST = do_PUT = do_DELETE = do_PATCH = _serve  # noqa: N815

    def _asked(self, body: bytes) -> tuple[Any, dict[str, Any]]:
        signed = _SIGNED_FOR.search(self.headers.get("Authorization", ""))
        assert signed is not None, "the request is not signed"
        model = _model(_CLIENTS.get(signed[1], signed[1]))
        target = self.headers.get("X-Amz-Target")
        if target is not None:
            operation = model.operation_model(target.rpartition(".")[2])
            return operation, _members(operation.input_shape, json.loads(body))
        return _rest(model, self.command, self.path, body)

    def _send(self, status: int, answer: dict[str, Any], code: str = "") -> None:
        data = json.dumps(answer).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.send_header("x-amzn-RequestId", "request-1")
        if code:
            self.send_header("x-amzn-ErrorType", code)
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *_: Any) -> None:
        """Print nothing."""


@lru_cache(maxsize=32)
def _model(service: str) -> Any:
    return botocore.session.Session().get_service_model(service)


def _rest(model: Any, method: str, path: str, body: bytes) -> tuple[Any, dict[str, Any]]:
    """Find the operation of a rest-json request by its method and address."""
    where = urlsplit(path)
    for name in model.operation_names:
        operation = model.operation_model(name)
        address = operation.http["requestUri"].partition("?")[0].rstrip("/")
        pattern = re.sub(r"\{[^}]+\}", "([^/]+)", address)
        match = re.fullmatch(pattern, where.path.rstrip("/"))
        if operation.http["method"] == method and match is not None:
            names = re.findall(r"\{([^}+]+)\+?\}", address)
            labels = dict(zip(names, map(unquote, match.groups()), strict=True))
            members = json.loads(body) if body else {}
            every = {**members, **dict(parse_qsl(where.query)), **labels}
            return operation, _members(operation.input_shape, every)
    raise LookupError("no operation has this address")


def _spelled(shape: Any) -> dict[str, str]:
    """Return wire name -> member."""
    members = shape.members.items()
    return {member.serialization.get("name", name): name for name, member in members}


def _members(shape: Any, value: Any) -> Any:
    """Return what came over the wire under the members' own names; raise for unknown ones."""
    if shape.type_name == "structure":
        names = _spelled(shape)
        return {
            names[key]: _members(shape.members[names[key]], item) for key, item in value.items()
        }
    if shape.type_name == "list":
        return [_members(shape.member, item) for item in value]
    if shape.type_name == "map":
        return {key: _members(shape.value, item) for key, item in value.items()}
    return value


def _to_wire(shape: Any, value: Any) -> Any:
    """Return an answer as it is spelled on the wire; raise for members it cannot have."""
    if shape is None:
        return {}
    if shape.type_name == "structure":
        names = {member: key for key, member in _spelled(shape).items()}
        return {names[key]: _to_wire(shape.members[key], item) for key, item in value.items()}
    if shape.type_name == "list":
        return [_to_wire(shape.member, item) for item in value]
    if shape.type_name == "map":
        return {key: _to_wire(shape.value, item) for key, item in value.items()}
    return value
