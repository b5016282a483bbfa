"""Turn the Parameters of ``http:invoke`` and ``apigateway:invoke`` into an HTTP request.

Sources: "Call HTTPS APIs in Step Functions workflows" and "Create API Gateway REST APIs with Step
Functions" of the documentation.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, urlencode

from botocore.model import ShapeResolver
from django.conf import settings

import engine
from console.config import http_headers
from console.integrations import shapes
from console.integrations.sdk_names import capitalized_name

if TYPE_CHECKING:
    from collections.abc import Iterator

_METHODS = ("GET", "POST", "PUT", "DELETE", "PATCH", "OPTIONS", "HEAD")
_ENCODINGS = ("NONE", "URL_ENCODED")
_AUTH_TYPES = ("NO_AUTH", "IAM_ROLE", "RESOURCE_POLICY")
_ARRAY_FORMATS = ("INDICES", "REPEAT", "COMMAS", "BRACKETS")
_FORBIDDEN = {
    "http": re.compile(
        r"a-im|accept-(charset|datetime|encoding)|authorization|cache-control|connection"
        r"|content-(encoding|md5)|date|expect|forwarded|from|host|http2-settings"
        r"|if-(match|modified-since|none-match|range|unmodified-since)|max-forwards|origin|pragma"
        r"|proxy-authorization|referer|server|te|trailer|transfer-encoding|upgrade|via|warning"
        rf"|x-(forwarded|amz|amzn)-.*|{http_headers.FRAMING}",
        re.IGNORECASE,
    ),
    "apigateway": re.compile(
        r"authorization|connection|content-md5|expect|host|max-forwards|proxy-authenticate|server"
        r"|te|transfer-encoding|trailer|upgrade|via|www-authenticate"
        rf"|x-(forwarded|amz|amzn).*|{http_headers.FRAMING}",
        re.IGNORECASE,
    ),
}
_TEXT, _JSON = {"shape": "Text"}, {"shape": "Json"}
_REQUEST = {
    "ApiEndpoint": _TEXT,
    "Method": _TEXT,
    "Headers": _JSON,
    "QueryParameters": _JSON,
    "RequestBody": _JSON,
}


def _structure(members: dict[str, Any], *required: str) -> dict[str, Any]:
    return {"type": "structure", "members": members, "required": list(required)}


_SHAPES = ShapeResolver(
    {
        "Text": {"type": "string"},
        "Flag": {"type": "boolean"},
        "Json": {"type": "structure", "members": {}, "document": True},
        "Connection": _structure({"ConnectionArn": _TEXT}, "ConnectionArn"),
        "Options": _structure({"ArrayFormat": _TEXT}),
        "Transform": _structure(
            {"RequestBodyEncoding": _TEXT, "RequestEncodingOptions": {"shape": "Options"}}
        ),
        "http": _structure(
            {
                **_REQUEST,
                "Authentication": {"shape": "Connection"},
                "InvocationConfig": {"shape": "Connection"},
                "Transform": {"shape": "Transform"},
            },
            *("ApiEndpoint", "Method"),
        ),
        "apigateway": _structure(
            {
                **_REQUEST,
                "Stage": _TEXT,
                "Path": _TEXT,
                "AllowNullValues": {"shape": "Flag"},
                "AuthType": _TEXT,
            },
            *("ApiEndpoint", "Method"),
        ),
    }
)


class BadRequestError(Exception):
    """The parameters do not describe a valid HTTP request."""


@dataclass
class WebRequest:
    """An HTTP request, built from the parameters of a state.

    ``query``: name -> values. ``body``: a JSON value, None for no body. ``form``: the
    ``ArrayFormat`` of a form-encoded body, "" for a JSON body. ``signed``: whether the request is
    signed with AWS credentials (Signature Version 4).
    """

    method: str
    url: str
    headers: dict[str, str]
    query: dict[str, list[str]]
    body: Any = None
    form: str = ""
    signed: bool = False

    @property
    def target(self) -> str:
        """Return the URL with its query string."""
        pairs = [(name, text) for name, texts in self.query.items() for text in texts]
        if not pairs:
            return self.url
        return self.url + ("&" if "?" in self.url else "?") + urlencode(pairs, quote_via=quote)

    def set_header(self, name: str, value: str) -> None:
        """Set a header. An existing header of the same name, in any case, is replaced."""
        for own in [own for own in self.headers if own.lower() == name.lower()]:
            del self.headers[own]
        self.headers[name] = value

    @property
    def default_headers(self) -> dict[str, str]:
        """Return a ``Content-Type`` header for the body; {} without a body or if it is set."""
        if self.body is None or any(name.lower() == "content-type" for name in self.headers):
            return {}
        return {
            "Content-Type": "application/x-www-form-urlencoded" if self.form else "application/json"
        }

    def content(self) -> bytes | None:
        """Return the encoded body, None for no body; raise ``BadRequestError``."""
        if self.body is None:
            return None
        if isinstance(self.body, str):
            return self.body.encode()
        return (
            encode_form(self.body, self.form) if self.form else engine.dumps(self.body)
        ).encode()


# -- the check of a definition ---------------------------------------------------------------------


def unknown_names(service: str, template: Any) -> list[str]:
    """Return the keys of a Parameters or Arguments template that the service does not have."""
    return list(
        shapes.unknown_names(_SHAPES.get_shape_by_name(service), template, capitalized_name)
    )


def find_wrong_values(service: str, template: Any) -> list[str]:
    """Return a message for each invalid enum value of a template. Expressions are skipped."""
    top = template if isinstance(template, dict) else {}
    checks: list[tuple[dict[str, Any], str, tuple[str, ...]]] = [(top, "AuthType", _AUTH_TYPES)]
    if service == "http":
        transform = _member(top, "Transform")
        options = _member(transform, "RequestEncodingOptions")
        checks = [
            (transform, "RequestBodyEncoding", _ENCODINGS),
            (options, "ArrayFormat", _ARRAY_FORMATS),
        ]
    return [
        f"The value for the field '{name}' must be one of [{', '.join(values)}], "
        f"got {engine.dumps(holder[name])}"
        for holder, name, values in checks
        if holder.get(name) is not None
        and holder[name] not in values
        and not str(holder[name]).startswith("{%")
    ]


def _member(holder: dict[str, Any], name: str) -> dict[str, Any]:
    value = holder.get(name)
    return value if isinstance(value, dict) else {}


# -- the request -----------------------------------------------------------------------------------


def read_request(service: str, parameters: Any, endpoint: str = "") -> WebRequest:
    """Return the HTTP request of parameters; raise ``BadRequestError``.

    ``service``: ``http`` or ``apigateway``. ``endpoint``: base URL for calls of API Gateway that
    the operator set, "" for the ``ApiEndpoint`` of the parameters.
    """
    problems = shapes.find_problems(_SHAPES.get_shape_by_name(service), parameters)
    problems = problems or find_wrong_values(service, parameters)
    if problems:
        raise BadRequestError(", ".join(problems))
    return _http(parameters) if service == "http" else _gateway(parameters, endpoint)


def connection_arn(parameters: dict[str, Any]) -> str:
    """Return the ARN of the connection of an HTTP Task; raise ``BadRequestError``."""
    config = parameters.get("InvocationConfig", parameters.get("Authentication")) or {}
    if not isinstance(config.get("ConnectionArn"), str):
        raise BadRequestError("The field 'ConnectionArn' is required but was missing")
    return str(config["ConnectionArn"])


def _http(parameters: dict[str, Any]) -> WebRequest:
    connection_arn(parameters)
    request = _request("http", parameters, _required_text(parameters, "ApiEndpoint"))
    transform = parameters.get("Transform") or {}
    if transform.get("RequestBodyEncoding") == "URL_ENCODED":
        options = transform.get("RequestEncodingOptions") or {}
        request.form = options.get("ArrayFormat") or "INDICES"
    request.headers = {
        name: value for name, value in request.headers.items() if name.lower() != "user-agent"
    }
    if not any(name.lower() == "range" for name in request.headers):
        request.headers["Range"] = "bytes=0-262144"  # as on AWS: 256 KiB and a byte
    request.headers["User-Agent"] = f"Amazon|StepFunctions|HttpInvoke|{settings.STATEYARD_REGION}"
    return request


def _gateway(parameters: dict[str, Any], endpoint: str) -> WebRequest:
    host = _required_text(parameters, "ApiEndpoint")
    base = endpoint or f"https://{host}"
    parts = [str(parameters.get(name) or "").strip("/") for name in ("Stage", "Path")]
    path = "/".join(quote(part, safe="/%") for part in parts if part)
    request = _request("apigateway", parameters, f"{base.rstrip('/')}/{path}")
    if not parameters.get("AllowNullValues"):
        request.body = _without_nulls(request.body)
    request.signed = (parameters.get("AuthType") or "NO_AUTH") != "NO_AUTH"
    return request


def _without_nulls(value: Any) -> Any:
    """Return a body without null members. ``AllowNullValues`` keeps them."""
    if isinstance(value, dict):
        return {
            name: _without_nulls(member) for name, member in value.items() if member is not None
        }
    return [_without_nulls(item) for item in value] if isinstance(value, list) else value


def _request(service: str, parameters: dict[str, Any], url: str) -> WebRequest:
    method = _required_text(parameters, "Method")
    if method not in _METHODS:
        raise BadRequestError("The value of the field 'Method' has an invalid format")
    headers: dict[str, str] = {}
    names: dict[str, str] = {}
    for name, texts in _texts(parameters, "Headers").items():
        if _FORBIDDEN[service].fullmatch(name):
            raise BadRequestError(f"The header '{name}' cannot be set")
        if not http_headers.is_header(name, *texts):
            raise BadRequestError("The value of the field 'Headers' has an invalid format")
        spelling = names.setdefault(name.lower(), name)
        headers[spelling] = ", ".join(
            [*([headers[spelling]] if spelling in headers else []), *texts]
        )
    query = _texts(parameters, "QueryParameters")
    return WebRequest(method, url, headers, query, parameters.get("RequestBody"))


def _texts(parameters: dict[str, Any], field: str) -> dict[str, list[str]]:
    """Return a field as name -> texts; its values are single texts or lists of texts."""
    value = parameters.get(field)
    items = value.items() if isinstance(value, dict) else [] if value is None else [("", value)]
    texts = {}
    for key, entry in items:
        entries = entry if isinstance(entry, list) else [entry]
        if not key or not all(isinstance(text, str | int | float) for text in entries):
            raise BadRequestError(f"The value of the field '{field}' has an invalid format")
        texts[key] = [text if isinstance(text, str) else engine.dumps(text) for text in entries]
    return texts


def _required_text(parameters: dict[str, Any], name: str) -> str:
    value = parameters.get(name)
    if not isinstance(value, str) or not value:
        raise BadRequestError(f"The field '{name}' is required but was missing")
    return value


# -- forms -----------------------------------------------------------------------------------------


def encode_form(body: Any, arrays: str) -> str:
    """Return an object form-encoded, with ``%20`` for blanks; raise ``BadRequestError``.

    ``arrays``: an ``ArrayFormat``. A member of a nested object is written ``m[k]=v``.
    """
    if not isinstance(body, dict):
        raise BadRequestError("The value for the field 'RequestBody' must be an OBJECT for a form")
    pairs = [pair for name, value in body.items() for pair in _pairs(name, value, arrays)]
    return urlencode(pairs, quote_via=quote, safe="")


def _pairs(name: str, value: Any, arrays: str) -> Iterator[tuple[str, str]]:
    if isinstance(value, dict):
        for key, member in value.items():
            yield from _pairs(f"{name}[{key}]", member, arrays)
    elif isinstance(value, list) and arrays == "COMMAS":
        if any(isinstance(item, dict | list) for item in value):
            raise BadRequestError(
                f"ArrayFormat COMMAS: the array '{name}' of the RequestBody has an array or an "
                "object in it"
            )
        if value:
            yield name, ",".join(map(_form_text, value))
    elif isinstance(value, list):
        suffix = {"INDICES": "[{}]", "BRACKETS": "[]", "REPEAT": ""}[arrays]
        for index, item in enumerate(value):
            yield from _pairs(name + suffix.format(index), item, arrays)
    else:
        yield name, _form_text(value)


def _form_text(value: Any) -> str:
    if value is None:
        return ""
    return value if isinstance(value, str) else engine.dumps(value)
