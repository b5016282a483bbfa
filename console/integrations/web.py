"""``http:invoke`` and ``apigateway:invoke``: send an HTTP request and return the response.

Only configured origins are called (``targets.json``): ``"http": {"endpoints":
["https://api.example.com"], "connections": {ARN or name: {"type": "API_KEY", ...}}}`` and
``"apigateway": {"endpoint_url": ...}``, or ``{}`` there for AWS's own gateways.
"""

from __future__ import annotations

import re
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import botocore.session
from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials
from django.conf import settings

import engine
from console.integrations import connections, outbound, targets, web_parameters
from console.integrations.outcome import (
    Failed,
    Outcome,
    Succeeded,
    TaskAttempt,
    unusable_parameters,
)
from console.integrations.redaction import (
    redact,
    redact_json,
    without_secrets,
    without_url_secrets,
)
from console.integrations.web_parameters import BadRequestError, WebRequest

if TYPE_CHECKING:
    from collections.abc import Mapping

    from console.integrations.wire import Exchange

_LIMIT_S = 60.0
_GATEWAY = re.compile(r"[a-z0-9-]+\.execute-api\.[a-z0-9-]+\.amazonaws\.com(\.cn)?")
_MEDIA = re.compile(r"application/octet-stream|(?:image|video|audio)/.*", re.IGNORECASE)
"""Types of answers that an HTTP Task does not take. Source: "Unsupported HTTP Task responses"."""


class _UnreadableAnswerError(Exception):
    """The response is not text."""


@dataclass(frozen=True, slots=True)
class _WebAnswer:
    status: int
    reason: str
    headers: dict[str, list[str]]
    body: str


@dataclass(frozen=True, slots=True)
class _WebCall:
    """A request of a task with its ``connection``, None for API Gateway.

    ``added``: the headers of the connection; ``deadline``: on the monotonic clock.
    """

    task: TaskAttempt
    request: WebRequest
    connection: connections.HttpConnection | None
    added: Mapping[str, str]
    exchange: Exchange | None
    deadline: float


def call(task: TaskAttempt, exchange: Exchange | None = None) -> Outcome:
    """Send the state's request and return the response; ``exchange`` records both."""
    try:
        parameters = engine.loads(task.input)
        request = _read(task.service, parameters, task.machine)
        connection, added = None, {}
        if task.service == "http":
            arn = web_parameters.connection_arn(parameters)
            connection = connections.find_connection(arn, _entry("http", task.machine))
            added = connection.add_to(request)
        content = request.content()
    except (BadRequestError, UnicodeEncodeError) as error:
        return unusable_parameters(task, str(error))
    except connections.UnusableConnectionError as error:
        return Failed(error.error, str(error))
    if not _is_allowed(task.service, request.url, task.machine):
        cause = f"'{_place(request.url)}' is not among the endpoints of targets.json"
        return Failed("States.TaskFailed", cause)
    limit_s = min(task.timeout_s + outbound.GRACE_S, _LIMIT_S) if task.timeout_s else _LIMIT_S
    deadline = time.monotonic() + limit_s
    return _outcome(_WebCall(task, request, connection, added, exchange, deadline), content)


def post_request(
    url: str, body: bytes, headers: dict[str, str], limit_s: float, machine: targets.MachineKey
) -> int:
    """Post to a configured origin and return the response's status; its body is not read.

    ``machine``: whose endpoints count, a project's with no name.

    Raise ``BadRequestError`` for any other origin, and the errors of ``outbound.send_request``.
    """
    if not _is_allowed("http", url, machine):
        raise BadRequestError(f"'{_place(url)}' is not among the endpoints of targets.json")
    return outbound.send_request("POST", url, limit_s, content=body, headers=headers).status


def is_named_origin(url: str, machine: targets.MachineKey) -> bool:
    """Whether ``post_request`` would send to an address."""
    return _is_allowed("http", url, machine)


# -- what is sent ----------------------------------------------------------------------------------


def find_problem(service: str, parameters: Any) -> str:
    """Return why the parameters are invalid, "" if they are valid."""
    try:
        _read(service, parameters, targets.NOBODY).content()
    except (BadRequestError, UnicodeEncodeError) as error:
        return str(error)
    return ""


def _read(service: str, parameters: Any, machine: targets.MachineKey) -> WebRequest:
    endpoint = _entry("apigateway", machine).get("endpoint_url") or ""
    return web_parameters.read_request(service, parameters, endpoint)


def _entry(service: str, machine: targets.MachineKey) -> Mapping[str, Any]:
    """Return the settings entry for a kind of request; {} without one."""
    entry = targets.find_exact_entry(service, machine)
    return {} if entry is None else entry.target


def _is_allowed(service: str, url: str, machine: targets.MachineKey = targets.NOBODY) -> bool:
    """Whether the operator configured the origin of an address."""
    target = _entry(service, machine)
    if service == "apigateway":
        scheme, host = origin_of(url)
        own = bool(target.get("endpoint_url")) and (scheme, host) == origin_of(
            target["endpoint_url"]
        )
        aws = scheme == "https" and _GATEWAY.fullmatch(host) is not None
        return own or (targets.find_exact_entry("apigateway", machine) is not None and aws)
    origins = {origin_of(address) for address in target.get("endpoints", ())}
    return origin_of(url) in origins


def origin_of(url: str) -> tuple[str, str]:
    """Return scheme, host and port of a URL, as written.

    A URL with a user or a password before the host matches no configured origin.
    """
    parts = urlsplit(url)
    return parts.scheme, parts.netloc.lower()


def _place(url: str) -> str:
    """Return scheme and host of a URL for display, without user and password."""
    return "{0.scheme}://{0.netloc}".format(urlsplit(without_secrets(url)))


# -- what comes back -------------------------------------------------------------------------------


def _outcome(call: _WebCall, content: bytes | None) -> Outcome:
    """Send a request and return the task's outcome; a rejected token is renewed once.

    An endpoint may echo the request, so the connection's secrets are removed from the stored
    outcome.
    """
    service = call.task.service
    secrets = call.connection.secrets if call.connection else ()
    try:
        authorization = call.connection.authorize() if call.connection else None
        if authorization is not None:
            secrets += authorization.secrets
        answer = _send(call, content, authorization, secrets)
        if (
            call.connection is not None
            and authorization is not None
            and authorization.token is not None
            and answer.status in connections.UNAUTHORIZED
        ):
            call.connection.forget(authorization.token)
            if authorization.cached:
                authorization = call.connection.authorize()
                secrets += authorization.secrets
                answer = _send(call, content, authorization, secrets)
    except connections.UnusableConnectionError as error:
        return Failed(error.error, str(error))
    except _UnreadableAnswerError as error:
        return Failed("States.Runtime", str(error))
    except (outbound.CallError, ValueError) as error:
        name = "States.Http.Socket" if service == "http" else "ApiGateway.SdkClientException"
        # a header that cannot be sent is named with its value
        problem = without_url_secrets(redact(str(error), secrets))
        return Failed(name, f"Unable to execute HTTP request: {problem or type(error).__name__}")
    if call.exchange is not None and call.exchange.reveal:
        secrets = ()
    if not outbound.is_success(answer.status):
        prefix = "States.Http.StatusCode" if service == "http" else "ApiGateway"
        return Failed(f"{prefix}.{answer.status}", redact(answer.body, secrets))
    result = {
        "Headers": answer.headers,
        "ResponseBody": _parse_body(answer.body),
        "StatusCode": answer.status,
        "StatusText": answer.reason,
    }
    return Succeeded(engine.dumps(redact_json(result, secrets)))


def _send(
    call: _WebCall,
    content: bytes | None,
    authorization: connections.Authorization | None,
    secrets: tuple[str, ...],
) -> _WebAnswer:
    request, exchange = call.request, call.exchange
    by = dict(authorization.headers) if authorization else {}
    own = {
        name: value
        for name, value in request.headers.items()
        if name.lower() not in {header.lower() for header in by}
    }
    url = request.target
    headers = request.default_headers | own | by
    if request.signed:
        headers |= _signature(call, url, headers, content)
    if exchange is not None:
        exchange.secrets = secrets

    def record(sent: outbound.SentRequest) -> None:
        if exchange is not None:
            state_headers = {name: v for name, v in own.items() if name not in call.added}
            exchange.sent(sent, state_headers, {**call.added, **by})

    limit_s = max(call.deadline - time.monotonic(), 0.001)
    answer = outbound.send_request(
        request.method,
        url,
        limit_s,
        most=engine.MAX_BYTES,
        headers=headers,
        content=content,
        observe=record,
    )
    body = _text(call.task.service, answer)
    if exchange is not None:
        exchange.got(answer, body)
    answer_headers: dict[str, list[str]] = {}
    for name, value in answer.headers:
        answer_headers.setdefault(name, []).append(value)
    return _WebAnswer(answer.status, answer.reason, answer_headers, body)


def _signature(
    call: _WebCall, url: str, headers: Mapping[str, str], content: bytes | None
) -> dict[str, str]:
    """Return SigV4 headers for API Gateway; none without credentials.

    An emulator often asks for no signature, and is named without a key.
    """
    entry = _entry("apigateway", call.task.machine)
    key, secret = entry.get("access_key_id"), entry.get("secret_access_key")
    if entry.get("endpoint_url") and not key and not entry.get("profile"):
        return {}
    session = botocore.session.Session(profile=entry.get("profile"))
    credentials = Credentials(key, secret) if key and secret else session.get_credentials()
    if credentials is None:
        return {}
    region = entry.get("region") or call.task.region or settings.STATEYARD_REGION
    request = AWSRequest(call.request.method, url, dict(headers), content or b"")
    before = set(request.headers)
    SigV4Auth(credentials, "execute-api", region).add_auth(request)
    return {name: value for name, value in request.headers.items() if name not in before}


def _text(service: str, answer: outbound.HttpAnswer) -> str:
    """Return a body as text, by its charset or as UTF-8; raise ``_UnreadableAnswerError``.

    Python calls ``rot13`` and ``zip`` encodings, too, and ``unicode_escape`` makes half characters.
    """
    kind = answer.header("content-type").partition(";")[0].strip()
    if service == "http" and _MEDIA.fullmatch(kind):
        raise _UnreadableAnswerError(
            f"The answer has the content type '{kind}', which an HTTP Task does not support"
        )
    try:
        text = answer.body.decode(answer.charset)
        if not engine.has_surrogate(text):
            return text
    except (LookupError, UnicodeError):
        pass
    try:
        return answer.body.decode()
    except UnicodeDecodeError:
        raise _UnreadableAnswerError(
            f"The answer cannot be read as text, by its content type '{kind}' or as UTF-8"
        ) from None


def _parse_body(body: str) -> Any:
    """Return the value of a body in JSON, or the body."""
    try:
        return engine.loads(body)
    except engine.JsonTextError:
        return body
