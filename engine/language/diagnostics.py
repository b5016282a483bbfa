"""What is wrong with a definition, where, and how badly?"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from engine.data.jsonata import JsonataSyntaxError

SCHEMA = "SCHEMA_VALIDATION_FAILED"
NOT_JSON = "INVALID_JSON_DESCRIPTION"
MISSING_TARGET = "MISSING_TRANSITION_TARGET"
MISSING_END = "MISSING_END_STATE"
DUPLICATE_STATE = "DUPLICATE_STATE_NAME"
INVALID_STATE_NAME = "INVALID_STATE_NAME"
DUPLICATE_LABEL = "DUPLICATE_LABEL_NAME"
INVALID_LABEL = "INVALID_LABEL_NAME"
TOO_DEEP = "TOO_DEEPLY_NESTED"
NO_DOLLAR = "NO_DOLLAR"
NO_PATH = "NO_PATH"
STATIC_RESULT = "PASS_RESULT_IS_STATIC"
UNKNOWN_RESOURCE = "UNKNOWN_RESOURCE"
INLINE_IGNORED = "IGNORED_IN_INLINE_MAP"
CATCH_UNUSED = "UNREACHABLE_CATCH"


@dataclass(frozen=True, slots=True)
class Diagnostic:
    """One problem. ``location``.

    ``/States/Pay/Next`` as the service writes it, "" for the whole text.

    ``line`` and ``column`` count from 1; None where the place is not in the text.

    ``detail``: JSONata's own code of a syntax error, which only TestState tells.
    """

    severity: str  # ERROR | WARNING
    code: str
    message: str
    location: str = ""
    line: int | None = None
    column: int | None = None
    detail: str = ""

    def __str__(self) -> str:
        """Return the problem as InvalidDefinition lists it."""
        told = self.location and self.location not in self.message
        return f"{self.code}: {self.message}" + (f" at {self.location}" if told else "")


@dataclass
class Problems:
    """A collector: checking goes on after a problem, so that all of them are told at once."""

    found: list[Diagnostic] = field(default_factory=list)

    def error(self, location: str, message: str, code: str = SCHEMA, detail: str = "") -> None:
        """Note what the service refuses."""
        self.found.append(Diagnostic("ERROR", code, message, location, detail=detail))

    def jsonata_error(self, location: str, error: Exception | None, otherwise: str) -> None:
        """Note why a JSONata expression is refused; ``otherwise``: what any other error means."""
        if not isinstance(error, JsonataSyntaxError):
            self.error(location, otherwise)
            return
        for message in error.messages:
            self.error(location, message, error.code, error.jsonata_code)

    def warning(self, location: str, message: str, code: str) -> None:
        """Note what the service accepts but the author hardly meant."""
        self.found.append(Diagnostic("WARNING", code, message, location))

    @property
    def errors(self) -> list[Diagnostic]:
        """Those that make the definition invalid."""
        return [one for one in self.found if one.severity == "ERROR"]

    def placed(self, places: dict[str, tuple[int, int]]) -> list[Diagnostic]:
        """Return all, errors first, with line and column from pointer -> place."""
        ordered = [*self.errors, *(one for one in self.found if one.severity == "WARNING")]
        return [_placed(one, places) for one in ordered]


def _placed(one: Diagnostic, places: dict[str, tuple[int, int]]) -> Diagnostic:
    """Look the location up, or the nearest one around it that is in the text."""
    pointer = "" if one.location == "/" else one.location
    while pointer and pointer not in places:
        pointer = pointer.rpartition("/")[0]
    line, column = places.get(pointer, (None, None))
    return replace(one, line=line, column=column)
