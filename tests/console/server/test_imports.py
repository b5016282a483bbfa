"""A server starts without the modules that no start needs."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest
from django.urls import get_resolver

import engine
from console.command_line import client_commands, client_parser
from console.feature import View
from console.server.serving import import_views
from tests.acceptance.server import ROOT

if TYPE_CHECKING:
    from pathlib import Path

_CHECK = """
import sys
from console.command_line import set_up
set_up(["manage.py", "check"])
from django.core.management import call_command
call_command("check")
print(*sys.modules)
"""
_HELP = """
import sys
from console.command_line import main
try:
    main([sys.argv[1], "--help"])
except SystemExit:
    print(*sys.modules, file=sys.stderr)
"""
_LATER = {
    *(
        "boto3",
        "graphviz",
        "pydantic",
        "yaml",
        "prometheus_client",
        "configupdater",
        "qrcode",
        "pygraphviz",
    ),
    *("console.cli", "console.features.resilience.trials", "console.worker", "console.awsapi"),
    *("console.web.execution.views", "console.web.people.login_views"),
}
"""Packages that a page, a command or a Task imports when it first needs them."""


def test_every_view_of_an_address_is_there() -> None:
    """Every address names a function of a module that can be imported."""
    import_views(get_resolver())
    overview = get_resolver().resolve("/").func
    assert isinstance(overview, View)
    assert callable(overview.function)


def test_an_address_without_a_view_is_named() -> None:
    """It is an error of the module, and no endless search for an attribute."""
    with pytest.raises(AttributeError, match=r"console\.feature has no view nothing"):
        assert not View("console.feature", "nothing").csrf_exempt


def test_a_start_imports_no_page_and_no_client(tmp_path: Path) -> None:
    """``manage.py check`` leaves them; the ten dearest imports are shown if it does not."""
    env = {**os.environ, "STATEYARD_DATA": str(tmp_path)}
    env["DJANGO_SETTINGS_MODULE"] = "console.config.settings"
    command = [sys.executable, "-X", "importtime", "-c", _CHECK]
    done = subprocess.run(command, cwd=ROOT, env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    dearest = "\n".join(_dearest(done.stderr)[:10])
    assert not _LATER & {*done.stdout.split()}, f"the ten dearest imports:\n{dearest}"


def test_the_help_of_lint_imports_no_engine() -> None:
    """A help needs the options alone: the engine, Django and YAML took 0.2 s of it."""
    words, modules = _help_of("lint")
    assert "--format {text,json,github}" in words
    assert not {"engine", "django", "yaml", "boto3"} & modules


@pytest.mark.parametrize("name", sorted(client_commands()))
def test_no_help_imports_a_client(name: str) -> None:
    """boto3 took half of the time of the help of a command that talks to a server."""
    words, modules = _help_of(name)
    assert f"usage: stateyard {name}" in words
    assert "boto3" not in modules


def _help_of(name: str) -> tuple[str, set[str]]:
    """Return the help of a command, and the modules that it imports."""
    words = [sys.executable, "-c", _HELP, name]
    done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=True)
    return done.stdout, {*done.stderr.split()}


def test_lint_offers_every_format_of_the_engine() -> None:
    """The names stand in the command too, because its help does not import the engine."""
    parser = client_parser("lint")
    for style in engine.LINT_FORMATS:
        assert parser.parse_args(["--format", style, "x"]).format == style
    with pytest.raises(SystemExit):
        parser.parse_args(["--format", "junit", "x"])


def _dearest(report: str) -> list[str]:
    """Return the lines of ``-X importtime``, the dearest first, by what each takes itself."""
    lines = [
        line
        for line in report.splitlines()
        if line.removeprefix("import time:")[:11].strip().isdigit()
    ]
    return sorted(lines, key=lambda line: -int(line.removeprefix("import time:").split("|")[0]))
