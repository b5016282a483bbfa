"""Answers are compressed for who takes that, and no secret can be guessed from their length."""

from __future__ import annotations

import gzip
import re
from pathlib import Path
from typing import TYPE_CHECKING

import brotli
import pytest
import rjsmin

from tests.console.store.helpers import PASS, create
from tests.console.web.helpers import text

if TYPE_CHECKING:
    from django.test import Client

    from console.models import Project

GZIP = {"Accept-Encoding": "gzip, deflate"}
BROTLI = {"Accept-Encoding": "gzip, deflate, br, zstd"}


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
    style = client.get("/static/stateyard/console.css", headers=GZIP)
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


def test_browsers_that_take_brotli_get_it(project: Project, client: Client) -> None:
    """It is shorter than gzip, for pages and for files; the text is the same."""
    create(project, PASS, "Small")
    for address in ("/machines/", "/static/django_ace/ace/mode-json.js"):
        plain, packed = client.get(address), client.get(address, headers=BROTLI)
        assert packed["Content-Encoding"] == "br"
        assert "Accept-Encoding" in packed["Vary"]
        body = packed.getvalue()
        assert len(body) < len(client.get(address, headers=GZIP).getvalue())
        assert len(brotli.decompress(body)) == len(plain.getvalue())
        modified = packed.get("Last-Modified", "")
    fresh = client.get(address, headers=BROTLI | {"If-Modified-Since": modified})
    assert (fresh.status_code, fresh.getvalue()) == (304, b"")


@pytest.mark.parametrize("accepted", ["gzip, br;q=0", "gzip, br; q=0.0", "gzip, brr", "gzip"])
def test_brotli_is_for_those_who_ask(client: Client, accepted: str) -> None:
    """A weight of zero refuses it."""
    assert client.get("/", headers={"Accept-Encoding": accepted})["Content-Encoding"] == "gzip"


def test_the_length_of_brotli_gives_no_secret_away(client: Client) -> None:
    """A header of random length hides that of the body; files, which are public, have none."""
    pads = {len(client.get("/machines/", headers=BROTLI)["X-Padding"]) for _ in range(12)}
    assert len(pads) > 1
    style = client.get("/static/stateyard/console.css", headers=BROTLI)
    assert style.getvalue()
    assert "X-Padding" not in style


def test_only_whole_files_are_kept_packed(client: Client) -> None:
    """Anybody may ask for no body or for a part; the others got that as the file, too."""
    address = "/static/stateyard/charts.css"
    client.head(address, headers=BROTLI).close()
    part = client.get(address, headers=BROTLI | {"Range": "bytes=0-9"})
    assert part.status_code == 206
    assert len(part.getvalue()) > 0
    whole = brotli.decompress(client.get(address, headers=BROTLI).getvalue())
    assert whole.count(b"{") == client.get(address).getvalue().count(b"{") > 10


@pytest.mark.parametrize("name", ["console.css", "live.js", "graph-editor.js"])
def test_scripts_and_style_sheets_lose_their_comments(client: Client, name: str) -> None:
    """What is said in them stays: each text in backquotes, each custom property."""
    address = f"/static/stateyard/{name}"
    plain = client.get(address).getvalue().decode()
    short = brotli.decompress(client.get(address, headers=BROTLI).getvalue()).decode()
    assert len(short) < len(plain) * 0.95
    assert "/*" not in short
    for text_or_name in re.findall(r"`[^`\n]*`|--[a-z0-9-]+(?=:)", plain):
        assert text_or_name in short


def test_no_script_has_a_regular_expression_that_packing_changes() -> None:
    """What packs scripts takes the blanks out of one behind an arrow, as it does of a division."""
    scripts = (Path(__file__).parents[4] / "static/stateyard").glob("*.js")
    changed = {script.name: re.findall(r"=>\s*/[^/*].*", script.read_text()) for script in scripts}
    assert len(changed) > 10
    assert {name: matches for name, matches in changed.items() if matches} == {}


def test_no_script_loses_a_blank_between_two_substitutions() -> None:
    """What packs scripts takes the blank in `${a} ${b}` away; they join such words instead."""
    scripts = (Path(__file__).parents[4] / "static/stateyard").glob("*.js")
    lost = {}
    for script in scripts:
        plain = script.read_text(encoding="utf-8")
        texts = re.findall(r"\}[ ]+\$\{", plain)
        lost[script.name] = len(texts) - len(re.findall(r"\}[ ]+\$\{", rjsmin.jsmin(plain)))
    assert len(lost) > 10
    assert {name: count for name, count in lost.items() if count} == {}


def test_a_style_sheet_keeps_the_blank_before_a_colon(client: Client) -> None:
    """With it ``:is`` is about what is inside; without, about the element itself."""
    plain = client.get("/static/stateyard/machine.css").getvalue().decode()
    short = client.get("/static/stateyard/machine.css", headers=BROTLI).getvalue()
    inside = re.compile(r"[\w.\])] :[a-z-]+")
    assert len(inside.findall(plain)) > 2
    assert inside.findall(re.sub(r"/\*.*?\*/", "", plain)) == inside.findall(
        brotli.decompress(short).decode()
    )


def test_files_carry_no_policy_of_pages(client: Client) -> None:
    """The policy is 250 bytes, and a page of the console has eighteen files."""
    style = client.get("/static/stateyard/console.css")
    assert style.getvalue()
    assert "Content-Security-Policy" not in style
    assert style["X-Content-Type-Options"] == "nosniff"
    packed = client.get("/static/stateyard/console.css", headers=BROTLI)
    assert packed.getvalue()
    assert "Cross-Origin-Opener-Policy" not in packed
    assert "Cross-Origin-Opener-Policy" in client.get("/machines/")
    assert "Content-Security-Policy" in client.get("/machines/")


def test_a_poll_without_news_stays_empty(project: Project, client: Client) -> None:
    """What has no body is not packed."""
    create(project, PASS)
    seen = client.get("/").context["seen"]
    silent = client.get(f"/_overview?seen={seen}", headers=GZIP)
    assert silent.status_code == 204
    assert silent.content == b""
    assert "Content-Encoding" not in silent
    assert "No executions yet" in text(client.get("/executions/"))
