"""``http:invoke`` and ``apigateway:invoke``: a request to a web address, its answer as the result.

Only origins that the operator named are called (``targets.json``): ``"http": {"endpoints":
["https://api.example.com"], "connections": {ARN or name: {"type": "API_KEY" | "BASIC", ...}}}`` and
``"apigateway": {"endpoint_url": ...}``, or ``{}`` there for AWS's own gateways.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, urlencode, urlsplit

import httpx
from django.conf import settings

import engine
from console.integrations import outbound, targets
from console.integrations.outcome import (
    Failed,
    Outcome,
    Succeeded,
    TaskAttempt,
    unusable_parameters,
)
from console.integrations.redaction import redact, without_secrets, without_url_secrets

if TYPE_CHECKING:
    from collections.abc import Mapping

    from console.integrations.wire import Exchange

_LIMIT_S = 60.0
_METHODS = ("GET", "POST", "PUT", "DELETE", "PATCH", "OPTIONS", "HEAD")
_FORBIDDEN = re.compile(
    r"a-im|accept-(charset|datetime|encoding)|authorization|cache-control|connection"
    r"|content-(encoding|md5)|date|expect|forwarded|from|host|http2-settings|if-.*|max-forwards"
    r"|origin|pragma|proxy-.*|referer|server|te|trailer|transfer-encoding|upgrade|via|warning"
    r"|www-authenticate|x-(forwarded|amz|amzn)-.*",
    re.IGNORECASE,
)


_GATEWAY = re.compile(r"[a-z0-9-]+\.execute-api\.[a-z0-9-]+\.amazonaws\.com(\.cn)?")


class BadRequestError(Exception):
    """The parameters are no request that can be sent."""


@dataclass(frozen=True)
class _Secret:
    """What a connection adds to a request. ``values``: what nobody is to see of it."""

    headers: dict[str, str] = field(default_factory=dict)
    values: tuple[str, ...] = ()


@dataclass
class _OutboundRequest:
    method: str
    url: str
    headers: dict[str, str]
    query: list[tuple[str, str]]
    body: Any = None
    form: bool = False
    secret: _Secret = field(default_factory=_Secret)


def call(task: TaskAttempt, exchange: Exchange | None = None) -> Outcome:
    """Send what the state says and return the answer; ``exchange`` gets what was sent and came."""
    try:
        request = _made(task)
    except BadRequestError as error:
        return unusable_parameters(task, str(error))
    if not _allowed(task.service, request.url, task.machine):
        cause = f"'{_place(request.url)}' is not among the endpoints of targets.json"
        return Failed("States.TaskFailed", cause)
    if exchange is not None:
        exchange.secrets = request.secret.values
    return _sent(task, request, exchange)


def post_request(
    url: str, body: bytes, headers: dict[str, str], limit_s: float, machine: targets.MachineKey
) -> int:
    """Post to a named origin and return the status of its answer, which is not read.

    ``machine``: whose endpoints count, a project's with no name.

    Raise ``BadRequestError`` for any other origin, and what httpx raises.
    """
    if not _allowed("http", url, machine):
        raise BadRequestError(f"'{_place(url)}' is not among the endpoints of targets.json")
    with outbound.stream_answer("POST", url, limit_s, content=body, headers=headers) as answer:
        return answer.status_code


def is_named_origin(url: str, machine: targets.MachineKey) -> bool:
    """Tell whether ``post_request`` would send to an address."""
    return _allowed("http", url, machine)


# -- what is sent ----------------------------------------------------------------------------------


def find_problem(service: str, given: Any) -> str:
    """Return why parameters are no request, "" if they are one."""
    try:
        _plain(service, given, targets.NOBODY)
    except BadRequestError as error:
        return str(error)
    return ""


def _made(task: TaskAttempt) -> _OutboundRequest:
    given = engine.loads(task.input)
    request = _plain(task.service, given, task.machine)
    if task.service == "http":
        request.secret = _secret(str(_connection(given)), task.machine)
    return request


def _plain(service: str, given: Any, machine: targets.MachineKey) -> _OutboundRequest:
    """Return the request as the state has it, without what a connection adds."""
    if not isinstance(given, dict):
        raise BadRequestError("The Parameters must be an object")
    return _http(given) if service == "http" else _gateway(given, machine)


def _connection(parameters: dict[str, Any]) -> Any:
    given = parameters.get("InvocationConfig", parameters.get("Authentication"))
    if not isinstance(given, dict) or "ConnectionArn" not in given:
        raise BadRequestError("The field 'ConnectionArn' is required but was missing")
    return given["ConnectionArn"]


def _http(parameters: dict[str, Any]) -> _OutboundRequest:
    """Source: "Call HTTPS APIs" of the documentation."""
    url = _wanted(parameters, "ApiEndpoint")
    _connection(parameters)
    request = _request(parameters, url)
    transform = parameters.get("Transform", {})
    if not isinstance(transform, dict):
        raise BadRequestError("The value of the field 'Transform' has an invalid format")
    request.form = transform.get("RequestBodyEncoding", "NONE") == "URL_ENCODED"
    request.headers.setdefault("Range", "bytes=0-262144")
    request.headers["User-Agent"] = f"Amazon|StepFunctions|HttpInvoke|{settings.STATEYARD_REGION}"
    return request


def _gateway(parameters: dict[str, Any], machine: targets.MachineKey) -> _OutboundRequest:
    host = _wanted(parameters, "ApiEndpoint")
    base = _connection_entry("apigateway", machine).get("endpoint_url") or f"https://{host}"
    parts = [str(parameters.get(name, "")).strip("/") for name in ("Stage", "Path")]
    path = "/".join(quote(part, safe="/%") for part in parts if part)
    return _request(parameters, f"{base.rstrip('/')}/{path}")


def _request(parameters: dict[str, Any], url: str) -> _OutboundRequest:
    method = _wanted(parameters, "Method")
    if method not in _METHODS:
        raise BadRequestError("The value of the field 'Method' has an invalid format")
    query = _pairs(parameters, "QueryParameters")
    headers = _pairs(parameters, "Headers")
    for name, _ in headers:
        if _FORBIDDEN.fullmatch(name):
            raise BadRequestError(f"The header '{name}' cannot be set")
    joined: dict[str, str] = {}
    for name, value in headers:
        joined[name] = f"{joined[name]}, {value}" if name in joined else value
    return _OutboundRequest(method, url, joined, query, parameters.get("RequestBody"))


def _pairs(parameters: dict[str, Any], name: str) -> list[tuple[str, str]]:
    """Return a map of texts, or of lists of texts, as pairs."""
    given = parameters.get(name, {})
    found = []
    for key, value in given.items() if isinstance(given, dict) else [("", given)]:
        values = value if isinstance(value, list) else [value]
        if not key or not all(isinstance(one, str | int | float) for one in values):
            raise BadRequestError(f"The value of the field '{name}' has an invalid format")
        found += [(key, one if isinstance(one, str) else engine.dumps(one)) for one in values]
    return found


def _wanted(parameters: dict[str, Any], name: str) -> str:
    value = parameters.get(name)
    if not isinstance(value, str) or not value:
        raise BadRequestError(f"The field '{name}' is required but was missing")
    return value


def _connection_entry(service: str, machine: targets.MachineKey) -> Mapping[str, Any]:
    """Return what the operator has said for a kind of request; nothing is empty."""
    found = targets.find_exact_entry(service, machine)
    return {} if found is None else found.target


def _secret(connection: str, machine: targets.MachineKey) -> _Secret:
    """Return what a connection adds, by its ARN or its name in it."""
    known = _connection_entry("http", machine).get("connections", {})
    name = connection.split("/")[1] if connection.count("/") else connection
    found = known.get(connection, known.get(name))
    if found is None:
        raise BadRequestError(f"The connection '{connection}' is not in targets.json")
    if found.get("type") == "BASIC":
        name, password = found["username"], found["password"]
        header = httpx.BasicAuth(name, password)._auth_header  # noqa: SLF001 - what it would send
        return _Secret({"Authorization": header}, (header, f"{name}:{password}", password))
    return _Secret({found.get("name", "Authorization"): found["value"]}, (found["value"],))


def _allowed(service: str, url: str, machine: targets.MachineKey = targets.NOBODY) -> bool:
    """Tell whether the operator named the origin of an address."""
    target = _connection_entry(service, machine)
    if service == "apigateway":
        scheme, host = origin_of(url)
        own = bool(target.get("endpoint_url")) and (scheme, host) == origin_of(
            target["endpoint_url"]
        )
        aws = scheme == "https" and _GATEWAY.fullmatch(host) is not None
        return own or (targets.find_exact_entry("apigateway", machine) is not None and aws)
    origins = {origin_of(one) for one in target.get("endpoints", ())}
    return origin_of(url) in origins


def origin_of(url: str) -> tuple[str, str]:
    """Return scheme and host with port, as they are written.

    Whoever writes a user or a password before the host is at no origin that anybody has named.
    """
    parts = urlsplit(url)
    return parts.scheme, parts.netloc.lower()


def _place(url: str) -> str:
    """Return scheme and host of an address, to be shown: without user and password."""
    return "{0.scheme}://{0.netloc}".format(urlsplit(without_secrets(url)))


# -- what comes back -------------------------------------------------------------------------------


def _sent(task: TaskAttempt, request: _OutboundRequest, exchange: Exchange | None) -> Outcome:
    content = {} if request.body is None else _content(request)
    headers = {**content.pop("headers", {}), **request.headers, **request.secret.headers}
    limit = min(task.timeout_s + outbound.GRACE_S, _LIMIT_S) if task.timeout_s else _LIMIT_S
    url = request.url
    if request.query:
        url += ("&" if "?" in url else "?") + urlencode(request.query)

    def told(made: httpx.Request) -> None:
        if exchange is not None:
            exchange.sent(made, request.headers, request.secret.headers)

    try:
        with outbound.stream_answer(
            request.method, url, limit, told=told, headers=headers, **content
        ) as answer:
            found = outbound.read_body(answer, engine.MAX_BYTES)
            body = _text(found, answer.encoding)
        if exchange is not None:
            exchange.got(answer, body)
    except (httpx.HTTPError, httpx.InvalidURL, ValueError) as error:
        name = "States.Http.Socket" if task.service == "http" else "ApiGateway.SdkClientException"
        # a header that cannot be sent is named with its value
        said = without_url_secrets(redact(str(error), request.secret.values))
        what = said or type(error).__name__
        return Failed(name, f"Unable to execute HTTP request: {what}")
    return _outcome(task, answer, body)


def _text(body: bytes, encoding: str | None) -> str:
    """Return a body as text, as UTF-8 where its charset is none.

    Python calls ``rot13`` and ``zip`` encodings, too, and ``unicode_escape`` makes half characters.
    """
    try:
        text = body.decode(encoding or "utf-8", "replace")
    except (LookupError, UnicodeError):
        text = ""
    return text if text and not engine.has_surrogate(text) else body.decode("utf-8", "replace")


def _content(request: _OutboundRequest) -> dict[str, Any]:
    """Return the body as httpx wants it: an object as JSON or form, a text as it is."""
    if request.form and isinstance(request.body, dict):
        return {"data": {name: _form(value) for name, value in request.body.items()}}
    text = request.body if isinstance(request.body, str) else engine.dumps(request.body)
    kind = {"Content-Type": "application/json"}
    return {"content": text.encode(), "headers": kind}


def _form(value: Any) -> Any:
    return value if isinstance(value, str) else engine.dumps(value)


def _outcome(task: TaskAttempt, answer: httpx.Response, body: str) -> Outcome:
    if not answer.is_success:
        prefix = "States.Http.StatusCode" if task.service == "http" else "ApiGateway"
        return Failed(f"{prefix}.{answer.status_code}", body)
    headers: dict[str, list[str]] = {}
    for name, value in answer.headers.multi_items():
        headers.setdefault(name, []).append(value)
    try:
        value = engine.loads(body)
    except engine.JsonTextError:
        value = body
    result = {
        "Headers": headers,
        "ResponseBody": value,
        "StatusCode": answer.status_code,
        "StatusText": answer.reason_phrase,
    }
    return Succeeded(engine.dumps(result))
