"""List the problems of a definition in the editor, with their places in the text."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

import engine

if TYPE_CHECKING:
    from console.features.editor.conversion import ForeignText, YamlError

_PLACE = r"\[Source: .*?; line: (\d+), column: \d+\]"
_BEGINS = re.compile(rf" starting at {_PLACE}| \(start marker at {_PLACE}\)", re.DOTALL)
"""AWS's words for the beginning of an unclosed object or array."""

_END_OF_LINE = "(CTRL-CHAR, code 10)"


@dataclass(frozen=True, slots=True)
class Problem:
    """One line of the problems list; ``line``/``column`` count from 1, 0 if unknown."""

    severe: bool
    code: str
    message: str
    location: str
    line: int
    column: int

    @property
    def tone(self) -> str:
        """Return the tone of its icon."""
        return "failed" if self.severe else "caught"


def list_problems(text: str, type: str, foreign: ForeignText) -> list[Problem]:  # noqa: A002
    """Return the problems of the editor's text; for invalid YAML, the YAML errors."""
    if foreign.error:
        return [_problem_of_yaml(foreign.error)]
    return [] if foreign.is_convertible else problems_in(text, type)


def _problem_of_yaml(error: YamlError) -> Problem:
    message = f"Neither JSON nor YAML: {error.message}"
    return Problem(True, "INVALID_JSON_DESCRIPTION", message, "", error.line, error.column)


def problems_in(text: str, type: str = engine.MachineType.STANDARD) -> list[Problem]:  # noqa: A002
    """Return every error and warning of a definition for a type of machine, errors first."""
    problems = [
        Problem(
            diagnostic.severity == "ERROR",
            diagnostic.code,
            _short_message(diagnostic),
            _short_location(diagnostic),
            diagnostic.line or 0,
            diagnostic.column or 0,
        )
        for diagnostic in engine.check(text, type)
    ]
    return sorted(problems, key=lambda problem: not problem.severe)


def _short_message(diagnostic: engine.Diagnostic) -> str:
    """Return a message without the definition, which AWS's parser repeats in it.

    A line that ends inside a text indicates a missing quotation mark.
    """
    if _END_OF_LINE in diagnostic.message:
        return "A text has no closing quotation mark in its line."
    message = _BEGINS.sub(lambda place: f" at line {place[1] or place[2]}", diagnostic.message)
    return message.partition("\n at [Source:")[0]


def _short_location(diagnostic: engine.Diagnostic) -> str:
    return "" if diagnostic.location.startswith("[Source:") else diagnostic.location
