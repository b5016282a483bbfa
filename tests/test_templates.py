"""The files of templates/ and static/: formatted, short lines, none without use."""

from __future__ import annotations

import re
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

from django.contrib.staticfiles import finders

from console.web.core import scope

if TYPE_CHECKING:
    import pytest

ROOT = Path(__file__).parent.parent
TEMPLATES = ROOT / "templates"
FILES = sorted(path for path in TEMPLATES.rglob("*") if path.is_file())
LONGEST_LINE = 160  # characters
LONGEST_SHEET = 500  # lines

_NAME = re.compile(r"""["']([a-z_]+(?:/[a-z_]+)*\.(?:html|svg))["']""")


def _named(text: str) -> set[str]:
    return {name for name in _NAME.findall(text) if "/" in name or name == "base.html"}


def test_no_line_of_a_template_is_longer_than_160_characters() -> None:
    """A reviewer reads a change of a template without scrolling sideways."""
    long = [
        f"{path.relative_to(ROOT)}:{number}: {len(line)}"
        for path in FILES
        for number, line in enumerate(path.read_text("utf-8").splitlines(), 1)
        if len(line) > LONGEST_LINE
    ]
    assert long == []


def test_each_template_is_named_by_a_view_or_a_template_and_each_name_exists() -> None:
    """No template is left over, and no name leads to a file that is missing."""
    sources = [*FILES, *(ROOT / "console").rglob("*.py")]
    named = set().union(*(_named(path.read_text("utf-8")) for path in sources))
    there = {path.relative_to(TEMPLATES).as_posix() for path in FILES}
    assert {name for name in named if not name.startswith("stateyard/")} == there


def test_the_colours_of_both_themes_stand_once() -> None:
    """light-dark() holds both colours; no rule repeats the dark ones for a system setting."""
    sheets = {path.name: path.read_text("utf-8") for path in (ROOT / "static").rglob("*.css")}
    repeated = [name for name, text in sheets.items() if "prefers-color-scheme" in text]
    assert repeated == []
    assert "--bg: light-dark(" in sheets["console.css"]


def test_style_sheets_have_one_subject_each() -> None:
    """No sheet has more than 500 lines: by then some of its rules belong to some pages only."""
    sheets = [*(ROOT / "static").rglob("*.css")]
    assert [
        path.name for path in sheets if path.read_text("utf-8").count("\n") > LONGEST_SHEET
    ] == []


def test_each_script_and_sheet_counts_for_the_version_in_addresses(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A browser keeps them for long: a change of any of them has to change their addresses."""
    shutil.copytree(ROOT / "static/stateyard", tmp_path, dirs_exist_ok=True)
    monkeypatch.setattr(
        finders, "find", lambda name: str(tmp_path) if name == "stateyard" else None
    )
    versions = {scope._static_version.__wrapped__()}
    files = sorted(tmp_path.iterdir())
    for path in files:
        with path.open("ab") as file:
            file.write(b" ")
        versions.add(scope._static_version.__wrapped__())
    assert len(versions) == 1 + len(files)
