"""ASGI application for AWS API calls: AWS JSON 1.0/1.1 and RPC v2 CBOR.

Operations run on a small pool of long-lived threads, each with its own database connection. Short
operations on an embedded database run in the event loop's thread, which saves a switch of threads.
Django's request cycle is not used: no cookies, sessions or middleware.
"""

from __future__ import annotations

import contextlib
import json
import time
import uuid
from dataclasses import replace
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec
import structlog
from django.conf import settings
from django.http.request import split_domain_port, validate_host
from structlog.contextvars import bind_contextvars, clear_contextvars

import engine
from console import access
from console.awsapi import cbor, services, shapes, sigv4
from console.awsapi.key_resources import resources_of
from console.awsapi.operations.call import Answer, Call, look_first, wait_for
from console.awsapi.read_ahead import PAGES_AHEAD
from console.awsapi.refused_calls import record_refusal
from console.awsapi.waiting_calls import WAITING_CALLS
from console.config import quotas
from console.db import outages
from console.db.audit import Actor
from console.db.overload import WaitedTooLong, is_behind
from console.db.writer import (
    Change,
    drop_broken_connection,
    is_embedded,
    is_outage,
    settled,
)
from console.errors import ErrorCode, ProtocolError, ServiceError
from console.models.key_scope import EVERYTHING, UNNAMED
from console.own_api import LongPoll
from console.server.threads import await_write, run_in_loop, threads
from console.store.people import people

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence

    from console.models.key_scope import KeyedResource

log = structlog.get_logger(__name__)
Headers = dict[str, list[str]]
T = TypeVar("T")
_SHORT = {
    "DescribeExecution",
    "GetActivityTask",
    "SendTaskFailure",
    "SendTaskHeartbeat",
    "SendTaskSuccess",
    "StartExecution",
}
"""Operations that read a few rows by their keys, and pass their changes to the writer."""
_STARTS = {"StartExecution", "StartSyncExecution"}
_WAITS = {"GetActivityTask", "StartSyncExecution"}
_TRACE = "x-amzn-trace-id"
"""The header of the X-Ray trace, which wins over the member ``traceHeader``.

Source: API reference, StartExecution.
"""
_FEW = 4
"""Up to this number of concurrent calls, a short call runs in the event loop.

Measured, with eight other threads: they answer a fifth more calls a second for 16 clients, and a
seventh less for one client or for four.
"""
_MOST_UNDER_WAY = 1024
_under_way = 0
_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder().decode
_TOO_MANY = "too many calls wait"
_SHORT_BYTES = 16_384  # to read more JSON than this takes longer than to hand it to a thread


async def aws_application(
    scope: dict[str, Any],
    receive: Callable[[], Awaitable[dict[str, Any]]],
    send: Callable[[dict[str, Any]], Awaitable[None]],
) -> None:
    """Answer one AWS call (an ASGI application)."""
    request_id = str(uuid.uuid4())
    headers = collect_headers(scope)
    if binary := cbor.is_cbor(headers):
        headers["x-amz-target"] = [cbor.target_of_path(scope["path"])]
    service, name = services.find_service(headers)
    encode = cbor.dumps if binary else _encode_json
    try:
        refuse_overload(starts=name in _STARTS)
        body = await read_body(receive, headers)
        call = partial(answer_call, scope, headers, body, request_id)
        answer = await _run_operation(call, short=_is_short(name, body))
        if isinstance(answer, LongPoll):
            answer = await wait_for(answer, threads(), receive)
        shape = service.operation(name).output_shape
        status, code, data = 200, "", encode(answer, shape)
    except ServiceError as error:
        code = error.code
        await record_refusal(run_call, scope, sigv4.claimed("key", headers), name, error)
        status, refusal = service.error_answer(error)
        data = encode(refusal)
    except Exception as error:  # noqa: BLE001 - failure_of logs it
        failure = failure_of(error, request_id)
        code = failure.code
        status, refusal = service.error_answer(failure)
        data = encode(refusal)
    kind = cbor.CONTENT_TYPE if binary else service.content_type
    await send_answer(send, status, [*_answer_headers(kind, code, request_id)], data)
    PAGES_AHEAD.begin(threads())


def _is_short(name: str, body: bytes) -> bool:
    """Whether a call is short enough for the event loop's thread."""
    # To take a token of a rate of starts waits for a commit.
    is_short = name in _SHORT and len(body) <= _SHORT_BYTES and is_embedded()
    return is_short and not (name in _STARTS and quotas.limit_starts())


def failure_of(error: Exception, request_id: str) -> ProtocolError:
    """Log an unexpected error, and return the AWS error for the caller.

    During an outage of the database it differs from the answer to an error of this server: SDKs and
    people know then that the same call may work in a moment.
    """
    if is_outage(error):
        outages.note_outage("an AWS call", error)
        return _unavailable("the database is out of reach")
    if not isinstance(error, _LoggedError):
        log.error("an AWS call failed", request_id=request_id, exc_info=error)
    return ProtocolError(
        ErrorCode.InternalFailure, f"The request processing has failed: {request_id}"
    )


def refuse_overload(*, starts: bool = False) -> None:
    """Raise ``ServiceUnavailable`` if a call would wait long for a thread; SDKs retry it.

    ``starts``: whether it starts an execution, which makes more work. Calls that end executions are
    admitted.

    Nothing of the call has been read or done by then, so that a refusal costs little: a server
    that took every call would answer all of them too late.
    """
    if threads().overloaded or _under_way >= _MOST_UNDER_WAY or (starts and is_behind()):
        raise _unavailable(_TOO_MANY)


def _unavailable(why: str) -> ProtocolError:
    return ProtocolError(
        ErrorCode.ServiceUnavailable,
        f"The request has failed due to a temporary failure of the server: {why}",
    )


async def run_call(call: Callable[[], T]) -> T:
    """Run a call on a thread; raise ``ServiceUnavailable`` if none was free in time."""
    try:
        answer: T = await threads().run_in_time(time.monotonic(), call)
    except WaitedTooLong:
        raise _unavailable(_TOO_MANY) from None
    return answer


async def _run_operation(call: Callable[[], Answer], *, short: bool) -> dict[str, Any] | LongPoll:
    """Run an operation, and wait for the commit of its change.

    A short one runs in the loop's own thread while few others are under way: nobody waits for that
    thread then, and waking another one takes longer than the call. When many are under way, the
    loop reads and answers for all of them, and the calls themselves go to the other threads.
    """
    global _under_way  # noqa: PLW0603 - changed in the loop's thread only
    _under_way += 1
    since = time.monotonic()
    try:
        if short and _under_way <= _FEW:
            answer = run_in_loop(call)
            if isinstance(answer, Change):
                return await await_write(answer, threads(), since)
            return answer
        result: dict[str, Any] | LongPoll = await threads().run_to_commit(since, call)
    except WaitedTooLong:
        raise _unavailable(_TOO_MANY) from None
    else:
        return result
    finally:
        _under_way -= 1


# -- in --------------------------------------------------------------------------------------------


def collect_headers(scope: dict[str, Any]) -> Headers:
    """Return the request's headers: lower-case name -> values in their order."""
    headers: Headers = {}
    for name, value in scope["headers"]:
        headers.setdefault(name.decode("latin-1").lower(), []).append(value.decode("latin-1"))
    return headers


async def read_body(receive: Callable[[], Awaitable[dict[str, Any]]], headers: Headers) -> bytes:
    """Return the request's body; raise ``ProtocolError`` if it is too large or incomplete."""
    declared = headers.get("content-length", ["0"])[0]
    body = bytearray()
    while True:
        size = max(len(body), int(declared) if declared.isdecimal() else 0)
        if size > settings.STATEYARD_MAX_REQUEST_BYTES + 65_536:
            limit = settings.STATEYARD_MAX_REQUEST_BYTES
            raise ProtocolError(
                ErrorCode.RequestEntityTooLargeException, f"Request size exceeded {limit} bytes"
            )
        message = await receive()
        if message["type"] == "http.disconnect":
            raise ProtocolError(
                ErrorCode.SerializationException, "the body: its sender went away before its end"
            )
        body += message.get("body", b"")
        if not message.get("more_body"):
            return bytes(body)


def answer_call(scope: dict[str, Any], headers: Headers, body: bytes, request_id: str) -> Answer:
    """Authenticate, authorize and run a call; return its answer (on a pool thread)."""
    try:
        return _check_and_run(scope, headers, body, request_id)
    except ServiceError:
        raise
    except Exception as error:
        if is_outage(error):
            raise
        # here, where the execution is known
        log.exception("an AWS call failed", request_id=request_id)
        raise _LoggedError from error
    finally:
        clear_contextvars()


class _LoggedError(Exception):
    """An unexpected error that has been logged."""


def _check_and_run(scope: dict[str, Any], headers: Headers, body: bytes, request_id: str) -> Answer:
    service, name = services.find_service(headers)
    claimed = sigv4.claimed("service", headers)
    if claimed and claimed not in services.SCOPES:
        raise ProtocolError(
            ErrorCode.UnknownOperationException,
            f"The service {claimed!r} is not one of this server: {name}",
        )
    _check_request(service, scope, headers, body)
    drop_broken_connection()
    principal, region = identify_caller(
        service, scope["path"], headers, body, address=address_of(scope)
    )
    operation = service.operation(name)
    service.handler(name)  # unknown actions fail before the check of rights
    resources: tuple[KeyedResource, ...] = (UNNAMED,)
    if principal.scope is EVERYTHING:
        authorize(principal, service.permission(name))
        params = parse_params(headers, body)
    else:  # the body names the state machine, to which the key may be limited
        params = parse_params(headers, body)
        resources = resources_of(service, name, params, principal.project, region)
        authorize(principal, service.permission(name), resources)
    shapes.check_params(operation, params)
    service.check_members(name, params)
    if (trace := headers.get(_TRACE, [""])[0]) and shapes.takes_trace_header(operation, trace):
        params["traceHeader"] = trace
    about = {"execution": params["executionArn"]} if params.get("executionArn") else {}
    bind_contextvars(request_id=request_id, operation=name, **about)
    actor = Actor(principal.user.get_username(), principal.key_id, request_id)
    call = Call(name, params, principal, region, actor, as_json=not cbor.is_cbor(headers))
    if name in _WAITS:
        WAITING_CALLS.check(principal.key_id, quotas.quotas_of(principal.project.name))
    answer = settled(service.run(call))
    if not isinstance(answer, LongPoll):
        return answer
    poll = replace(answer, key_id=principal.key_id)
    if not settings.STATEYARD_ACCEPT_ANY_KEY:
        permission = service.permission(name)
        poll = poll.checked(partial(_check_still_allowed, principal, permission, resources))
    return look_first(poll, answer.look)


def _check_still_allowed(
    principal: access.Principal, permission: str, resources: tuple[KeyedResource, ...]
) -> None:
    """Raise if the caller of a long poll has lost the right to its answer."""
    now = access.principal_of_key(principal.key_id)
    if now is None:
        raise ProtocolError(
            ErrorCode.UnrecognizedClientException,
            sigv4.UNKNOWN_KEY,
        )
    authorize(now, permission, resources)


def authorize(
    principal: access.Principal, permission: str, resources: Sequence[KeyedResource] = (UNNAMED,)
) -> None:
    """Raise ``AccessDeniedException`` unless the caller's role and key allow an action."""
    try:
        access.authorize(principal, permission, resources)
    except access.Denied as error:
        raise ServiceError(ErrorCode.AccessDeniedException, str(error)) from None


def identify_caller(
    service: services.ApiService,
    path: str,
    headers: Headers,
    body: bytes,
    must_sign: frozenset[str] = sigv4.MUST_SIGN,
    method: str = "POST",
    query: str = "",
    address: str = "",
) -> tuple[access.Principal, str]:
    """Return the caller and region of a signed request.

    ``path`` and ``query``: as they were sent. ``address``: the caller's.
    """
    if settings.STATEYARD_ACCEPT_ANY_KEY:
        return access.anonymous_principal(), (
            sigv4.claimed("region", headers) or settings.STATEYARD_REGION
        )
    signed = sigv4.verify_signature(
        headers,
        body,
        access.secret_for,
        _may_use,
        time.time(),
        (service.scope,),
        sigv4.RequestLine(method, path, query),
        must_sign,
    )
    principal = access.principal_of_ended_key(signed.key_id)
    if principal is None:
        raise ProtocolError(
            ErrorCode.UnrecognizedClientException,
            sigv4.UNKNOWN_KEY,
        )
    if access.has_ended(principal):
        raise ProtocolError(ErrorCode.ExpiredTokenException, sigv4.EXPIRED_KEY)
    people.note_use(signed.key_id, address, headers.get("user-agent", [""])[0])
    return principal, signed.region


def address_of(scope: Mapping[str, Any]) -> str:
    """Return the caller's address; uvicorn has replaced a trusted proxy's."""
    client = scope.get("client")
    return str(client[0]) if client else ""


def check_host(headers: Headers) -> None:
    """Raise ``ValidationException`` for a Host that is not this server's."""
    host = headers.get("host", [""])[0]
    if not _is_own_host(host, tuple(settings.ALLOWED_HOSTS)):
        raise ProtocolError(
            ErrorCode.ValidationException,
            f"Host: got {split_domain_port(host)[0]!r}, which is no name of this server",
        )


@lru_cache(maxsize=64)
def _is_own_host(host: str, own_names: tuple[str, ...]) -> bool:
    # SDKs put "sync-" before the host's name for StartSyncExecution
    return validate_host(split_domain_port(host)[0].removeprefix("sync-"), own_names)


def _check_request(
    service: services.ApiService, scope: dict[str, Any], headers: Headers, body: bytes
) -> None:
    check_host(headers)
    if sigv4.is_presigned(scope.get("query_string") or b""):
        raise ProtocolError(ErrorCode.UnknownOperationException, sigv4.PRESIGNED)
    binary = cbor.is_cbor(headers) and service.speaks_cbor
    if (scope["path"] != "/" and not binary) or scope.get("query_string"):
        raise ProtocolError(
            ErrorCode.UnknownOperationException, "AWS calls go to POST / without a query"
        )
    if headers.get("content-encoding"):
        raise ProtocolError(
            ErrorCode.SerializationException, "Content-Encoding: compressed bodies are not taken"
        )
    kind = cbor.CONTENT_TYPE if binary else service.content_type
    if not headers.get("content-type", [""])[0].startswith(kind):
        raise ProtocolError(ErrorCode.SerializationException, f"Content-Type: wanted {kind}")
    if len(body) > settings.STATEYARD_MAX_REQUEST_BYTES + 65_536:
        raise ProtocolError(
            ErrorCode.RequestEntityTooLargeException, "Request size exceeded the limit"
        )


def _may_use(key_id: str) -> bool:
    """Whether a key is usable or expired: the holder of an expired key gets its own error."""
    return access.principal_of_ended_key(key_id) is not None


def parse_params(headers: Headers, body: bytes) -> dict[str, Any]:
    """Parse a JSON or CBOR body to an object; raise ``SerializationException``."""
    params = cbor.loads(body or b"\xa0") if cbor.is_cbor(headers) else parse_json(body)
    if not isinstance(params, dict):
        raise ProtocolError(
            ErrorCode.SerializationException,
            f"the body: got {type(params).__name__}, wanted an object",
        )
    return params


def parse_json(body: bytes) -> Any:
    """Parse a JSON body; raise ``SerializationException``."""
    with contextlib.suppress(ValueError, RecursionError):
        return _decode(body or b"{}")
    # Python's own decoder is slower, and says where the text is wrong.
    try:
        params = json.loads(body.decode("utf-8") or "{}", parse_constant=_no_constant)
    except (ValueError, RecursionError) as error:
        raise ProtocolError(
            ErrorCode.SerializationException, f"the body is not JSON in UTF-8: {error}"
        ) from None
    if b"\\u" in body and engine.has_surrogate(json.dumps(params, ensure_ascii=False)):
        raise ProtocolError(
            ErrorCode.SerializationException, "the body: \\ud800 to \\udfff alone are no characters"
        )
    return params


def _no_constant(name: str) -> None:
    msg = f"{name} is not a JSON number"
    raise ValueError(msg)


# -- out -------------------------------------------------------------------------------------------


def _encode_json(answer: Any, shape: Any = None) -> bytes:
    del shape  # JSON has no separate type for times
    with contextlib.suppress(TypeError, ValueError):
        return _encode(answer)
    # msgspec refuses a lone surrogate (in an error's message) and subclasses of str.
    text = json.dumps(answer, ensure_ascii=False, separators=(",", ":"))
    return text.encode("utf-8", "surrogatepass")


def _answer_headers(kind: str, code: str, request_id: str) -> Iterator[tuple[bytes, bytes]]:
    yield b"content-type", kind.encode()
    if kind == cbor.CONTENT_TYPE:
        yield b"smithy-protocol", cbor.PROTOCOL.encode()
    yield b"x-amzn-requestid", request_id.encode()
    yield b"cache-control", b"no-store"
    if code:
        yield b"x-amzn-errortype", code.encode()


async def send_answer(
    send: Callable[[dict[str, Any]], Awaitable[None]],
    status: int,
    headers: list[tuple[bytes, bytes]],
    data: bytes,
) -> None:
    """Send a whole answer."""
    headers.append((b"content-length", str(len(data)).encode()))
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": data})
