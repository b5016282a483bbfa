"""Authenticate and authorize calls of the server's own HTTP APIs (branches, pauses, settings).

A call is signed with SigV4 (service ``stateyard``) and an access key. Cookies are ignored, so no
other site can make a browser call.
"""

from __future__ import annotations

import json
from functools import wraps
from http import HTTPStatus
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from django.contrib.auth.decorators import login_not_required
from django.http import JsonResponse
from django.http.request import RawPostDataException
from django.views.decorators.csrf import csrf_exempt
from django.views.decorators.http import require_http_methods

import engine
from console.awsapi import asgi
from console.awsapi.services import ApiService
from console.config import logging_setup
from console.db import audit, refusals
from console.errors import ErrorCode, ProtocolError, ServiceError, ValidationException
from console.models.key_scope import UNNAMED

if TYPE_CHECKING:
    from collections.abc import Callable

    from django.http import HttpRequest, HttpResponse

    from console.access import Principal
    from console.models.key_scope import KeyedResource

    Body = dict[str, str]
    View = Callable[..., HttpResponse]

_SERVICE = ApiService("stateyard", "", "stateyard", "", {})
_LONGEST_NOTE = 1000
_SCALARS = {"dryRun", "hours", "since", "starts"}
"""Members whose JSON value may be a number or a boolean instead of a text."""
_MUST_SIGN = frozenset({"host", "x-amz-date"})  # method, path, query and body are always signed
_STATUS = {
    ErrorCode.ResourceNotFound: HTTPStatus.NOT_FOUND,
    ErrorCode.ExpiredTokenException: HTTPStatus.UNAUTHORIZED,
    ErrorCode.IncompleteSignatureException: HTTPStatus.UNAUTHORIZED,
    ErrorCode.InvalidSignatureException: HTTPStatus.UNAUTHORIZED,
    ErrorCode.MissingAuthenticationTokenException: HTTPStatus.UNAUTHORIZED,
    ErrorCode.UnrecognizedClientException: HTTPStatus.UNAUTHORIZED,
}


def signed_view(*methods: str) -> Callable[[View], View]:
    """Return a decorator for a function of request, principal, actor and path arguments.

    The view returns a ``ServiceError`` of the function as an error response. ``methods``: the
    accepted HTTP methods; others get a 405.
    """

    def make(act: View) -> View:
        @login_not_required  # the signature says who calls
        @csrf_exempt
        @require_http_methods(methods)
        @wraps(act)
        def view(request: HttpRequest, **parts: Any) -> HttpResponse:
            try:
                principal, actor = _identify(request)
                return act(request, principal, actor, **parts)
            except ServiceError as error:
                return _error_answer(error)

        return view

    return make


def _error_answer(error: ServiceError) -> JsonResponse:
    """Return the error response of a refused call."""
    body = {"__type": error.code, "message": error.message}
    return JsonResponse(body, status=_STATUS.get(error.code, error.status))


def _identify(request: HttpRequest) -> tuple[Principal, audit.Actor]:
    """Return the caller as principal and as audit actor; raise signature errors."""
    principal, _ = asgi.identify_caller(
        _SERVICE,
        quote(request.path, safe="/~"),
        {name.lower(): [value] for name, value in request.headers.items()},
        _raw_body(request),
        _MUST_SIGN,
        request.method or "",
        request.META.get("QUERY_STRING", ""),
        request.META.get("REMOTE_ADDR", ""),
    )
    name = principal.user.get_username()
    return principal, audit.Actor(name, principal.key_id, logging_setup.request_id())


def _raw_body(request: HttpRequest) -> bytes:
    """Return the body; raise SerializationException for a multipart form, already read."""
    try:
        return request.body
    except RawPostDataException:
        raise ProtocolError(
            ErrorCode.SerializationException, "the body is a multipart form, expected JSON"
        ) from None


def authorize(
    principal: Principal,
    actor: audit.Actor,
    action: str,
    path: str,
    resource: KeyedResource = UNNAMED,
) -> None:
    """Raise AccessDeniedException unless role and key allow an action; audit the refusal.

    ``resource``: the ARNs on which the action is performed, for keys that are limited to state
    machines.
    """
    try:
        asgi.authorize(principal, action, (resource,))
    except ServiceError:
        refusals.record_refused(principal.project, actor, action, path)
        raise


def read_body(request: HttpRequest, required: str = "", optional: tuple[str, ...] = ()) -> Body:
    """Return the members of a JSON object as texts.

    ``required``: the member without which a call is refused; "" for none. A number or boolean of
    ``_SCALARS`` is returned as its JSON text. Raise ValidationException for a member with another
    name or type, SerializationException for another body.
    """
    members = (required, *optional) if required else optional
    try:
        body = json.loads(request.body or b"{}", object_pairs_hook=engine.unique_members)
    except engine.JsonTextError as error:
        raise ProtocolError(ErrorCode.SerializationException, f"the body: {error}") from None
    except ValueError as error:
        raise ProtocolError(
            ErrorCode.SerializationException, f"the body is not JSON in UTF-8: {error}"
        ) from None
    if not isinstance(body, dict):
        raise ProtocolError(
            ErrorCode.SerializationException,
            f"the body must be a JSON object, not {type(body).__name__}",
        )
    for name, value in body.items():
        if name not in members:
            allowed = ", ".join(members) or "none"
            raise ValidationException(
                f"{name[:80]}: there is no such member; the members: {allowed}"
            )
        if name in _SCALARS and isinstance(value, int | float):
            body[name] = json.dumps(value)
        elif not isinstance(value, str):
            raise ValidationException(f"{name} must be a text, not {type(value).__name__}")
    if required and not body.get(required):
        raise ValidationException(f"{required}: it is required")
    return body


def read_choice(body: Body, member: str, choices: tuple[str, ...]) -> str:
    """Return a member that is one of some choices; the first choice if absent."""
    value = body.get(member, choices[0])
    if value not in choices:
        raise ValidationException(f"{member}: got {value[:80]!r}, wanted {' or '.join(choices)}")
    return value


def read_note(body: Body) -> str:
    """Return the note of a call."""
    note = body.get("note", "")
    if len(note) > _LONGEST_NOTE:
        raise ValidationException(
            f"note: got {len(note)} characters, wanted at most {_LONGEST_NOTE}"
        )
    return note


def read_dry_run(body: Body) -> bool:
    """Return whether a call is a dry run."""
    return read_choice(body, "dryRun", ("false", "true")) == "true"
