"""The documentation names all that there is, and its links, commands and citations hold."""

from __future__ import annotations

import re
import subprocess
from argparse import ArgumentParser, _SubParsersAction
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from django.core.management import get_commands, load_command_class
from django.urls import get_resolver

from console import command_line
from console.access import least_role
from console.awsapi.services import SCHEDULER, SERVICES, STS
from console.config import local_options
from console.config.quotas import Quotas
from console.features.metrics.names import METRICS
from tests import citations
from tests.chaos.scenarios import SCENARIOS
from tests.rows import ROWS

if TYPE_CHECKING:
    from console.awsapi.services import ApiService

ROOT = Path(__file__).parent.parent
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
MARKDOWN = [*sorted(ROOT.glob("*.md")), *sorted((ROOT / ".github").rglob("*.md")), *PAGES[1:]]
CODE_FILES = [
    *(file for folder in citations.CODE for file in sorted((ROOT / folder).rglob("*.py"))),
    *sorted((ROOT / "templates").rglob("*.html")),
]
HELP = ROOT / "templates/core/_keyboard_help.html"
PAGE_URLS = "console.web.urls"
_LINK = re.compile(r"\]\((?!\w+:)([^)#]*)(?:#([^)]*))?\)")
TEXT = "\n".join(page.read_text(encoding="utf-8") for page in PAGES)
COMMANDS = sorted(name for name, app in get_commands().items() if app.startswith("console"))
_READ = re.compile(r"environ(?:\.get\(|\[|ment\.\w+\()\s*[\"'](\w+)[\"']")
_BLOCK = re.compile(r"manage\.py (\w+)((?: [^\n`|&;>]*)?)")
OWN = ("STATEYARD_", "SFN_")
# only tests and their commands read these
TESTS_ONLY = {"STATEYARD_JSONATA_SUITE", "STATEYARD_REQUIRE_BROWSER", "STATEYARD_SHARED"}


def variables() -> set[str]:
    """Return the environment variables that the code reads."""
    files = [*(ROOT / "console").rglob("*.py"), *(ROOT / "engine").rglob("*.py")]
    names = {name for file in files for name in _READ.findall(file.read_text(encoding="utf-8"))}
    return {name for name in names if name.startswith(OWN)}


def test_the_variables_are_found() -> None:
    """The search below looks at what it should."""
    assert {"STATEYARD_SECRET", "STATEYARD_RETENTION_DAYS", "SFN_MOCK_CONFIG"} <= variables()
    assert len(variables()) >= 15


@pytest.mark.parametrize("name", sorted(variables()))
def test_every_variable_is_documented(name: str) -> None:
    """README or docs name it in code type."""
    assert re.search(rf"`{name}[`=]", TEXT), name


@pytest.mark.parametrize("name", local_options.VARIABLES)
def test_every_option_of_step_functions_local_is_documented(name: str) -> None:
    """The page of settings has each."""
    assert f"`{name}`" in (ROOT / "docs/reference/settings.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("name", local_options.COMMAND_LINE)
def test_every_option_of_the_command_line_is_beside_its_variable(name: str) -> None:
    """In the order and the spelling in which ``up`` takes them."""
    options = ", ".join(f"`{option}`" for option in local_options.COMMAND_LINE[name])
    page = (ROOT / "docs/reference/settings.md").read_text(encoding="utf-8")
    assert f"| `{name}` | {options} |" in page


def test_no_variable_is_invented() -> None:
    """Each variable that the pages name is read by the code."""
    named = set(re.findall(r"\bSTATEYARD_[A-Z_]+\b", TEXT))
    assert named - TESTS_ONLY <= variables()


def test_every_check_is_documented() -> None:
    """Each finding of ``check --deploy`` can be looked up by its id."""
    source = (ROOT / "console/management/checks.py").read_text(encoding="utf-8")
    ids = set(re.findall(r'id="(stateyard\.\w+)"', source))
    assert len(ids) >= 5
    assert ids == set(re.findall(r"`(stateyard\.W\d+)`", TEXT))


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


def options_of(parser: ArgumentParser) -> set[str]:
    """Return the options of a command, and of the acts that it has."""
    acts = [action for action in parser._actions if isinstance(action, _SubParsersAction)]
    options = {text for action in parser._actions for text in action.option_strings}
    return options.union(*(options_of(act) for each in acts for act in each.choices.values()))


@pytest.mark.parametrize("name", sorted(command_line.client_commands()))
def test_every_command_of_a_client_is_documented(name: str) -> None:
    """The page of commands has it, and pages give it no option that it has not."""
    page = (ROOT / "docs/reference/commands.md").read_text(encoding="utf-8")
    assert f"`stateyard {name}" in page or f"`manage.py {name}" in page
    options = options_of(command_line.client_parser(name))
    for arguments in re.findall(rf"stateyard {name}\b([^\n`|&;>]*)", TEXT):
        assert set(re.findall(r"(?<!\S)--[\w-]+", arguments)) <= options, arguments


@pytest.mark.parametrize("name", sorted(METRICS))
def test_every_metric_is_documented(name: str) -> None:
    """Docs name each metric by its name in CloudWatch."""
    assert f"`{name}`" in TEXT


def _anchors(page: Path) -> set[str]:
    """Return the anchors of a page's headings, as GitHub makes them."""
    text = re.sub(
        r"^```.*?^```", "", page.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL
    )
    headings = re.findall(r"^#+ (.*)$", text, re.MULTILINE)
    words = (re.sub(r"[^\w\- ]", "", heading.lower()) for heading in headings)
    return {heading.strip().replace(" ", "-") for heading in words}


@pytest.mark.parametrize("page", MARKDOWN, ids=lambda page: str(page.relative_to(ROOT)))
def test_relative_links_lead_somewhere(page: Path) -> None:
    """Each relative link of a Markdown file names a file, and a heading of it."""
    for target, anchor in _LINK.findall(page.read_text(encoding="utf-8")):
        file = page.parent / target if target else page
        assert file.exists(), f"{page.name}: {target}"
        if anchor:
            assert anchor in _anchors(file), f"{page.name}: {target}#{anchor}"


def test_the_index_lists_every_page() -> None:
    """A page that ``docs/README.md`` and the list of decisions leave out is hard to find."""
    docs = ROOT / "docs"
    linked = {
        (index.parent / target).resolve()
        for index in (docs / "README.md", docs / "explanation/decisions/README.md")
        for target, _ in _LINK.findall(index.read_text(encoding="utf-8"))
    }
    assert {page.resolve() for page in docs.rglob("*.md")} - {docs / "README.md"} <= linked


def test_the_architecture_names_every_package() -> None:
    """A package without a row in a table of the page is hard to place for a newcomer.

    One row stands for the commands of all features: Django prescribes their folders.
    """
    page = (ROOT / "docs/explanation/architecture.md").read_text(encoding="utf-8")
    rows = set(re.findall(r"^\| `([\w/]+)` \|", page, re.MULTILINE))
    packages = {
        folder.relative_to(ROOT).as_posix()
        for top in ("engine", "console")
        for folder in (ROOT / top, *(ROOT / top).rglob("*"))
        if (folder / "__init__.py").is_file()
        and folder.name != "migrations"
        and not folder.match("features/*/management")
        and not folder.match("features/*/management/commands")
    }
    assert rows == packages


def test_the_readme_is_short() -> None:
    """What is longer than a first look stands in ``docs/``."""
    assert len((ROOT / "README.md").read_text(encoding="utf-8").splitlines()) <= 150


def test_the_test_line_comes_first_under_its_heading() -> None:
    """``.ci/run`` runs the first fenced block under "## Test"."""
    section = (ROOT / "README.md").read_text(encoding="utf-8").partition("\n## Test\n")[2]
    block = re.search(r"```(\w*)\n(.*?)```", section, re.DOTALL)
    assert block is not None
    assert block[1] == "sh"
    assert "-m pytest" in block[2]
    assert "\n## " not in section[: block.start()]


def _mentions() -> list[tuple[str, str]]:
    """Return file and path for each page of ``docs/`` that another file names."""
    files = [*CODE_FILES, *MARKDOWN, ROOT / "compose.yaml", ROOT / "Dockerfile"]
    return [
        (file.relative_to(ROOT).as_posix(), path)
        for file in files
        if file.name != "CHANGELOG.md"  # tells of pages of its time
        for path in re.findall(r"\bdocs/[\w/-]+\.md", file.read_text(encoding="utf-8"))
    ]


def test_pages_that_code_names_are_there() -> None:
    """A page that is renamed takes the docstrings and messages that name it along."""
    assert len(_mentions()) >= 10
    assert [mention for mention in _mentions() if not (ROOT / mention[1]).exists()] == []


# -- what pages list -------------------------------------------------------------------------------


@pytest.mark.parametrize("service", [*SERVICES, STS, SCHEDULER], ids=lambda service: service.name)
def test_every_action_is_documented_with_its_role(service: ApiService) -> None:
    """The page of the API has each action in the row of the least role that may call it."""
    page = (ROOT / "docs/reference/api.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| (viewer|operator|editor|owner) \| (.*) \|$", page, re.MULTILINE)
    for action in service.handlers:
        role = least_role(service.permission(action))
        assert any(role == row and f"`{action}`" in actions for row, actions in rows), action


def test_every_quota_is_documented() -> None:
    """Settings have a row for each member of ``Quotas``."""
    page = (ROOT / "docs/reference/settings.md").read_text(encoding="utf-8")
    assert [quota.name for quota in fields(Quotas) if f"| `{quota.name}` |" not in page] == []


def test_every_page_of_the_console_is_documented() -> None:
    """The list of pages has the first part of each address."""
    page = (ROOT / "docs/reference/pages.md").read_text(encoding="utf-8")
    packages = get_resolver(PAGE_URLS).url_patterns  # each has the addresses of its own pages
    patterns = [pattern for package in packages for pattern in package.url_patterns]
    routes = {str(pattern.pattern).split("/")[0] for pattern in patterns}
    shown = {route for route in routes if route and not route.startswith("_") and "." not in route}
    assert len(shown) >= 20
    assert {route for route in shown if f"/{route}" not in page} <= {"logout", "preferences"}


def test_every_check_and_benchmark_is_documented() -> None:
    """The page of commands has each check of ``tests.chaos`` and each benchmark."""
    page = (ROOT / "docs/reference/commands.md").read_text(encoding="utf-8")
    assert [check for check in SCENARIOS if f"| `{check}` |" not in page] == []
    files = (ROOT / "tests/benchmarks").glob("[!_]*.py")
    assert [file.stem for file in files if f"{file.stem}`" not in page] == []


def test_every_key_is_documented() -> None:
    """The list of shortcuts has the keys that the pages' own help has."""
    page = (ROOT / "docs/reference/pages.md").read_text(encoding="utf-8")
    keys = re.findall(r"<kbd>(.*?)</kbd>", HELP.read_text(encoding="utf-8"))
    assert len(keys) >= 15
    assert [key for key in keys if f"`{key}`" not in page] == []


def test_the_features_of_the_console_are_those_that_tests_prove() -> None:
    """Rows, priorities and order of the page are those of ``tests.rows``."""
    page = (ROOT / "docs/reference/console-features.md").read_text(encoding="utf-8")
    listed = re.findall(r"^\| ([EX]\d+) \| P(\d) \|", page, re.MULTILINE)
    assert listed == [(row, str(priority)) for row, (priority, _) in ROWS.items()]


def test_the_invariants_are_those_that_are_checked() -> None:
    """The page has the ids that the checker reports, and no others."""
    files = (ROOT / "console/features/doctor").rglob("*.py")
    checked = {
        invariant
        for file in files
        for invariant in re.findall(r'"(I\d+)"', file.read_text("utf-8"))
    }
    page = (ROOT / "docs/reference/invariants.md").read_text(encoding="utf-8")
    assert set(re.findall(r"^\| (I\d+) \|", page, re.MULTILINE)) == checked
    assert len(checked) == 18


def test_the_words_of_the_engine_are_in_the_glossary() -> None:
    """The eight words stand first, as names of classes of the engine."""
    page = (ROOT / "docs/reference/glossary.md").read_text(encoding="utf-8")
    engine_words = page.partition("## The engine\n")[2].partition("\n## ")[0]
    words = re.findall(r"^\| ([A-Z]\w+) \|", engine_words, re.MULTILINE)
    assert words == ["Machine", "Run", "Frame", "Message", "Event", "Command", "Step", "Moment"]


# -- citations -------------------------------------------------------------------------------------


def test_citations_have_an_entry_in_the_docs() -> None:
    """A reader of the code can look up every id and mark that it cites."""
    entries = citations.defined()
    unknown = {
        citation: files for citation, files in citations.cited().items() if citation not in entries
    }
    assert unknown == {}


def test_citations_are_found() -> None:
    """The search above looks at comments, docstrings, names and marks of tests."""
    mentions = citations.cited()
    assert {"G14", "I7", "E11", "X5", "S2", "R1", "[recorded]"} <= set(mentions)
    text = (
        '"""Do it (G99)."""\nx = 1  # as I98 says\n@pytest.mark.row("E97")\ndef test_x96_y(): ...\n'
    )
    texts = [*citations.comments_of(text), *citations.statements_of(text)]
    assert {"G99", "I98", "E97", "X96"} == set(re.findall(r"[A-Z]\d\d", " ".join(texts)))


def test_every_guarantee_says_what_proves_it() -> None:
    """No row of the page of guarantees has an empty last cell."""
    page = (ROOT / "docs/reference/guarantees.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| G(\d+) \| .* \| (.+) \|$", page, re.MULTILINE)
    assert [number for number, _ in rows] == [str(number) for number in range(1, 19)]


_INSTALL = re.compile(r"\b(?:pip3?|pipx|uv|uvx|poetry)\b([^\n`]*)")
_OWN_REQUIREMENT = re.compile(r"(stateyard|stepyard)([_-]engine)?(\[[\w,]*\])?([=<>~!@].*)?")
_SUBCOMMANDS = ("pip", "install", "add", "inject", "run", "tool")


def installed_by_name(text: str) -> list[str]:
    """Return the commands of a text that install this project by its name from an index."""
    commands = []
    for match in _INSTALL.finditer(text):
        words = match[1].replace("'", " ").replace('"', " ").split()
        if not {"--from", "--spec", "uninstall"}.isdisjoint(words):
            continue
        is_install = match[0].startswith("uvx") or (words and words[0] in _SUBCOMMANDS)
        if is_install and any(_OWN_REQUIREMENT.fullmatch(word) for word in words):
            commands.append(match[0])
    return commands


def test_no_page_and_no_message_installs_this_project_by_name() -> None:
    """It is on no package index; a package of that name there is somebody else's program."""
    tracked = subprocess.check_output(["git", "ls-files"], cwd=ROOT, text=True).splitlines()
    files = [ROOT / name for name in tracked if not name.endswith((".png", ".lock"))]
    told = {
        str(path.relative_to(ROOT)): commands
        for path in files
        if path.is_file()
        and path != Path(__file__).resolve()
        and (commands := installed_by_name(path.read_text(encoding="utf-8")))
    }
    assert told == {}


@pytest.mark.parametrize(
    ("text", "by_name"),
    [
        ("pip install stateyard", True),
        ("pip install 'stateyard[parquet]'", True),
        ("uv pip install -q stateyard==0.3.0 pytest", True),
        ("pipx run stateyard up", True),
        ("uvx stateyard up", True),
        ("pip install stepyard-engine", True),
        ("pip install stateyard-0.3.0-py3-none-any.whl pytest", False),
        ("pip install git+https://example.com/stateyard", False),
        ("pipx run --spec stateyard-0.3.0-py3-none-any.whl stateyard up", False),
        ("`pip install` it, then `stateyard up`", False),
    ],
)
def test_a_command_that_installs_by_name_is_recognised(text: str, by_name: bool) -> None:
    """Each installer, with extras and versions; files and addresses are fine."""
    assert bool(installed_by_name(text)) is by_name
