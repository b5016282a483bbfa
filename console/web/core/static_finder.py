"""Find the static files that pages load; WhiteNoise opens each listed file at every start."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from django.contrib.staticfiles.finders import AppDirectoriesFinder

if TYPE_CHECKING:
    from collections.abc import Iterator

_EDITOR = re.compile(
    r"django_ace/ace/(mode-|theme-|worker-|snippets/|css/theme/|css/.+\.(png|svg)$)"
)
"""Files of which the editor has one per language or theme, 600 together."""
_OURS = re.compile(r"json|text|github_|/main-")
"""Those of JSON and of the two themes."""


class LoadedFinder(AppDirectoriesFinder):
    """Finds the static files of apps, without unused languages and themes."""

    def list(self, ignore_patterns: Any) -> Iterator[Any]:
        """Yield path and storage of each file."""
        for path, storage in super().list(ignore_patterns):
            if not _EDITOR.match(path) or _OURS.search(path):
                yield path, storage
