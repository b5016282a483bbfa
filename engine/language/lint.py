"""How does a linter tell the problems of a definition?  As text, JSON, or GitHub annotations.

Two problems are told in the words that users know from statelint: a ``StartAt`` that leads
nowhere, and a state that nothing leads to.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from engine import jsontext
from engine.language.diagnostics import MISSING_TARGET

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from engine.language.diagnostics import Diagnostic

_START = re.compile(r"Missing 'StartAt' target: (.*)", re.DOTALL)
_UNREACHED = re.compile(r'State "(.*)" is not reachable\.', re.DOTALL)


def words(one: Diagnostic) -> str:
    """Return a problem in a linter's words."""
    if one.code == MISSING_TARGET:
        place = _place(one.location)
        if match := _START.fullmatch(one.message):
            return f"StartAt value {match[1]} not found in States field at {place}"
        if match := _UNREACHED.fullmatch(one.message):
            return f"No transition found to state {place}"
    return str(one)


def _place(location: str) -> str:
    """Return ``State Machine.A.B`` for ``/States/A/Branches[0]/States/B``."""
    names = re.findall(r"/States/([^/]+)", location)
    return ".".join(["State Machine", *names])


def as_text(name: str, found: Sequence[Diagnostic]) -> str:
    """Return one line a problem, as compilers write them, after a line that counts the errors."""
    errors = sum(one.severity == "ERROR" for one in found)
    noun = "error" if errors == 1 else "errors"
    lines = [f"{name}: {errors} {noun}" + (":" if found else "")]
    for one in found:
        at = f":{one.line}:{one.column}" if one.line else ""
        lines.append(f"{name}{at}: {one.severity.lower()}: {words(one)}")
    return "\n".join(lines)


def as_json(name: str, found: Sequence[Diagnostic]) -> str:
    """Return an object with the file's name and its problems."""
    problems: list[dict[str, Any]] = [
        {
            "severity": one.severity,
            "code": one.code,
            "message": one.message,
            "location": one.location,
            "line": one.line,
            "column": one.column,
        }
        for one in found
    ]
    return jsontext.dumps({"file": name, "problems": problems})


def as_github(name: str, found: Sequence[Diagnostic]) -> str:
    """Return workflow commands that annotate the lines of a pull request."""
    return "\n".join(
        f"::{one.severity.lower()} file={name},line={one.line or 1},col={one.column or 1}::"
        + words(one).replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")
        for one in found
    )


FORMATS: dict[str, Callable[[str, Sequence[Diagnostic]], str]] = {
    "text": as_text,
    "json": as_json,
    "github": as_github,
}
