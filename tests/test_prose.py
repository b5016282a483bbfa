"""Plain technical English: first lines of docstrings, texts on pages, and names of variables."""

from __future__ import annotations

import ast
import re
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.architecture import survey

if TYPE_CHECKING:
    from collections.abc import Iterator

_ROOT = Path(__file__).parents[1]
_PRONOUN = re.compile(r"\b(?:what|which|who|that|those|it|one)\b", re.IGNORECASE)
_MOST_PRONOUNS, _MOST_HEADLINES = 2, 11
_TEMPLATE_CODE = re.compile(
    r"\{#.*?#\}|\{% comment.*?endcomment %\}|\{%.*?%\}|\{\{.*?\}\}"
    r"|\b(?:class|id|name|href|hx-[a-z-]+|data-[a-z-]+|type|for|value)=\"[^\"]*\"|<!--.*?-->",
    re.DOTALL,
)
_QUOTED = re.compile(r"\"[^\"]*\"|`[^`]*`")
_BANNED = re.compile(
    r"\b(?:those|(?:of|in) which|which AWS|whoever|somebody (?:who|with)|(?:is|are) told"
    r"|goes? on|so many|what (?:came|became|it|has|is|was) |as it (?:was|ran)|takes? it back"
    r"|[Pp]ress (?:a|an|the|it|each|<b>|\+)|are made up for|of itself|is none|of all of"
    r"|[Ll]ed (?:here|there)|[Ii]t (?:was|times out|started|ends)"
    r"|that (?:it|they) (?:started|has|have|had|was|were|names)|that (?:succeeded|failed|did not)"
    r"|that (?:have|has) not|that (?:was|were) (?:deleted|stopped|changed)|(?:can|may) be left out"
    r"|is another|one after the other|looked for|below it|keeps the old|has it|is here|come before"
    r"|wanted (?:a|an|one|at|to|\d+))\b|\b(?:got|Got) [“'{]|\bgot [^.]{0,80}wanted\b|: wanted\b",
)

_VAGUE_NAMES = {"found", "given", "left", "made", "one", "kept", "known", "wanted"}
_MOST_VAGUE_NAMES = 25
_SCOPES = (ast.Module, ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)


def _headlines() -> list[tuple[str, str]]:
    """Return the place and first line of every docstring of the product."""
    lines = []
    for module in survey().values():
        for node in ast.walk(module.tree):
            if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
                text = ast.get_docstring(node)
                if text:
                    name = getattr(node, "name", "")
                    lines.append((f"{module.place} {name}", text.splitlines()[0]))
    return lines


_NO_PAGES = {
    *("cli", "cli.py", "commands", "feature.py", "management"),
    *("coverage", "deploy", "doctor", "load"),
    *("trials", "evaluation", "files", "role_rehearsal.py", "scenarios"),
}
"""Folders and modules of features with the texts of commands."""


def _page_texts() -> Iterator[tuple[str, str]]:
    """Yield the place and text of templates, and of strings of scripts, views and forms."""
    for path in sorted((_ROOT / "templates").rglob("*.html")):
        yield str(path.relative_to(_ROOT)), _TEMPLATE_CODE.sub("", path.read_text(encoding="utf-8"))
    for path in sorted((_ROOT / "static").rglob("*.js")):
        for line in path.read_text(encoding="utf-8").splitlines():
            if not line.lstrip().startswith("//"):
                yield str(path.relative_to(_ROOT)), " ".join(_QUOTED.findall(line))
    for module in survey().values():
        if {"web", "features"} & set(module.path.parts) and not _NO_PAGES & set(module.path.parts):
            prose = {
                id(node.value)
                for node in ast.walk(module.tree)
                if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
            }
            for text in (node for node in ast.walk(module.tree) if isinstance(node, ast.Constant)):
                if isinstance(text.value, str) and id(text) not in prose:
                    yield f"{module.place}:{text.lineno}", text.value


def test_texts_on_pages_are_plain() -> None:
    """No relative clause stands where a noun belongs, and nothing is pressed but keys."""
    texts = list(_page_texts())
    assert len(texts) > 1000
    vague = [
        f"{at}: {match[0]}"
        for at, text in texts
        for match in _BANNED.finditer(" ".join(text.split()))
    ]
    assert not vague, "\n".join(vague)


def test_headlines_of_docstrings_name_things() -> None:
    """A docstring starts with a verb and nouns: few have three relative pronouns or more."""
    lines = _headlines()
    assert len(lines) > 1000
    vague = [f"{at}: {line}" for at, line in lines if len(_PRONOUN.findall(line)) > _MOST_PRONOUNS]
    assert len(vague) <= _MOST_HEADLINES, "\n".join(vague)


def _bound_names(scope: ast.AST) -> set[str]:
    """Return the variables and parameters of a module or function, without nested functions."""
    names = set()
    nodes = list(ast.iter_child_nodes(scope))
    while nodes:
        node = nodes.pop()
        match node:
            case (
                ast.Name(id=str(name), ctx=ast.Store())
                | ast.arg(arg=name)
                | ast.ExceptHandler(name=str(name))
                | ast.MatchAs(name=str(name))
                | ast.MatchStar(name=str(name))
            ):
                names.add(name)
        if not isinstance(node, _SCOPES):
            nodes.extend(ast.iter_child_nodes(node))
    return names


@pytest.mark.slow
def test_variables_carry_the_noun_of_their_value() -> None:
    """Few have one of eight vague names; most of these are a left side beside a right one."""
    folders = ("engine", "console", "tests")
    paths = [path for folder in folders for path in (_ROOT / folder).rglob("*.py")]
    vague = [
        f"{path.relative_to(_ROOT)}:{getattr(scope, 'lineno', 1)}: {name}"
        for path in sorted([*paths, _ROOT / "manage.py"])
        for scope in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(scope, _SCOPES)
        for name in _bound_names(scope) & _VAGUE_NAMES
    ]
    assert len(paths) > 1000
    assert len(vague) <= _MOST_VAGUE_NAMES, "\n".join(vague)
