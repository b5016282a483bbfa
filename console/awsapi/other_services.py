"""Answer calls of services whose protocol is not AWS JSON.

Calls of EventBridge Scheduler are passed to ``rest_json``. GetCallerIdentity of STS is answered.
All other actions are unknown. They get an error in the format of their protocol, the only one that
their SDK can parse: XML for the query protocol (STS, IAM, CloudFormation), for EC2 and for S3, else
JSON.

Calls of SDKs without a signature in their headers (unsigned, presigned, or with a bearer token) are
handled here, too, and always refused.
"""

from __future__ import annotations

import json
import re
import uuid
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, cast
from urllib.parse import parse_qsl, unquote
from xml.sax.saxutils import escape

import structlog

from console.awsapi import asgi, services, sigv4
from console.awsapi.operations.call import Call
from console.awsapi.rest_json import rest_json_application
from console.db.audit import Actor
from console.db.writer import drop_broken_connection, settled
from console.errors import ErrorCode, ProtocolError, ServiceError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from console.awsapi.asgi import Headers

log = structlog.get_logger(__name__)
_FORM = "application/x-www-form-urlencoded"
_XML = "text/xml"
_MOST_FIELDS = 100
_OF_THE_PROTOCOL = ("Action", "Version")
_SDK_HEADERS = {b"amz-sdk-invocation-id", b"amz-sdk-request", b"x-amz-date"}
_CREDENTIAL = re.compile(r"X-Amz-Credential=[^&]*/([a-z0-9-]+)/aws4_request")
_PRODUCT = re.compile(r"\bapi/([A-Za-z0-9-]{1,40})#")  # as in "aws-sdk-js/3.900.0 api/s3#3.900.0"
_ACTION = re.compile(r"\w{1,128}", re.ASCII)
_VERSION = re.compile(r"\d{4}-\d\d-\d\d", re.ASCII)
_XML_OVER_REST = {"cloudfront", "route53", "s3", "s3-object-lambda", "s3-outposts", "s3express"}
"""Services with XML errors and the action in the path, by their name in a signature."""
_QUERY_CODES = {
    ErrorCode.AccessDeniedException: ("AccessDenied", 403),
    ErrorCode.IncompleteSignatureException: ("IncompleteSignature", 400),
    ErrorCode.InvalidSignatureException: ("SignatureDoesNotMatch", 403),
    ErrorCode.MissingAuthenticationTokenException: ("MissingAuthenticationToken", 403),
    ErrorCode.UnknownOperationException: ("InvalidAction", 400),
    ErrorCode.UnrecognizedClientException: ("InvalidClientTokenId", 403),
    ErrorCode.ValidationException: ("ValidationError", 400),
}
"""Error code -> (code, HTTP status) in the query protocol, for codes that differ there.

Source: AWS Security Token Service API Reference, "Common Errors".
"""


@dataclass(frozen=True, slots=True)
class ForeignCall:
    """A call of another service.

    ``service``: its name in the signature, else one derived from the URL or the user agent, else
    "". ``fields``: the form fields of the body, {} if the body is not a form. ``is_query``: the
    body is declared as a form, which only the query protocol and EC2 use.
    """

    service: str
    fields: dict[str, str]
    request_id: str
    is_query: bool

    @property
    def action(self) -> str:
        """Return the field ``Action`` of the form, "" if it is missing or malformed."""
        action = self.fields.get("Action", "")
        return action if _ACTION.fullmatch(action) else ""

    @property
    def namespace(self) -> str:
        """Return the XML namespace of an answer."""
        version = self.fields.get("Version", "")
        shown_version = version if _VERSION.fullmatch(version) else "latest"
        return f"https://{self.service or 'aws'}.amazonaws.com/doc/{shown_version}/"


def is_aws_call(scope: dict[str, Any]) -> bool:
    """Return whether a request has headers or a query string that only AWS SDKs send."""
    signed = any(
        name in _SDK_HEADERS or (name == b"authorization" and value.startswith(b"AWS"))
        for name, value in scope["headers"]
    )
    return signed or sigv4.is_presigned(scope.get("query_string") or b"")


def _service_of(scope: dict[str, Any], headers: Headers) -> str:
    """Return the service of a call, from its signature, URL or user agent; "" if unknown."""
    query = (scope.get("query_string") or b"").decode("latin-1")
    credential = _CREDENTIAL.search(unquote(query))
    product = _PRODUCT.search(" ".join(headers.get("user-agent", [])))
    return (
        sigv4.claimed("service", headers)
        or (credential[1] if credential else "")
        or ("s3" if "AWSAccessKeyId=" in query else "")  # presigned the older way, S3 only
        or (product[1].lower() if product else "")
    )


async def other_services_application(
    scope: dict[str, Any],
    receive: Callable[[], Awaitable[dict[str, Any]]],
    send: Callable[[dict[str, Any]], Awaitable[None]],
) -> None:
    """Answer one call of a service that does not speak AWS JSON."""
    request_id = str(uuid.uuid4())
    headers = asgi.collect_headers(scope)
    if sigv4.claimed("service", headers) == services.SCHEDULER.scope:
        await rest_json_application(services.SCHEDULER, scope, receive, send)
        return
    service = _service_of(scope, headers)
    is_query = headers.get("content-type", [""])[0].startswith(_FORM)
    call = ForeignCall(service, {}, request_id, is_query)
    try:
        asgi.refuse_overload()
        body = await asgi.read_body(receive, headers)
        call = ForeignCall(call.service, _parse_form(body, is_query), request_id, is_query)
        result = await asgi.run_call(partial(_answer_call, scope, headers, body, call))
        status, kind, data = 200, _XML, _result_as_xml(call, result)
    except ServiceError as error:
        status, kind, data = _error_answer(call, error)
    except Exception as error:  # noqa: BLE001 - failure_of logs it
        status, kind, data = _error_answer(call, asgi.failure_of(error, request_id))
    answer_headers = [
        (b"content-type", kind.encode()),
        (b"x-amzn-requestid", request_id.encode()),
        (b"cache-control", b"no-store"),
    ]
    await asgi.send_answer(send, status, answer_headers, data)


def _parse_form(body: bytes, is_query: bool) -> dict[str, str]:
    """Return the fields of a form, {} for any other body."""
    if not is_query:
        return {}
    try:
        return dict(parse_qsl(body.decode(), keep_blank_values=True, max_num_fields=_MOST_FIELDS))
    except ValueError:
        return {}


def _answer_call(
    scope: dict[str, Any], headers: Headers, body: bytes, call: ForeignCall
) -> dict[str, Any]:
    """Return the members of the response (on a pool thread); raise ``ServiceError``."""
    service = services.STS
    signed = sigv4.claimed("service", headers) == service.scope
    handler = service.handlers.get(call.action) if signed else None
    if handler is None or scope["method"] != "POST" or scope["path"] != "/":
        presigned = sigv4.is_presigned(scope.get("query_string") or b"")
        own = call.service in {*services.SCOPES, services.STS.scope}
        text = sigv4.PRESIGNED if presigned and own else _unknown_text(call)
        raise ProtocolError(ErrorCode.UnknownOperationException, text)
    asgi.check_host(headers)
    drop_broken_connection()
    must_sign = sigv4.MUST_SIGN - {"x-amz-target"}  # the body names the action
    principal, region = asgi.identify_caller(
        service, "/", headers, body, must_sign, address=asgi.address_of(scope)
    )
    asgi.authorize(principal, service.permission(call.action))
    members = {name: text for name, text in call.fields.items() if name not in _OF_THE_PROTOCOL}
    service.check_members(call.action, members)
    actor = Actor(principal.user.get_username(), principal.key_id, call.request_id)
    answer = settled(handler(Call(call.action, call.fields, principal, region, actor)))
    return cast("dict[str, Any]", answer)


def _unknown_text(call: ForeignCall) -> str:
    operation_text = f"operation {call.action} of " if call.action else ""
    if not call.service:
        return f"Could not find {operation_text}the service: the call does not name it"
    return (
        f"Could not find {operation_text}the service {call.service!r}: this server does not have it"
    )


# -- responses -------------------------------------------------------------------------------------


def _result_as_xml(call: ForeignCall, result: dict[str, Any]) -> bytes:
    members = "".join(f"<{name}>{escape(text)}</{name}>" for name, text in result.items())
    text = (
        f'<{call.action}Response xmlns="{call.namespace}">'
        f"<{call.action}Result>{members}</{call.action}Result>"
        f"<ResponseMetadata><RequestId>{call.request_id}</RequestId></ResponseMetadata>"
        f"</{call.action}Response>"
    )
    return text.encode()


def _error_answer(call: ForeignCall, error: ServiceError) -> tuple[int, str, bytes]:
    """Return HTTP status, media type and body of an error, in the format of the protocol."""
    message = escape(error.message)
    if call.is_query:
        code, status = _QUERY_CODES.get(error.code, (error.code.value, error.status))
        return status, _XML, _query_error(call, code, message).encode()
    code = error.code.value.removesuffix("Exception")
    if call.service in _XML_OVER_REST:
        inner = f"<Code>{code}</Code><Message>{message}</Message>"
        request_id = f"<RequestId>{call.request_id}</RequestId>"
        text = f"<Error>{inner}{request_id}</Error>"
        if not call.service.startswith("s3"):
            text = f"<ErrorResponse><Error>{inner}</Error>{request_id}</ErrorResponse>"
        return error.status, _XML, text.encode()
    members = {"__type": error.code, "message": error.message}
    return error.status, "application/json", json.dumps(members).encode()


def _query_error(call: ForeignCall, code: str, message: str) -> str:
    inner = f"<Code>{code}</Code><Message>{message}</Message>"
    if call.service == "ec2":
        errors = f"<Errors><Error>{inner}</Error></Errors>"
        return f"<Response>{errors}<RequestID>{call.request_id}</RequestID></Response>"
    return (
        f'<ErrorResponse xmlns="{call.namespace}"><Error><Type>Sender</Type>{inner}</Error>'
        f"<RequestId>{call.request_id}</RequestId></ErrorResponse>"
    )
