"""The files of the editor that WhiteNoise opens at each start are those that pages load."""

from __future__ import annotations

import re
from pathlib import Path

from django.conf import settings
from django.contrib.staticfiles import finders

_USED = re.compile(r"""static '(django_ace/[^']+)'""")


def test_only_files_that_pages_load_are_listed() -> None:
    """Each that a template names, and one tenth of what the package of the editor has."""
    listed = {
        path
        for finder in finders.get_finders()
        for path, _ in finder.list(None)
        if path.startswith("django_ace/")
    }
    folder = Path(settings.TEMPLATES[0]["DIRS"][0])
    used = {
        name
        for template in folder.rglob("*.html")
        for name in _USED.findall(template.read_text(encoding="utf-8"))
    }
    assert len(used) >= 7
    assert used <= listed
    assert len(listed) < 120
