"""Middleware of the console: id of a request, sign-in, compression."""

from __future__ import annotations

import re
import secrets
import uuid
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, cast

import brotli
import rjsmin
from django.conf import settings
from django.contrib.auth.middleware import LoginRequiredMiddleware
from django.core.exceptions import BadRequest
from django.http import (
    FileResponse,
    HttpResponse,
    HttpResponseRedirect,
    QueryDict,
    StreamingHttpResponse,
)
from django.shortcuts import resolve_url
from django.utils.cache import patch_vary_headers
from django.utils.deprecation import MiddlewareMixin
from structlog.contextvars import bind_contextvars, clear_contextvars

from console.feature import Hook, hooked
from console.web.core.addresses import page_before

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from django.http import HttpRequest
    from django.http.response import HttpResponseBase

    from console.web.core.scope import HtmxRequest


def request_id_middleware(
    get_response: Callable[[HttpRequest], HttpResponseBase],
) -> Callable[[HttpRequest], HttpResponseBase]:
    """Add the request id (a middleware)."""

    def answer(request: HttpRequest) -> HttpResponseBase:
        number = str(uuid.uuid4())
        clear_contextvars()
        bind_contextvars(request_id=number)
        try:
            _refuse_nul(request)
            response = get_response(request)
        finally:
            clear_contextvars()
        response["X-Request-Id"] = number
        return response

    return answer


def _refuse_nul(request: HttpRequest) -> None:
    """Raise ``BadRequest`` for a NUL character: PostgreSQL cannot store it.

    Start links are exempt: their body is an input, whatever its media type.
    """
    values = [value for _, many in request.GET.lists() for value in many]
    if not request.path.startswith("/start/"):
        values += [text for name, many in request.POST.lists() for text in (name, *many)]
    if any("\0" in text for text in (request.path, *values, *request.COOKIES.values())):
        raise BadRequest("a NUL character")


_SAFE_METHODS = ("GET", "HEAD", "OPTIONS")
_FORMER_SESSION = "stepyard_session"


def former_session_middleware(
    get_response: Callable[[HttpRequest], HttpResponseBase],
) -> Callable[[HttpRequest], HttpResponseBase]:
    """Accept the session cookie under its former name, so that upgrades keep sessions."""

    def answer(request: HttpRequest) -> HttpResponseBase:
        if _FORMER_SESSION in request.COOKIES:
            former = request.COOKIES[_FORMER_SESSION]
            request.COOKIES.setdefault(settings.SESSION_COOKIE_NAME, former)
        return get_response(request)

    return answer


class SignInMiddleware(LoginRequiredMiddleware):
    """Handles signed-out requests: pages redirect to the sign-in, fragments get 401.

    A session ends while its pages are open. If a fragment were redirected, the sign-in page would
    appear in its place, and an action that was not performed would look successful.
    """

    def process_view(
        self,
        request: HttpRequest,
        view_func: Callable[..., HttpResponseBase],
        view_args: tuple[Any, ...],
        view_kwargs: dict[str, Any],
    ) -> HttpResponseBase | None:
        """Return None if the view may run, else a redirect to sign-in, or 401."""
        answer = super().process_view(request, view_func, view_args, view_kwargs)
        if answer is not None and cast("HtmxRequest", request).htmx:
            return HttpResponse(status=401)
        if answer is None and request.user.is_authenticated:
            answers = (look(request) for look in hooked(Hook.PAGE_REQUEST))
            answer = next(filter(None, answers), None)
        return answer

    def handle_no_permission(
        self, request: HttpRequest, view_func: Callable[..., HttpResponseBase]
    ) -> HttpResponseRedirect:
        """Redirect to sign-in with a return URL; warn there if a form is lost.

        A form may have an address without a page: the way back is the page that has the form.
        """
        query = QueryDict(mutable=True)
        if request.method in _SAFE_METHODS:
            query["next"] = request.get_full_path()
        else:
            query["next"] = page_before(request) or resolve_url("overview")
            query["unsent"] = "1"
        sign_in = resolve_url(self.get_login_url(view_func))
        return HttpResponseRedirect(f"{sign_in}?{query.urlencode(safe='/')}")


_QUALITY = 5
_BEST = 11
"""Takes twenty times as long: for files, which are compressed once."""
_LARGE = 100_000
_MOST_FILES = 256
_SHORTEST = 200
_MOST_PADDING = 100
_NO_WEIGHT = re.compile(r"\s*q\s*=\s*0(\.0*)?\s*")

_OF_PAGES = ("Referrer-Policy", "Cross-Origin-Opener-Policy")

_COMMENT = re.compile(r"/\*.*?\*/", re.DOTALL)
_LINE_END = re.compile(r"\s*\n\s*")

_files: dict[tuple[str, str], bytes] = {}
"""Path and ETag -> the compressed file."""


class BrotliMiddleware(MiddlewareMixin):
    """Brotli compression; stands below ``GZipMiddleware``, which skips compressed responses."""

    def process_response(
        self, request: HttpRequest, response: HttpResponse | StreamingHttpResponse
    ) -> HttpResponse | StreamingHttpResponse:
        """Return the response, compressed if the browser accepts Brotli."""
        if response.has_header("Content-Encoding") or getattr(response, "is_async", False):
            return response
        if request.method != "GET" or response.status_code != HTTPStatus.OK:
            return response  # no body, a part of a file, or a short answer to a form
        if not _takes_brotli(request.headers.get("Accept-Encoding", "")):
            return response
        if isinstance(response, FileResponse) and response.headers.get("ETag"):
            _compress_file(request.path, response)
        elif isinstance(response, StreamingHttpResponse):
            parts = cast("Iterator[bytes]", response.streaming_content)
            response.streaming_content = _compress_parts(parts)
            del response.headers["Content-Length"]
        elif len(response.content) < _SHORTEST:
            return response
        else:
            _compress_whole(response)
        patch_vary_headers(response, ("Accept-Encoding",))
        etag = response.headers.get("ETag", "")
        if etag.startswith('"'):
            response.headers["ETag"] = f"W/{etag}"
        response.headers["Content-Encoding"] = "br"
        return response


def _compress_whole(response: HttpResponse) -> None:
    """Compress a page, and hide its length by a random header (against BREACH).

    Otherwise a secret of the page could be guessed from the length (BREACH). Django's gzip pads its
    bodies to the same end.
    """
    response.content = brotli.compress(response.content, quality=_QUALITY)
    response.headers["Content-Length"] = str(len(response.content))
    response.headers["X-Padding"] = "0" * secrets.randbelow(_MOST_PADDING)


def _compress_file(path: str, response: FileResponse) -> None:
    """Compress a static file once per process, at Brotli's highest level."""
    key = (path, response.headers["ETag"])
    packed = _files.get(key)
    if packed is None:
        content = _minify(path, response)
        packed = brotli.compress(content, quality=_BEST if len(content) < _LARGE else _QUALITY)
        if len(_files) >= _MOST_FILES:
            _files.clear()
        _files[key] = packed
    response.streaming_content = iter([packed])
    response.headers["Content-Length"] = str(len(packed))
    for name in _OF_PAGES:
        response.headers.pop(name, None)


def _minify(path: str, response: FileResponse) -> bytes:
    """Return a file; the console's scripts and style sheets lose their comments."""
    content = b"".join(cast("Iterator[bytes]", response.streaming_content))
    if not path.startswith(f"{settings.STATIC_URL}stateyard/"):
        return content
    match response.headers["Content-Type"].partition(";")[0]:
        case "text/css":
            return _minify_style(content.decode()).encode()
        case "text/javascript":
            shorter: str = rjsmin.jsmin(content.decode())
            return shorter.encode()
        case _:
            return content


def _minify_style(text: str) -> str:
    """Return a style sheet without comments and indentation.

    The blanks within a line stay: ``rcssmin`` takes that before a colon away, and ``.a :is(.b)``
    means what is inside of ``.a``, ``.a:is(.b)`` does not.
    """
    return _LINE_END.sub("\n", _COMMENT.sub("", text))


def _takes_brotli(accepted: str) -> bool:
    """Whether ``Accept-Encoding`` accepts Brotli with a weight above zero."""
    for coding in accepted.lower().split(","):
        name, _, weight = coding.partition(";")
        if name.strip() == "br":
            return _NO_WEIGHT.fullmatch(weight) is None
    return False


def _compress_parts(parts: Iterable[bytes]) -> Iterator[bytes]:
    """Yield a compressed stream; for files, whose length is not secret."""
    compressor = brotli.Compressor(quality=_QUALITY)
    for part in parts:
        yield compressor.process(part)
    yield compressor.finish()
