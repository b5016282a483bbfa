"""Helpers shared by the parsers of paths and of filters: quoted names, and the syntax error."""

from __future__ import annotations

import re

from engine.errors import EngineError

QUOTED = re.compile(r"""'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*\"""", re.DOTALL)


class PathSyntaxError(EngineError):
    """The text is not a valid JSONPath, intrinsic call or expression."""


def unquote(text: str) -> str:
    r"""Return the text between quotes, its escapes undone.

    A backslash escapes the quote around the text and a backslash; before any other character it is
    itself: ``['a\""']`` is the name ``a\""``.
    """
    return re.sub(rf"\\([\\{text[0]}])", r"\1", text[1:-1])
