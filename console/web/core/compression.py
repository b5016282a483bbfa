"""Compress responses with Brotli for browsers that accept it.

Pages are a quarter smaller than with gzip, the fallback by Django's own middleware. Before that,
the console's own scripts and style sheets lose comments and whitespace (a sixth of the rest), and
static files the headers that only pages need.
"""

from __future__ import annotations

import re
import secrets
from http import HTTPStatus
from typing import TYPE_CHECKING, cast

import brotli
import rjsmin
from django.conf import settings
from django.http import FileResponse, HttpResponse, StreamingHttpResponse
from django.utils.cache import patch_vary_headers
from django.utils.deprecation import MiddlewareMixin

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from django.http import HttpRequest

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
        whole = _minify(path, response)
        packed = brotli.compress(whole, quality=_BEST if len(whole) < _LARGE else _QUALITY)
        if len(_files) >= _MOST_FILES:
            _files.clear()
        _files[key] = packed
    response.streaming_content = iter([packed])
    response.headers["Content-Length"] = str(len(packed))
    for name in _OF_PAGES:
        response.headers.pop(name, None)


def _minify(path: str, response: FileResponse) -> bytes:
    """Return a file; the console's scripts and style sheets lose their comments."""
    whole = b"".join(cast("Iterator[bytes]", response.streaming_content))
    if not path.startswith(f"{settings.STATIC_URL}stateyard/"):
        return whole
    match response.headers["Content-Type"].partition(";")[0]:
        case "text/css":
            return _minify_style(whole.decode()).encode()
        case "text/javascript":
            shorter: str = rjsmin.jsmin(whole.decode())
            return shorter.encode()
        case _:
            return whole


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
