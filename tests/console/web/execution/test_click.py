"""Who follows a click on a state of an execution's page opens few files."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from console.db import writer
from tests.console.store.helpers import create, drain, one, start
from tests.console.web.helpers import page, text

if TYPE_CHECKING:
    from django.test import Client

    from console.models import Project

ROOT = Path(__file__).parents[4]
MOST_FILES = 15
"""Of the engine and the console, from the view to the rendered panel."""


def test_a_click_on_a_state_enters_few_files(project: Project, client: Client) -> None:
    """Who follows a click from the view to the rows opens so many files, and no more."""
    execution = drain(start(create(project, one("P", Type="Pass")), {}, "x"))
    answer: Any = client.get(page(execution, "_step?step=P"))  # fills the caches
    assert answer.resolver_match.url_name == "step"
    view, request, names = (
        answer.resolver_match.func,
        answer.wsgi_request,  # as the middleware left it
        answer.resolver_match.kwargs,
    )
    files: set[str] = set()

    def trace(frame: Any, event: str, _: object) -> None:
        path = frame.f_code.co_filename
        if event == "call" and path.startswith((f"{ROOT}/console/", f"{ROOT}/engine/")):
            files.add(path.removeprefix(f"{ROOT}/"))

    sys.setprofile(trace)
    try:
        panel = view(request, **names)
    finally:
        sys.setprofile(None)
    assert "P" in text(panel)
    if not writer.is_embedded():  # there a thread gives its connection back while it waits
        files.discard("console/db/postgres.py")
    assert len(files) <= MOST_FILES, "\n".join(sorted(files))
