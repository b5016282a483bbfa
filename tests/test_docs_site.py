"""The site of the documentation is made without a warning, and has every page in its menu."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow  # mkdocs is in the extra test-full
ROOT = Path(__file__).parent.parent


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of the site; a link that leads nowhere ends the build."""
    folder = tmp_path_factory.mktemp("site")
    done = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(folder)],
        cwd=ROOT,
        env={**os.environ, "NO_MKDOCS_2_WARNING": "1"},
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    assert "not included in the" not in done.stderr, done.stderr
    return folder


def test_every_page_is_there(site: Path) -> None:
    """Also those that stand beside ``docs/``, and pictures."""
    for page in (ROOT / "docs").rglob("*.md"):
        path = page.relative_to(ROOT / "docs").with_suffix("")
        address = site / (path.parent if path.name == "README" else path) / "index.html"
        assert address.exists(), address
    for name in ("stateyard", "contributing", "security", "changelog"):
        assert (site / "project" / name / "index.html").exists(), name
    assert (site / "images/activity-timeouts.svg").exists()


def test_links_between_both_are_kept(site: Path) -> None:
    """From the README into the documentation, and back; other files become plain text."""
    readme = (site / "project/stateyard/index.html").read_text(encoding="utf-8")
    assert 'href="../../how-to/clients/"' in readme
    clients = (site / "how-to/clients/index.html").read_text(encoding="utf-8")
    assert 'href="../../project/stateyard/#first-call"' in clients
    contents = (site / "index.html").read_text(encoding="utf-8")
    assert 'href="project/contributing/"' in contents


def test_it_asks_no_other_server_for_fonts(site: Path) -> None:
    """A page may be read in a network of its own."""
    assert "fonts.googleapis.com" not in (site / "index.html").read_text(encoding="utf-8")


def test_language_models_get_the_contents(site: Path) -> None:
    """``llms.txt`` has every page of the contents, with its description."""
    text = (site / "llms.txt").read_text(encoding="utf-8")
    assert text.startswith("# Stateyard\n\n> ")
    links = re.findall(r"^- \[[^\]]+\]\(([^)]+)/\): \S", text, re.MULTILINE)
    assert len(links) > 50
    assert {"how-to/agents", "explanation/architecture", "tutorial/quickstart"} <= {*links}
    assert not [link for link in links if not (site / link / "index.html").exists()]
