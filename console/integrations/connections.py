"""Apply an EventBridge connection to the request of an HTTP Task: credentials and parameters.

A connection is an entry under ``"http": {"connections": {...}}`` of ``targets.json``
(``setting_shapes.ConnectionShape``). Its headers, query parameters and body members override those
of the state. Source: "Merging EventBridge connection and HTTP Task definition data" of the
documentation.
"""

from __future__ import annotations

import json
import threading
import time
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, urlencode, urlsplit

import engine
from console.integrations import outbound
from console.integrations.redaction import redact, without_url_secrets
from console.integrations.web_parameters import BadRequestError, WebRequest

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_TOKEN_LIMIT_S = 30.0
_EXPIRES_SOON_S = 60.0
"""EventBridge renews a token before its use if it expires within this time."""
_LIFETIME_S = 3600.0
"""The lifetime of a token whose server does not state it."""
_MOST_TOKENS = 256
UNAUTHORIZED = (401, 407)
"""EventBridge: statuses after which the token is renewed."""


class UnusableConnectionError(Exception):
    """A connection cannot be used. ``error``: the error name of the task."""

    def __init__(self, error: str, cause: str) -> None:
        """``error``: as in ``Events.ConnectionResource.ResourceNotFound``, without the prefix."""
        super().__init__(cause)
        self.error = f"Events.ConnectionResource.{error}"


@dataclass(frozen=True, slots=True)
class Authorization:
    """The headers that authorize a request, and the ``secrets`` in them.

    ``token``: the OAuth token among them; ``cached``: an earlier request had it, too.
    """

    headers: Mapping[str, str]
    secrets: tuple[str, ...]
    token: _Token | None = None
    cached: bool = False


@dataclass(frozen=True, slots=True)
class HttpConnection:
    """A connection of ``targets.json``."""

    name: str
    entry: Mapping[str, Any]

    def add_to(self, request: WebRequest) -> dict[str, str]:
        """Add the connection's parameters to a request, over those of the state.

        Return the headers among them; raise ``BadRequestError``.
        """
        added = self.entry.get("InvocationHttpParameters") or {}
        headers = {name: ", ".join(v) for name, v in _texts(added, "HeaderParameters").items()}
        for name, value in headers.items():
            request.set_header(name, value)
        request.query |= _texts(added, "QueryStringParameters")
        body = {entry["Key"]: entry["Value"] for entry in added.get("BodyParameters", ())}
        if body and not isinstance(request.body, dict | None):
            raise BadRequestError(
                "The RequestBody is no object, so the body parameters of the connection cannot be "
                "merged with it"
            )
        if body:
            request.body = {**(request.body or {}), **body}
        return headers

    @property
    def secrets(self) -> tuple[str, ...]:
        """Return the secret values of the entry, without the result of ``authorize``."""
        oauth = self.entry.get("OAuthParameters") or {}
        holders = self.entry.get("InvocationHttpParameters"), oauth.get("OAuthHttpParameters")
        marked = [
            parameter["Value"]
            for holder in holders
            for parameters in (holder or {}).values()
            for parameter in parameters
            if parameter.get("IsValueSecret")
        ]
        return (*marked, *([oauth["ClientParameters"]["ClientSecret"]] if oauth else ()))

    def authorize(self) -> Authorization:
        """Return the authorization of a request; raise ``UnusableConnectionError``.

        A connection of OAuth asks its server for a token, unless there is one that lasts.
        """
        kind = self.entry.get("type")
        if kind == "BASIC":
            name, password = self.entry["username"], self.entry["password"]
            header = outbound.basic_authorization(name, password)
            return Authorization(
                {"Authorization": header}, (header, f"{name}:{password}", password)
            )
        if kind == "OAUTH_CLIENT_CREDENTIALS":
            token, cached = _tokens.get(self)
            return Authorization(
                {"Authorization": token.header}, (token.header, token.text), token, cached
            )
        value = self.entry["value"]
        return Authorization({self.entry.get("name", "Authorization"): value}, (value,))

    def forget(self, token: _Token) -> None:
        """Drop the cached token."""
        _tokens.remove(self, token)


def find_connection(arn: str, entry: Mapping[str, Any]) -> HttpConnection:
    """Return a connection, by its ARN or its name in it; raise ``UnusableConnectionError``."""
    connections = entry.get("connections", {})
    name = arn.split("/")[1] if "/" in arn else arn
    connection = connections.get(arn, connections.get(name))
    if connection is None:
        raise UnusableConnectionError(
            "ResourceNotFound",
            f"Connection '{arn}' does not exist: it is not among the connections of \"http\" in "
            "targets.json",
        )
    return HttpConnection(name, connection)


def _texts(parameters: Mapping[str, Any], name: str) -> dict[str, list[str]]:
    texts: dict[str, list[str]] = {}
    for entry in parameters.get(name, ()):
        texts.setdefault(entry["Key"], []).append(entry["Value"])
    return texts


# -- OAuth -----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, eq=False)
class _Token:
    text: str
    expires: float
    """The time of expiry on the monotonic clock, in seconds."""

    @property
    def header(self) -> str:
        """Return the value of the Authorization header."""
        return f"Bearer {self.text}"


@dataclass(slots=True)
class _TokenCache:
    """Token cache of this process. Requests for the same token share one fetch."""

    guard: threading.Lock = field(default_factory=threading.Lock)
    futures: dict[str, Future[_Token]] = field(default_factory=dict)

    def get(self, connection: HttpConnection) -> tuple[_Token, bool]:
        """Return the token of a connection, and whether it came from the cache."""
        key = _cache_key(connection)
        with self.guard:
            future = self.futures.get(key)
            cached = future is not None and not _is_over(future)
            if future is None or not cached:
                if len(self.futures) >= _MOST_TOKENS:
                    self.futures.clear()
                future = self.futures[key] = Future()
        if cached:
            return future.result(_TOKEN_LIMIT_S + outbound.GRACE_S), True
        try:
            future.set_result(_request_token(connection))
        except BaseException as error:
            with self.guard:
                if self.futures.get(key) is future:
                    del self.futures[key]
            future.set_exception(error)
            raise
        return future.result(), False

    def remove(self, connection: HttpConnection, token: _Token) -> None:
        """Drop a token, unless a newer one has replaced it."""
        key = _cache_key(connection)
        with self.guard:
            future = self.futures.get(key)
            if future is not None and future.done() and future.result() is token:
                del self.futures[key]


_tokens = _TokenCache()


def _cache_key(connection: HttpConnection) -> str:
    return json.dumps(connection.entry["OAuthParameters"], sort_keys=True)


def _is_over(future: Future[_Token]) -> bool:
    return future.done() and future.result().expires - _EXPIRES_SOON_S <= time.monotonic()


def _request_token(connection: HttpConnection) -> _Token:
    """Request a token from the authorization server, by OAuth 2's "client credentials"."""
    oauth = connection.entry["OAuthParameters"]
    client, added = oauth["ClientParameters"], oauth.get("OAuthHttpParameters") or {}
    grant: dict[str, Sequence[str]] = {
        "grant_type": ["client_credentials"],
        "client_id": [client["ClientID"]],
        "client_secret": [client["ClientSecret"]],
        **_texts(added, "BodyParameters"),
    }
    query: dict[str, Sequence[str]] = {**_texts(added, "QueryStringParameters")}
    headers = {name: ", ".join(v) for name, v in _texts(added, "HeaderParameters").items()}
    content = None
    if oauth["HttpMethod"] == "GET":
        query = {**grant, **query}
    else:
        content = urlencode(grant, doseq=True, quote_via=quote).encode()
        headers = {"Content-Type": "application/x-www-form-urlencoded", **headers}
    url = oauth["AuthorizationEndpoint"]
    if query:
        url += ("&" if "?" in url else "?") + urlencode(query, doseq=True, quote_via=quote)
    try:
        answer = outbound.send_request(
            oauth["HttpMethod"],
            url,
            _TOKEN_LIMIT_S,
            most=engine.MAX_BYTES,
            headers=headers,
            content=content,
        )
    except (outbound.CallError, ValueError) as error:
        problem = without_url_secrets(redact(str(error), connection.secrets), url)
        raise _unauthorized(connection, problem or type(error).__name__) from None
    if not answer.is_success:
        raise _unauthorized(connection, f"it answered {answer.status}")
    return _read_token(connection, answer.body)


def _read_token(connection: HttpConnection, body: bytes) -> _Token:
    try:
        answer = engine.loads(body.decode())
        text, lifetime = answer["access_token"], float(answer.get("expires_in", _LIFETIME_S))
    except (ValueError, TypeError, KeyError, AttributeError, engine.JsonTextError):
        raise _unauthorized(connection, "its answer has no access_token") from None
    if not isinstance(text, str) or not text.isascii() or not text.isprintable():
        raise _unauthorized(connection, "its access_token cannot be sent")
    return _Token(text, time.monotonic() + lifetime)


def _unauthorized(connection: HttpConnection, problem: str) -> UnusableConnectionError:
    host = urlsplit(connection.entry["OAuthParameters"]["AuthorizationEndpoint"]).netloc
    return UnusableConnectionError(
        "InvalidConnectionState",
        f"Connection '{connection.name}' is not authorized: the authorization endpoint at "
        f"{host.rpartition('@')[2]}: {problem}",
    )
