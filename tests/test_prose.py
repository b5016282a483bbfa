"""Plain technical English: the first lines of docstrings, and the texts on pages."""

from __future__ import annotations

import ast
import re
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

_ROOT = Path(__file__).parents[1]
_PRONOUN = re.compile(r"\b(?:what|which|who|that|those|it|one)\b", re.IGNORECASE)
_MOST_PRONOUNS, _MOST_HEADLINES = 2, 60
_TEMPLATE_CODE = re.compile(
    r"\{#.*?#\}|\{% comment.*?endcomment %\}|\{%.*?%\}|\{\{.*?\}\}"
    r"|\b(?:class|id|name|href|hx-[a-z-]+|data-[a-z-]+|type|for|value)=\"[^\"]*\"|<!--.*?-->",
    re.DOTALL,
)
_NOT_YET = ("templates/execution/", "console/web/execution/")
"""The page of one execution is still to be reworded."""
_QUOTED = re.compile(r"\"[^\"]*\"|`[^`]*`")
_BANNED = re.compile(
    r"\b(?:those (?:that|of which|which)|of which|whoever|(?:is|are) told|goes? on|so many"
    r"|what (?:came|became|it|has|is|was) |[Pp]ress (?:a|an|the|it|each|<b>|\+)|as it (?:was|ran)"
    r"|takes? it back|are made up for|of itself|is none|somebody (?:who|with))\b",
)


def _headlines() -> list[tuple[str, str]]:
    """Return the place and first line of every docstring of the product."""
    lines = []
    for path in sorted((*(_ROOT / "engine").rglob("*.py"), *(_ROOT / "console").rglob("*.py"))):
        if "migrations" in path.parts:
            continue
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
                text = ast.get_docstring(node)
                if text:
                    name = getattr(node, "name", "")
                    lines.append((f"{path.relative_to(_ROOT)} {name}", text.splitlines()[0]))
    return lines


def _page_texts() -> Iterator[tuple[str, str]]:
    """Yield the place and text of templates, and of strings of scripts, views and forms."""
    for path in sorted((_ROOT / "templates").rglob("*.html")):
        yield str(path.relative_to(_ROOT)), _TEMPLATE_CODE.sub("", path.read_text(encoding="utf-8"))
    for path in sorted((_ROOT / "static").rglob("*.js")):
        for line in path.read_text(encoding="utf-8").splitlines():
            if not line.lstrip().startswith("//"):
                yield str(path.relative_to(_ROOT)), " ".join(_QUOTED.findall(line))
    for path in sorted((_ROOT / "console").rglob("*.py")):
        if {"web", "features"} & set(path.parts) and "doctor" not in path.parts:
            tree = ast.parse(path.read_text(encoding="utf-8"))
            prose = {
                id(node.value)
                for node in ast.walk(tree)
                if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
            }
            for text in (node for node in ast.walk(tree) if isinstance(node, ast.Constant)):
                if isinstance(text.value, str) and id(text) not in prose:
                    yield f"{path.relative_to(_ROOT)}:{text.lineno}", text.value


def test_texts_on_pages_are_plain() -> None:
    """No relative clause stands where a noun belongs, and nothing is pressed but keys."""
    texts = list(_page_texts())
    assert len(texts) > 1000
    vague = [
        f"{at}: {match[0]}"
        for at, text in texts
        for match in _BANNED.finditer(" ".join(text.split()))
        if not at.startswith(_NOT_YET)
    ]
    assert not vague, "\n".join(vague)


def test_headlines_of_docstrings_name_things() -> None:
    """A docstring starts with a verb and nouns: few have three relative pronouns or more."""
    lines = _headlines()
    assert len(lines) > 1000
    vague = [f"{at}: {line}" for at, line in lines if len(_PRONOUN.findall(line)) > _MOST_PRONOUNS]
    assert len(vague) <= _MOST_HEADLINES, "\n".join(vague)
