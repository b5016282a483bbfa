"""Serve REST-JSON services such as EventBridge Scheduler: method and path name the action.

Members of a request are in the path, the query or a JSON body, by botocore's service model. Answers
are JSON with times in epoch seconds.
"""

from __future__ import annotations

import json
import re
import uuid
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs, quote, unquote

import structlog

from console.awsapi import asgi, services, shapes, sigv4
from console.awsapi.operations.call import Call
from console.awsapi.refused_calls import record_refusal
from console.db.audit import Actor
from console.db.rows import storable
from console.db.writer import drop_broken_connection, settled
from console.errors import ErrorCode, ProtocolError, ServiceError, ValidationException

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from botocore.model import OperationModel

    from console.awsapi.asgi import Headers

log = structlog.get_logger(__name__)
_KIND = b"application/json"
_LABEL = re.compile(r"\{(\w+)\}")
_WHOLE = re.compile(r"-?\d{1,18}", re.ASCII)
_PLACES = {"uri": "path", "querystring": "query", "header": "headers"}
_MUST_SIGN = frozenset({"host", "x-amz-date"})  # method, path and query are always signed


async def rest_json_application(
    service: services.ApiService,
    scope: dict[str, Any],
    receive: Callable[[], Awaitable[dict[str, Any]]],
    send: Callable[[dict[str, Any]], Awaitable[None]],
) -> None:
    """Answer one call of a service."""
    request_id = str(uuid.uuid4())
    headers = asgi.collect_headers(scope)
    code = ""
    try:
        asgi.refuse_overload()
        body = await asgi.read_body(receive, headers)
        call = partial(_answer_call, service, scope, headers, body, request_id)
        status, members = 200, await asgi.run_call(call)
    except ServiceError as error:
        action = f"{scope['method']} {scope['path']}"
        key_id = sigv4.claimed("key", headers)
        await record_refusal(asgi.run_call, scope, key_id, action, error)
        status, members, code = *_error_answer(service, error), error.code
    except Exception as error:  # noqa: BLE001 - failure_of logs it
        failure = asgi.failure_of(error, request_id)
        status, members, code = failure.status, {"Message": failure.message}, failure.code
    answer_headers = [
        (b"content-type", _KIND),
        (b"x-amzn-requestid", request_id.encode()),
        (b"cache-control", b"no-store"),
    ]
    if code:
        answer_headers.append((b"x-amzn-errortype", code.encode()))
    data = json.dumps(members, ensure_ascii=False, separators=(",", ":")).encode()
    await asgi.send_answer(send, status, answer_headers, data)


def _error_answer(service: services.ApiService, error: ServiceError) -> tuple[int, dict[str, Any]]:
    shape = shapes.error_shapes(service.name).get(error.code)
    modelled = {} if shape is None else shape.metadata.get("error", {})
    return modelled.get("httpStatusCode", error.status), {"Message": error.message}


def _answer_call(
    service: services.ApiService,
    scope: dict[str, Any],
    headers: Headers,
    body: bytes,
    request_id: str,
) -> dict[str, Any]:
    """Authenticate, authorize and run a call; return its answer (on a pool thread)."""
    asgi.check_host(headers)
    drop_broken_connection()
    line = _request_line(scope)
    operation, labels = find_operation(service, line)
    principal, region = asgi.identify_caller(
        *(service, line.path, headers, body, _MUST_SIGN, line.method, line.query),
        address=asgi.address_of(scope),
    )
    handler = service.handler(operation.name)  # unknown actions fail before the check of rights
    asgi.authorize(principal, service.permission(operation.name))
    params = _read_params(operation, labels, line.query, body)
    shapes.check_params(operation, params)
    service.check_members(operation.name, params)
    actor = Actor(principal.user.get_username(), principal.key_id, request_id)
    answer = settled(handler(Call(operation.name, params, principal, region, actor)))
    assert isinstance(answer, dict)  # noqa: S101 - for the type checker: no action waits here
    return answer


def _request_line(scope: dict[str, Any]) -> sigv4.RequestLine:
    """Return the request line as sent, with percent signs."""
    raw = scope.get("raw_path")
    path = raw.decode("latin-1") if raw else quote(scope["path"], safe="/~")
    query = (scope.get("query_string") or b"").decode("latin-1")
    return sigv4.RequestLine(scope["method"], path.partition("?")[0], query)


# -- the action ------------------------------------------------------------------------------------


@lru_cache(maxsize=4)
def _routes(name: str) -> tuple[tuple[str, re.Pattern[str], str], ...]:
    """Return method, path pattern and action of each action of a service."""
    model = shapes.service_model(name)
    routes = []
    for action in model.operation_names:
        http = model.operation_model(action).http
        parts = _LABEL.split(http["requestUri"])
        texts = [
            f"(?P<{part}>[^/]+)" if place % 2 else re.escape(part)
            for place, part in enumerate(parts)
        ]
        routes.append((http["method"], re.compile("".join(texts)), action))
    return tuple(routes)


def find_operation(
    service: services.ApiService, line: sigv4.RequestLine
) -> tuple[OperationModel, dict[str, str]]:
    """Return the action of a request line, and its path's members.

    Raise ``UnknownOperationException``.
    """
    for method, pattern, action in _routes(service.name):
        match = pattern.fullmatch(line.path) if method == line.method else None
        if match is not None:
            labels = {name: unquote(text) for name, text in match.groupdict().items()}
            return service.operation(action), labels
    raise ProtocolError(
        ErrorCode.UnknownOperationException,
        f"The service {service.scope!r} has no operation {line.method} {line.path[:200]}",
    )


# -- its members -----------------------------------------------------------------------------------


def _read_params(
    operation: OperationModel, labels: dict[str, str], query: str, body: bytes
) -> dict[str, Any]:
    """Return the members of a request, each from its place in the service model."""
    params: dict[str, Any] = _storable_value(_read_body(body))
    members = operation.input_shape.members if operation.input_shape is not None else {}
    fields = parse_qs(query, keep_blank_values=True)
    for name, member in members.items():
        location = member.serialization.get("location")
        wire_name = member.serialization.get("name", name)
        if location is not None and params.get(name) is not None:
            raise ValidationException(
                f"{name}: stands in the body, belongs to the {_PLACES[location]}"
            )
        if location == "uri":
            params[name] = labels[wire_name]
        elif location == "querystring" and wire_name in fields:
            params[name] = _query_value(member, fields.pop(wire_name), name)
    if fields:
        raise ValidationException(
            f"the query: {operation.name} has no parameter {next(iter(fields))[:100]!r}"
        )
    return params


def _storable_value(value: Any) -> Any:
    """Return a JSON value whose texts every database can store."""
    if isinstance(value, str):
        return storable(value)
    if isinstance(value, list):
        return [_storable_value(item) for item in value]
    if isinstance(value, dict):
        return {storable(name): _storable_value(item) for name, item in value.items()}
    return value


def _query_value(member: Any, texts: list[str], name: str) -> Any:
    if member.type_name == "list":
        return texts
    if member.type_name != "integer":
        return texts[0]
    if _WHOLE.fullmatch(texts[0]) is None:
        raise ProtocolError(
            ErrorCode.SerializationException, f"{name}: got {texts[0][:40]!r}, wanted an integer"
        )
    return int(texts[0])


def _read_body(body: bytes) -> dict[str, Any]:
    params = asgi.parse_json(body)
    if not isinstance(params, dict):
        raise ProtocolError(
            ErrorCode.SerializationException,
            f"the body: got {type(params).__name__}, wanted an object",
        )
    return params
