"""Everything that an operator can use is named where operators read."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from django.core.management import get_commands, load_command_class

from console.metrics.names import METRICS

ROOT = Path(__file__).parent.parent
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
TEXT = "\n".join(page.read_text(encoding="utf-8") for page in PAGES)
COMMANDS = sorted(name for name, app in get_commands().items() if app == "console")
_READ = re.compile(r"environ(?:\.get\(|\[|ment\.\w+\()\s*[\"'](\w+)[\"']")
_BLOCK = re.compile(r"manage\.py (\w+)((?: [^\n`|&;>]*)?)")
OWN = ("STEPYARD_", "SFN_")
# only tests and their commands read these
TESTS_ONLY = {"STEPYARD_REQUIRE_BROWSER", "STEPYARD_SHARED"}


def variables() -> set[str]:
    """Return the environment variables that the code reads."""
    files = [*(ROOT / "console").rglob("*.py"), *(ROOT / "engine").rglob("*.py")]
    found = {name for file in files for name in _READ.findall(file.read_text(encoding="utf-8"))}
    return {name for name in found if name.startswith(OWN)}


def test_the_variables_are_found() -> None:
    """The search below looks at what it should."""
    assert {"STEPYARD_SECRET", "STEPYARD_RETENTION_DAYS", "SFN_MOCK_CONFIG"} <= variables()
    assert len(variables()) >= 15


@pytest.mark.parametrize("name", sorted(variables()))
def test_every_variable_is_documented(name: str) -> None:
    """README or docs name it in code type."""
    assert re.search(rf"`{name}[`=]", TEXT), name


def test_no_variable_is_invented() -> None:
    """What the pages name is read by the code."""
    named = set(re.findall(r"\bSTEPYARD_[A-Z_]+\b", TEXT))
    assert named - TESTS_ONLY <= variables()


def test_every_check_is_documented() -> None:
    """What ``check --deploy`` says can be looked up by its id."""
    source = (ROOT / "console/checks.py").read_text(encoding="utf-8")
    ids = set(re.findall(r'id="(stepyard\.\w+)"', source))
    assert len(ids) >= 5
    assert ids == set(re.findall(r"`(stepyard\.W\d+)`", TEXT))


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_is_documented(name: str) -> None:
    """README or docs show how it is called."""
    assert re.search(rf"manage\.py {name}\b|`{name}\b|\.\.\. {name}\b", TEXT), name


@pytest.mark.parametrize(("name", "arguments"), sorted(set(_BLOCK.findall(TEXT))))
def test_what_the_pages_call_is_there(name: str, arguments: str) -> None:
    """Each command and each of its options exists."""
    app = get_commands().get(name)
    assert app is not None, f"manage.py {name}"
    parser = load_command_class(app, name).create_parser("manage.py", name)
    options = {text for action in parser._actions for text in action.option_strings}
    for option in re.findall(r"(?<!\S)--[\w-]+", arguments):
        assert option in options, f"manage.py {name} {option}"


@pytest.mark.parametrize("name", sorted(METRICS))
def test_every_metric_is_documented(name: str) -> None:
    """By its name in CloudWatch."""
    assert f"`{name}`" in TEXT


def test_links_between_the_pages_lead_somewhere() -> None:
    """A page that is renamed takes its links along."""
    for page in PAGES:
        for target in re.findall(r"\]\((?!https?:)([^)#]+)", page.read_text(encoding="utf-8")):
            assert (page.parent / target).exists(), f"{page.name}: {target}"
