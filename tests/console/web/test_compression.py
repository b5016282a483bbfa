"""Answers are compressed for who takes that, and no secret can be guessed from their length."""

from __future__ import annotations

import gzip
import re
from typing import TYPE_CHECKING

from tests.console.store.helpers import PASS, create
from tests.console.web.helpers import text

if TYPE_CHECKING:
    from django.test import Client

    from console.models import Project

GZIP = {"Accept-Encoding": "gzip, deflate, br"}


def test_pages_scripts_and_exports_are_compressed(project: Project, client: Client) -> None:
    """A page has less than a third of its bytes; what it says is the same."""
    create(project, PASS, "Small")
    for address in ("/", "/machines/", "/machines/Small/definition.svg"):
        plain, packed = client.get(address), client.get(address, headers=GZIP)
        assert "Content-Encoding" not in plain
        assert packed["Content-Encoding"] == "gzip"
        assert "Accept-Encoding" in packed["Vary"]
        assert len(packed.content) < len(plain.content) / 2
        assert b"Small" in gzip.decompress(packed.content)
    style = client.get("/static/stepyard/console.css", headers=GZIP)
    assert style["Content-Encoding"] == "gzip"
    assert b"@layer base" in gzip.decompress(style.getvalue())


def test_the_length_of_a_page_gives_no_secret_away(client: Client) -> None:
    """The token is masked anew each time, and the length of the same page is padded by chance."""
    pages = [gzip.decompress(client.get("/", headers=GZIP).content).decode() for _ in range(2)]
    tokens = [re.search(r'name="csrfmiddlewaretoken" value="(\w+)"', page) for page in pages]
    assert tokens[0]
    assert tokens[1]
    assert tokens[0][1] != tokens[1][1]
    lengths = {len(client.get("/healthz-not-there/", headers=GZIP).content) for _ in range(12)}
    assert len(lengths) > 1


def test_a_poll_without_news_stays_empty(project: Project, client: Client) -> None:
    """What has no body is not packed."""
    create(project, PASS)
    seen = client.get("/").context["seen"]
    silent = client.get(f"/_overview?seen={seen}", headers=GZIP)
    assert silent.status_code == 204
    assert silent.content == b""
    assert "Content-Encoding" not in silent
    assert "No executions yet" in text(client.get("/executions/"))
