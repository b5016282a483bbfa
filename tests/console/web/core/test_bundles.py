"""The style sheets and the scripts of a page come as one file each, in their order."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from django.contrib.staticfiles import finders

from console.web.core.static_files import BUNDLES
from tests.console.store.helpers import PASS, create, drain, start
from tests.console.web.helpers import text

if TYPE_CHECKING:
    from django.test import Client

    from console.models import Project

AT = "/static/stateyard/bundles/"


@pytest.mark.parametrize("name", BUNDLES)
def test_a_bundle_has_its_files(client: Client, name: str) -> None:
    """Whole and in order; without a session, which each of them would have to be read for."""
    response = client.get(AT + name)
    files = [Path(str(finders.find(f"stateyard/{part}"))).read_bytes() for part in BUNDLES[name]]
    assert response.getvalue() == b"\n".join(files)
    assert "Cookie" not in response.get("Vary", "")
    assert response["Cache-Control"] == "public, max-age=3600"
    content_type = "text/css" if name.endswith(".css") else "text/javascript"
    assert response["Content-Type"].startswith(content_type)
    again = client.get(AT + name, headers={"If-None-Match": f"W/{response['ETag']}"})
    assert (again.status_code, again.content) == (304, b"")


def test_scripts_of_a_bundle_do_not_meet() -> None:
    """Each is a function of its own, so no name and no strictness of one reaches the next."""
    for name in BUNDLES:
        for part in BUNDLES[name]:
            source = Path(str(finders.find(f"stateyard/{part}"))).read_text(encoding="utf-8")
            if part.endswith(".js"):
                code = re.sub(r"^\s*//.*\n", "", source, flags=re.MULTILINE)
                assert code.startswith('"use strict";\n(() => {'), part
                assert code.rstrip().endswith("})();"), part


def test_what_is_no_bundle_is_not_found(client: Client) -> None:
    """Nor does a name lead out of the folder, and a form changes nothing."""
    for name in ("nothing.js", "../console.css", "", "base.css/"):
        assert client.get(AT + name).status_code == 404
    assert client.post(f"{AT}base.css").status_code != 200


def test_pages_ask_for_bundles(project: Project, client: Client) -> None:
    """The page of an execution has no file beside them but the library's and the picture."""
    machine = create(project, PASS, "Small")
    execution = drain(start(machine))
    page = text(client.get(f"/machines/Small/executions/{execution.name}/"))
    files = set(re.findall(r'(?:src|href)="/static/([^"?]+)', page))
    assert files - {"django_htmx/htmx-2.min.js", "stateyard/favicon.svg"} == {
        f"stateyard/bundles/{name}" for name in BUNDLES
    }
