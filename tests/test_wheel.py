"""The wheel holds all that the server needs, and serves every page where nothing else is."""

from __future__ import annotations

import ast
import http.cookiejar
import os
import re
import signal
import subprocess
import sys
import sysconfig
import urllib.parse
import urllib.request
import venv
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from django.core.management import get_commands

from console import command_line
from tests.acceptance.server import START_S, Server

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).parent.parent
POSIX_ONLY = {
    *("crypt", "fcntl", "grp", "posix", "pty", "pwd", "resource", "syslog", "termios", "tty"),
    "uvloop",
}
"""Modules that Windows has not."""


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build the wheel of this tree."""
    folder = tmp_path_factory.mktemp("wheel")
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True)
    (file,) = folder.glob("*.whl")
    return file


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Install it into an environment of its own, which has the dependencies of this one."""
    folder = tmp_path_factory.mktemp("installed")
    venv.create(folder, with_pip=False)
    python = folder / "bin/python"
    command = [sys.executable, "-m", "pip", "--python", str(python), "install", "-q", "--no-deps"]
    subprocess.run([*command, "--no-index", str(wheel)], check=True, capture_output=True)
    (packages,) = folder.glob("lib/python*/site-packages")
    # a folder that a .pth file names is searched, but the .pth files in it are not read: the clone
    # that is installed there stays out of sight
    (packages / "dependencies.pth").write_text(sysconfig.get_path("purelib") + "\n", "utf-8")
    return folder


@pytest.mark.slow
def test_every_file_of_the_pages_is_in_the_wheel(wheel: Path) -> None:
    """Templates, static files, samples and migrations are there, tests are not."""
    names = set(zipfile.ZipFile(wheel).namelist())
    for folder, place in (("templates", "console/templates"), ("static", "console/static")):
        files = [file for file in (ROOT / folder).rglob("*") if file.is_file()]
        assert files
        missing = {f"{place}/{file.relative_to(ROOT / folder).as_posix()}" for file in files}
        assert missing - names == set()
    for folder in ("engine", "console"):
        files = [file for kind in ("py", "json") for file in (ROOT / folder).rglob(f"*.{kind}")]
        assert {file.relative_to(ROOT).as_posix() for file in files} - names == set()
    assert {name.split("/")[0].split("-")[0] for name in names} == {
        "engine",
        "console",
        "stateyard",
    }


class Browser:
    """Follows links as a person does, with the cookies of one."""

    def __init__(self, address: str) -> None:
        self._address = address
        cookies = urllib.request.HTTPCookieProcessor(http.cookiejar.CookieJar())
        self._opener = urllib.request.build_opener(cookies)

    def open(self, path: str, form: bytes | None = None) -> str:
        """Return the text of a page; any error of HTTP is raised."""
        with self._opener.open(self._address + path, data=form, timeout=60) as answer:
            return str(answer.read().decode("utf-8", "replace"))

    def log_in(self, path: str) -> None:
        """Press the button of a login link."""
        token = re.search(r'name="csrfmiddlewaretoken" value="(\w+)"', self.open(path))
        assert token is not None
        self.open(path, urllib.parse.urlencode({"csrfmiddlewaretoken": token[1]}).encode())

    def crawl(self) -> Iterator[str]:
        """Open each page and file that can be reached from the first page, once a kind."""
        seen, todo = set(), ["/"]
        while todo:
            path = todo.pop(0)
            text = self.open(path)
            yield path
            for link in re.findall(r'(?:href|src)="(/[^"#?]*)', text):
                kind = re.sub(r"(?<=/machines/|xecutions/)[^/]+", "*", link)
                if kind not in seen and "/logout" not in link:
                    seen.add(kind)
                    todo.append(link)


class Installed(Server):
    """``stateyard up`` from the wheel, started where the clone cannot be seen."""

    def __init__(self, installed: Path, data: Path) -> None:
        super().__init__(data)
        self._program = installed / "bin/stateyard"

    def start(self) -> Installed:
        """Start it in an empty folder and wait until it answers."""
        empty = self.data.parent / "empty"
        empty.mkdir()
        env = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
        command = [str(self._program), "up", "--port", str(self.port), "--data", str(self.data)]
        with (self.data.parent / f"{self.data.name}.log").open("ab") as log:
            self.process = subprocess.Popen(
                command, cwd=empty, env=env, stdout=log, stderr=log, stdin=subprocess.DEVNULL
            )
        self._wait()
        return self


@pytest.mark.slow
@pytest.mark.acceptance
def test_the_wheel_serves_every_page(installed: Path, tmp_path: Path) -> None:
    """From the first page on each link and each static file opens; Ctrl-C ends it cleanly."""
    server = Installed(installed, tmp_path / "data").start()
    try:
        browser = Browser(server.url)
        browser.log_in(server.login_url().removeprefix(server.url))
        opened = list(browser.crawl())
    finally:
        assert server.process is not None
        server.process.send_signal(signal.SIGINT)
        assert server.process.wait(timeout=START_S) == 0
    assert len(opened) >= 30
    assert any(path.startswith("/static/stateyard/") for path in opened)
    assert "stateyard login_url --data" in server.log()


def run(installed: Path, *words: str, **env: str) -> subprocess.CompletedProcess[str]:
    """Run the command of the wheel."""
    command = [str(installed / "bin/stateyard"), *words]
    return subprocess.run(
        command, env={**os.environ, **env}, capture_output=True, text=True, check=False
    )


@pytest.mark.slow
def test_help_lists_our_commands_and_makes_nothing(installed: Path, tmp_path: Path) -> None:
    """No data folder and no secret come from asking; Django's own commands and options are out."""
    data = tmp_path / "data"
    shown = run(installed, "--help", STATEYARD_DATA=str(data)).stdout
    assert shown == run(installed, STATEYARD_DATA=str(data)).stdout
    assert not data.exists()
    listed = set(re.findall(r"^  (\w+) ", shown, re.MULTILINE))
    ours = {name for name, app in get_commands().items() if app.startswith("console")}
    assert ours <= listed
    assert listed & (get_commands().keys() - ours) == {"check", "test"}  # ``test`` is our own
    own = run(installed, "up", "--help", STATEYARD_DATA=str(data)).stdout
    assert "--port" in own
    assert "--pythonpath" not in own


@pytest.mark.slow
def test_a_command_that_is_not_there_is_named(installed: Path) -> None:
    """With the nearest one, and the exit code of wrong use."""
    done = run(installed, "workers")
    assert done.returncode == 2
    assert "there is no command 'workers'. Did you mean worker?" in done.stderr
    assert run(installed, "runserver").returncode == 2
    assert run(installed, "version").stdout.startswith("stateyard 0")


def test_each_command_of_the_table_says_what_it_does() -> None:
    """One line each, as the overview shows them."""
    for commands in command_line.all_commands().values():
        for name, text in commands.items():
            assert re.fullmatch(r"[a-z].{8,68}[^.]", text), name


def _top_level_imports(path: Path) -> Iterator[str]:
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.Import):
            yield from (alias.name.split(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module.split(".")[0]


@pytest.mark.slow
def test_no_module_imports_what_windows_has_not() -> None:
    """Such an import stands in a function, behind a test of what is there."""
    for package in ("engine", "console"):
        for path in (ROOT / package).rglob("*.py"):
            assert POSIX_ONLY & set(_top_level_imports(path)) == set(), path
