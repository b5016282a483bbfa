"""Format diagnostics for the linter's output: text, JSON, or GitHub annotations.

Two problems have statelint's wording, which users know: a ``StartAt`` without a state, and a state
without a transition to it.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from engine import jsontext
from engine.language.diagnostics import DiagnosticCode, Severity

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from engine.language.diagnostics import Diagnostic

_TARGET = re.compile(r"Missing 'Next' target: (.*)", re.DOTALL)
_UNREACHED = re.compile(r'State "(.*)" is not reachable\.', re.DOTALL)


def linter_message(diagnostic: Diagnostic) -> str:
    """Return the message of a problem in the linter's wording."""
    if diagnostic.code == DiagnosticCode.MISSING_TARGET:
        place = _statelint_place(diagnostic.location)
        match = _TARGET.fullmatch(diagnostic.message)
        if match and diagnostic.location.endswith("/StartAt"):
            return f"StartAt value {match[1]} not found in States field at {place}"
        if match := _UNREACHED.fullmatch(diagnostic.message):
            return f"No transition found to state {place}"
    if diagnostic.code == DiagnosticCode.NOT_JSON:
        # The other lines repeat the text and the place, which the prefix has already.
        return f"{diagnostic.code}: {diagnostic.message.partition(chr(10))[0]}"
    return str(diagnostic)


def _statelint_place(location: str) -> str:
    """Return ``State Machine.A.B`` for ``/States/A/Branches[0]/States/B``."""
    names = re.findall(r"/States/([^/]+)", location)
    return ".".join(["State Machine", *names])


def as_text(name: str, diagnostics: Sequence[Diagnostic]) -> str:
    """Return a line with the number of errors, then one line for each problem."""
    errors = sum(diagnostic.severity is Severity.ERROR for diagnostic in diagnostics)
    noun = "error" if errors == 1 else "errors"
    lines = [f"{name}: {errors} {noun}" + (":" if diagnostics else "")]
    for diagnostic in diagnostics:
        at = f":{diagnostic.line}:{diagnostic.column}" if diagnostic.line else ""
        lines.append(f"{name}{at}: {diagnostic.severity.lower()}: {linter_message(diagnostic)}")
    return "\n".join(lines)


def as_json(name: str, diagnostics: Sequence[Diagnostic]) -> str:
    """Return a JSON object with the file's name and its problems."""
    problems: list[dict[str, Any]] = [
        {
            "severity": diagnostic.severity,
            "code": diagnostic.code,
            "message": diagnostic.message,
            "location": diagnostic.location,
            "line": diagnostic.line,
            "column": diagnostic.column,
        }
        for diagnostic in diagnostics
    ]
    return jsontext.dumps({"file": name, "problems": problems})


def as_github(name: str, diagnostics: Sequence[Diagnostic]) -> str:
    """Return GitHub workflow commands that annotate the lines of a pull request."""
    return "\n".join(
        f"::{diagnostic.severity.lower()} file={name},"
        f"line={diagnostic.line or 1},col={diagnostic.column or 1}::"
        + linter_message(diagnostic).replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")
        for diagnostic in diagnostics
    )


FORMATS: dict[str, Callable[[str, Sequence[Diagnostic]], str]] = {
    "text": as_text,
    "json": as_json,
    "github": as_github,
}
