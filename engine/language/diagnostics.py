"""The problems of a definition, as validation reports them: code, message, location, severity."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from enum import StrEnum

from engine.data.jsonata import JsonataSyntaxError
from engine.data.stored_rules import reads_stored


class Severity(StrEnum):
    """The severity of a problem, with the values of ValidateStateMachineDefinition."""

    ERROR = "ERROR"  # the service refuses the definition
    WARNING = "WARNING"  # the service accepts it, but it is probably a mistake


class DiagnosticCode(StrEnum):
    """The code of a problem: the service's code if it has one."""

    SCHEMA = "SCHEMA_VALIDATION_FAILED"  # a field is missing, unknown or has a wrong value
    NOT_JSON = "INVALID_JSON_DESCRIPTION"  # the text is no JSON
    INVALID_JSONATA = "INVALID_JSONATA_EXPRESSION"  # a JSONata expression is no JSONata
    UNSUPPORTED_JSONATA = "UNSUPPORTED_JSONATA_EXPRESSION"  # an expression reads a missing value
    MISSING_TARGET = "MISSING_TRANSITION_TARGET"  # a missing target, or an unreachable state
    MISSING_END = "MISSING_END_STATE"  # a block without an end
    DUPLICATE_STATE = "DUPLICATE_STATE_NAME"  # two states with the same name
    INVALID_STATE_NAME = "INVALID_STATE_NAME"  # the name is empty or too long
    DUPLICATE_LABEL = "DUPLICATE_LABEL_NAME"  # two distributed Maps with the same Label
    INVALID_LABEL = "INVALID_LABEL_NAME"  # the Label is empty, too long or has special characters
    RESERVED_VARIABLE = "RESERVED_VARIABLE_NAME"  # Assign writes $states
    INVALID_VARIABLE = "INVALID_VARIABLE_NAME"  # bad name, or one of an outer block
    TOO_DEEP = "TOO_DEEPLY_NESTED"  # branches in branches beyond the limit
    NO_DOLLAR = "NO_DOLLAR"  # a value looks like a path, but its key does not end in ".$"
    STATIC_RESULT = "PASS_RESULT_IS_STATIC"  # a Pass has ".$" keys in Result, which is literal
    INLINE_IGNORED = "IGNORED_IN_INLINE_MAP"  # a field that has an effect in a distributed Map only
    INLINE_FAILS = "UNSUPPORTED_IN_INLINE_MAP"  # a field that makes an inline Map fail
    CATCH_UNUSED = "UNREACHABLE_CATCH"  # an entry after one for all errors
    MISSING_PERMISSION = "MISSING_PERMISSION"  # the role lacks one; only the linter reads roles


@dataclass(frozen=True, slots=True)
class Diagnostic:
    """One problem of a definition.

    ``location``: a pointer such as ``/States/Pay/Next``, as the service writes it; "" for the whole
    text. ``line`` and ``column`` count from 1; None where the place is not in the text.

    ``detail``: JSONata's code of a syntax error; only TestState returns it.
    """

    severity: Severity
    code: DiagnosticCode
    message: str
    location: str = ""
    line: int | None = None
    column: int | None = None
    detail: str = ""

    def __str__(self) -> str:
        """Return the problem as InvalidDefinition lists it."""
        place = self.location
        if self.code is DiagnosticCode.MISSING_END:
            place = place or "null"  # what the service writes for a problem of the whole workflow
        adds_place = place and place not in self.message
        return f"{self.code}: {self.message}" + (f" at {place}" if adds_place else "")


@dataclass
class Problems:
    """A collector of problems, so that one check reports all of them."""

    diagnostics: list[Diagnostic] = field(default_factory=list)

    def error(
        self,
        location: str,
        message: str,
        code: DiagnosticCode = DiagnosticCode.SCHEMA,
        detail: str = "",
    ) -> None:
        """Add a problem that the service rejects."""
        self.diagnostics.append(Diagnostic(Severity.ERROR, code, message, location, detail=detail))

    def newer_error(
        self, location: str, message: str, code: DiagnosticCode = DiagnosticCode.SCHEMA
    ) -> None:
        """Add a problem that the service rejects, but earlier releases accepted.

        A stored definition keeps running, so this adds nothing while one is read.
        """
        if not reads_stored():
            self.error(location, message, code)

    def jsonata_error(self, location: str, error: Exception | None, otherwise: str) -> None:
        """Add the problem of a JSONata expression; ``otherwise``: the message of other errors."""
        if not isinstance(error, JsonataSyntaxError):
            self.error(location, otherwise)
            return
        for message in error.messages:
            self.error(location, message, DiagnosticCode(error.code), error.jsonata_code)

    def warning(self, location: str, message: str, code: DiagnosticCode) -> None:
        """Add a problem that the service accepts, although it is probably a mistake."""
        self.diagnostics.append(Diagnostic(Severity.WARNING, code, message, location))

    @property
    def errors(self) -> list[Diagnostic]:
        """Return the diagnostics that make the definition invalid."""
        return [
            diagnostic for diagnostic in self.diagnostics if diagnostic.severity is Severity.ERROR
        ]

    def placed(self, places: dict[str, tuple[int, int]]) -> list[Diagnostic]:
        """Return all diagnostics, errors first, with their lines and columns."""
        ordered = [
            *self.errors,
            *(
                diagnostic
                for diagnostic in self.diagnostics
                if diagnostic.severity is Severity.WARNING
            ),
        ]
        return [_with_position(diagnostic, places) for diagnostic in ordered]


def _with_position(diagnostic: Diagnostic, places: dict[str, tuple[int, int]]) -> Diagnostic:
    """Return the diagnostic with line and column of its location.

    A missing field has no place in the text, so it gets the place of the nearest object around it.
    """
    pointer = "" if diagnostic.location == "/" else diagnostic.location
    while pointer and pointer not in places:
        pointer = pointer.rpartition("/")[0]
    line, column = places.get(pointer, (None, None))
    return replace(diagnostic, line=line, column=column)
