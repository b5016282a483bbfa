"""Every command of the tutorial does what the tutorial says."""

from __future__ import annotations

import re
import socket
import subprocess
import sys
import time
import urllib.parse
import urllib.request
from http.cookiejar import CookieJar
from typing import TYPE_CHECKING

import pytest

from tests.acceptance.readme import ROOT, typed
from tests.acceptance.server import Server, free_port

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = pytest.mark.acceptance
TUTORIAL = (ROOT / "docs/tutorial/README.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```sh\n(.*?)^```", TUTORIAL, re.MULTILINE | re.DOTALL)
INSTALLS, SERVES, CALLS = "python3 -m venv", "python manage.py up", "python ~/yard/charge.py\n"
FUNCTION_PORT = "9000"


class Reader:
    """Somebody who types the tutorial's commands. ``home``: an empty folder."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self.yard = home / "yard"
        self.server = Server(self.yard)
        self.port = free_port()
        self.exports = ""
        self.function: subprocess.Popen[bytes] | None = None

    def type_block(self, block: str) -> str:
        """Do what a block says and return what it printed."""
        lines = block.replace(FUNCTION_PORT, str(self.port))
        if lines.startswith(INSTALLS):
            return ""  # the environment of the tests has it all
        if lines.startswith(SERVES):
            self.server.start()
        elif lines == CALLS:
            self._start_function()
        elif lines.startswith("export "):
            self.exports += lines
        else:
            return typed(self.home, f"{self.exports}{self._prepared(lines)}")
        return ""

    def _prepared(self, lines: str) -> str:
        if "manage.py replay --definition" in lines:
            return f"{lines.rstrip()} || echo it ended with $?\n"
        if "manage.py replay" in lines:
            (self.yard / "order-1.scenario.json").write_bytes(self._download())
        return lines

    def _start_function(self) -> None:
        """Start the tutorial's function and wait until it listens."""
        self.function = subprocess.Popen([sys.executable, self.yard / "charge.py"])
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline:
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", self.port)) == 0:
                    return
            time.sleep(0.05)
        raise AssertionError("the function does not listen")

    def _download(self) -> bytes:
        """Log in by the printed link, and download the execution as a test."""
        opener = urllib.request.build_opener(urllib.request.HTTPCookieProcessor(CookieJar()))
        link = self.server.login_url()
        form = opener.open(link).read().decode()
        token = re.search(r'csrfmiddlewaretoken" value="([^"]+)', form)
        assert token is not None
        body = urllib.parse.urlencode({"csrfmiddlewaretoken": token[1]}).encode()
        opener.open(urllib.request.Request(link, body, {"Referer": link})).close()
        page = f"{self.server.url}/machines/Orders/executions/order-1/scenario.json"
        content: bytes = opener.open(page).read()
        return content

    def leave(self) -> None:
        """End what was started."""
        if self.function is not None:
            self.function.kill()
            self.function.wait()
        if self.server.process is not None:
            self.server.stop()


@pytest.fixture
def reader(tmp_path: Path) -> Iterator[Reader]:
    """Return a reader who leaves nothing behind."""
    reader = Reader(tmp_path)
    yield reader
    reader.leave()


def test_the_tutorial_does_what_it_says(reader: Reader) -> None:
    """It leads from an empty folder to a replay that notices a changed definition."""
    printed = "".join(reader.type_block(block) for block in BLOCKS)
    assert "0 errors" in printed
    assert "FAILED\tLambda.SdkClientException\t" in printed
    assert 'SUCCEEDED\t1\t{"orderId": 1, "charged": 42}' in printed
    replays = re.findall(r"^/home/you/.*$", TUTORIAL, re.MULTILINE)
    assert len(replays) == 3
    for line in replays:
        assert line.replace("/home/you", str(reader.home)) in printed
    assert printed.rstrip().endswith("wanted SUCCEEDED\nit ended with 1")


def test_every_shell_block_of_the_tutorial_is_read() -> None:
    """None is written in a way that the test above would miss."""
    assert len(BLOCKS) == TUTORIAL.count("```sh")
    assert [block for block in BLOCKS if block.startswith(SERVES)]
    assert CALLS in BLOCKS
