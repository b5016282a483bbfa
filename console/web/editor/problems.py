"""List the problems of a definition with their places in its text."""

from __future__ import annotations

from dataclasses import dataclass

import engine


@dataclass(frozen=True, slots=True)
class Problem:
    """One line of the problems list; ``line``/``column`` count from 1, 0 if not known."""

    severe: bool
    code: str
    message: str
    location: str
    line: int
    column: int

    @property
    def tone(self) -> str:
        """Return the tone of its sign."""
        return "failed" if self.severe else "caught"


def problems_in(text: str) -> list[Problem]:
    """Return every error and warning, errors first."""
    problems = [
        Problem(
            diagnostic.severity == "ERROR",
            diagnostic.code,
            diagnostic.message,
            diagnostic.location,
            diagnostic.line or 0,
            diagnostic.column or 0,
        )
        for diagnostic in engine.check(text)
    ]
    return sorted(problems, key=lambda problem: not problem.severe)
