"""Hooks of mkdocs: the pages that stand beside ``docs/``, and the order of the menu.

The order is that of ``docs/README.md`` and ``docs/explanation/decisions/README.md``, so a page is
listed once. README, CONTRIBUTING, SECURITY and CHANGELOG become pages of the site. Links to other
files of the repository have no page, and become plain text.
"""

from __future__ import annotations

import posixpath
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mkdocs.structure.files import File

if TYPE_CHECKING:
    from mkdocs.config.defaults import MkDocsConfig
    from mkdocs.structure.files import Files
    from mkdocs.structure.pages import Page

ROOT = Path(__file__).resolve().parent.parent
BESIDE = {
    "README.md": "project/stateyard.md",
    "CONTRIBUTING.md": "project/contributing.md",
    "SECURITY.md": "project/security.md",
    "CHANGELOG.md": "project/changelog.md",
}
"""Files at the top of the repository -> where the site has them."""
_TITLES = ("Stateyard", "Contributing", "Security", "Changelog")
_LINK = re.compile(r"(!?)\[((?:[^\[\]]|\[[^\]]*\])*)\]\((?!\w+:|#)([^)#\s]*)(#[^)]*)?\)")
_ENTRY = re.compile(r"^(?:\||\*|\d+\.) *\[([^\]]+)\]\((?!\w+:)([^)#]+\.md)\)", re.MULTILINE)
_ROW = re.compile(r"(?:\||\*) *\[([^\]]+)\]\((?!\w+:)([^)#]+\.md)\)(?: *\||:)([^|]*)")
_SECTION = re.compile(r"^## (.+)$", re.MULTILINE)
_DECISIONS = "explanation/decisions/README.md"


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Make the menu of the lists in the two pages of contents."""
    parts = _SECTION.split((ROOT / "docs/README.md").read_text(encoding="utf-8"))
    sections = zip(parts[1::2], parts[2::2], strict=True)
    menu: list[Any] = [{"Contents": "README.md"}]
    for title, text in sections:
        entries: list[Any] = [{name: path} for name, path in _ENTRY.findall(text)]
        decisions = [entry for entry in entries if _DECISIONS in entry.values()]
        for entry in decisions:
            entries[entries.index(entry)] = {"Decisions": _decisions()}
        menu.append({title: entries})
    menu.append({"Project": [dict([pair]) for pair in zip(_TITLES, BESIDE.values(), strict=True)]})
    config.nav = menu
    return config


def _decisions() -> list[Any]:
    page = ROOT / "docs" / _DECISIONS
    entries = re.findall(r"\[([^\]]+)\]\(([\w-]+\.md)\)", page.read_text(encoding="utf-8"))
    folder = posixpath.dirname(_DECISIONS)
    return [{"Contents": _DECISIONS}, *({name: f"{folder}/{path}"} for name, path in entries)]


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages that stand beside ``docs/``, and ``llms.txt``."""
    for source, address in BESIDE.items():
        text = (ROOT / source).read_text(encoding="utf-8")
        files.append(File.generated(config, address, content=text))
    files.append(File.generated(config, "llms.txt", content=_llms_text(config)))
    return files


def _llms_text(config: MkDocsConfig) -> str:
    """Return the contents of the site for language models (llmstxt.org)."""
    pages = (ROOT / "docs/README.md").read_text(encoding="utf-8")
    lines = [f"# {config.site_name}", "", f"> {config.site_description}", ""]
    for line in pages.splitlines():
        row = _ROW.match(line)
        if line.startswith("## "):
            lines += ["", line, ""]
        elif row is not None:
            folder, _, file = row[2].removesuffix(".md").rpartition("/")
            address = folder if file == "README" else f"{folder}/{file}"
            lines.append(f"- [{row[1]}]({address}/): {row[3].strip()}")
    return "\n".join(lines) + "\n"


def on_page_markdown(markdown: str, *, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Let links lead to pages of the site, whatever folder of the repository they were made for."""
    del config
    source = page.file.src_uri
    original = next((name for name, at in BESIDE.items() if at == source), f"docs/{source}")
    here, site = posixpath.dirname(original), posixpath.dirname(source)

    def lead(link: re.Match[str]) -> str:
        image, words, target, anchor = link[1], link[2], link[3], link[4] or ""
        path = posixpath.normpath(posixpath.join(here, target)) if target else original
        address = BESIDE.get(path, path.removeprefix("docs/") if path.startswith("docs/") else "")
        if not address or files.get_file_from_path(address) is None:
            return words
        return f"{image}[{words}]({posixpath.relpath(address, site or '.')}{anchor})"

    return _outside_of_code(markdown, lead)


def _outside_of_code(markdown: str, lead: Any) -> str:
    parts = re.split(r"(^```.*?^```\s*?$)", markdown, flags=re.MULTILINE | re.DOTALL)
    return "".join(
        part if number % 2 else _LINK.sub(lead, part) for number, part in enumerate(parts)
    )
