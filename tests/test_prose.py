"""Plain technical English: the first lines of docstrings, and the texts on pages."""

from __future__ import annotations

import ast
import re
from pathlib import Path

_ROOT = Path(__file__).parents[1]
_PRONOUN = re.compile(r"\b(?:what|which|who|that|those|it|one)\b", re.IGNORECASE)
_MOST_PRONOUNS, _MOST_HEADLINES = 2, 60


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


def test_headlines_of_docstrings_name_things() -> None:
    """A docstring starts with a verb and nouns: few have three relative pronouns or more."""
    lines = _headlines()
    assert len(lines) > 1000
    vague = [f"{at}: {line}" for at, line in lines if len(_PRONOUN.findall(line)) > _MOST_PRONOUNS]
    assert len(vague) <= _MOST_HEADLINES, "\n".join(vague)
