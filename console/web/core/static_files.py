"""Find and bundle static files."""

from __future__ import annotations

import hashlib
import re
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

from django.conf import settings
from django.contrib.staticfiles import finders
from django.contrib.staticfiles.finders import AppDirectoriesFinder
from django.http import FileResponse, HttpResponse
from django.utils.cache import get_conditional_response, patch_cache_control
from django.utils.deprecation import MiddlewareMixin

if TYPE_CHECKING:
    from collections.abc import Iterator

    from django.http import HttpRequest


BUNDLES = {
    "base.css": ("console.css", "inputs.css", "palette.css", "project-menu.css"),
    "base.js": ("live.js", "failed-loads.js", "keys.js", "palette.js"),
    "execution.css": ("graph.css", "execution.css", "timeline.css", "workflow.css"),
    "execution.js": (
        *("panel.js", "graph.js", "graph_tools.js", "mini_map.js"),
        *("history.js", "timeline.js", "time.js", "picture.js"),
    ),
}
"""Name of a bundle -> its files. The order matters: later styles override earlier ones."""
_PREFIX = f"{settings.STATIC_URL}stateyard/bundles/"
_TYPES = {".css": 'text/css; charset="utf-8"', ".js": 'text/javascript; charset="utf-8"'}


class BundleMiddleware(MiddlewareMixin):
    """Answers requests for bundles before sessions are loaded, like ``WhiteNoiseMiddleware``."""

    def process_request(self, request: HttpRequest) -> HttpResponse | FileResponse | None:
        """Return a bundle, or 304 if the browser has it; None for other URLs."""
        if not request.path.startswith(_PREFIX) or request.method not in ("GET", "HEAD"):
            return None
        name = request.path.removeprefix(_PREFIX)
        return _answer(request, name) if name in BUNDLES else None


def _answer(request: HttpRequest, name: str) -> HttpResponse | FileResponse:
    paths = (Path(str(finders.find(f"stateyard/{part}"))) for part in BUNDLES[name])
    content = b"\n".join(path.read_bytes() for path in paths)
    etag = f'"{hashlib.sha256(content).hexdigest()[:16]}"'
    response: HttpResponse | FileResponse | None = get_conditional_response(request, etag=etag)
    if response is None:
        response = FileResponse(BytesIO(content), content_type=_TYPES[Path(name).suffix])
    response.headers["ETag"] = etag
    patch_cache_control(response, public=True, max_age=settings.WHITENOISE_MAX_AGE)
    return response


_EDITOR = re.compile(
    r"django_ace/ace/(mode-|theme-|worker-|snippets/|css/theme/|css/.+\.(png|svg)$)"
)
"""Files of which the editor has one per language or theme, 600 together."""
_OURS = re.compile(r"json|text|github_|/main-")
"""Names of the files for JSON and the two themes."""


class LoadedFinder(AppDirectoriesFinder):
    """Finds the static files of apps, without unused languages and themes."""

    def list(self, ignore_patterns: Any) -> Iterator[Any]:
        """Yield path and storage of each file."""
        for path, storage in super().list(ignore_patterns):
            if not _EDITOR.match(path) or _OURS.search(path):
                yield path, storage
