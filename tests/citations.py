"""Find what comments, docstrings and names of tests cite, and what the documentation defines.

A citation is the id of a row (``G14``, ``I7``, ``E16``, ...) or a mark of where a fact comes from
(``[recorded]``). Each must have an entry under ``docs/``, so that a reader can look it up.
"""

from __future__ import annotations

import ast
import io
import re
import tokenize
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).parent.parent
CODE = ("engine", "console", "tests")
MARKS = ("recorded", "measured", "documented")
_ID = re.compile(r"\b[A-Z]\d{1,2}\b")
_MARK = re.compile(rf"\[(?:{'|'.join(MARKS)})\]")
_TEST_NAME = re.compile(r"(?i:test_([a-z]\d{1,2})_)")
_CITATION = rf"{_ID.pattern}|{_MARK.pattern}"
_MAY_CITE = re.compile(rf"{_CITATION}|{_TEST_NAME.pattern}")
_COMMENT_MAY_CITE = re.compile(rf"#.*?(?:{_CITATION})")
_TEMPLATE_COMMENT = re.compile(r"\{#(.*?)#\}|\{% comment %\}(.*?)\{% endcomment %\}", re.DOTALL)
_ENTRY = re.compile(r"^\| (?P<id>[A-Z]\d{1,2}) \||^#+ `(?P<mark>\[\w+\])`$", re.MULTILINE)


@cache
def cited() -> dict[str, set[str]]:
    """Return each citation of code, tests and templates with the files that have it."""
    places: dict[str, set[str]] = {}
    for path, text in _texts():
        for citation in (*_ID.findall(text), *_MARK.findall(text)):
            places.setdefault(citation, set()).add(path.relative_to(ROOT).as_posix())
    return places


def defined() -> set[str]:
    """Return what has an entry: the first cell of a table's row, or a heading in code type."""
    pages = (page.read_text(encoding="utf-8") for page in (ROOT / "docs").rglob("*.md"))
    return {match["id"] or match["mark"] for page in pages for match in _ENTRY.finditer(page)}


def _texts() -> Iterator[tuple[Path, str]]:
    """Yield each file with the texts in it that are written for readers of the code."""
    for folder in CODE:
        for path in sorted((ROOT / folder).rglob("*.py")):
            if "migrations" not in path.parts:
                source = path.read_text(encoding="utf-8")
                if _MAY_CITE.search(source):  # parsing takes most of the time
                    texts = [*statements_of(source)]
                    if _COMMENT_MAY_CITE.search(source):
                        texts += comments_of(source)
                    yield path, "\n".join(texts)
    for path in sorted((ROOT / "templates").rglob("*")):
        if path.is_file():
            comments = _TEMPLATE_COMMENT.findall(path.read_text(encoding="utf-8"))
            yield path, "\n".join("".join(groups) for groups in comments)


def comments_of(source: str) -> Iterator[str]:
    """Yield the comments of a Python file."""
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT:
            yield token.string


def statements_of(source: str) -> Iterator[str]:
    """Yield docstrings, also of constants, and the ids in names and marks of tests."""
    for node in ast.walk(ast.parse(source)):
        match node:
            case ast.Expr(value=ast.Constant(value=str() as text)):
                yield text
            case ast.FunctionDef(name=name):
                named = _TEST_NAME.match(name)
                if named:
                    yield named[1].upper()
            case ast.Call(func=ast.Attribute(attr="row"), args=arguments) if (
                ast.unparse(node.func) == "pytest.mark.row"
            ):
                yield from (str(ast.literal_eval(argument)) for argument in arguments)
