"""What is a state machine?

Text in, a checked and compiled Machine out, or every problem of the text.
"""

from __future__ import annotations

from functools import lru_cache

from engine import jsontext
from engine.errors import DefinitionError, JsonTextError
from engine.language.build import build
from engine.language.diagnostics import NOT_JSON, Diagnostic, Problems
from engine.language.model import Machine
from engine.language.positions import positions

MAX_DEFINITION_BYTES = 1_048_576
_SHOWN = 500  # characters of a text that is not JSON


def parse(text: str, type: str = "STANDARD") -> Machine:  # noqa: A002 - AWS's name of the field
    """Return the machine of a definition.

    Raise ``DefinitionError`` with every problem that is an error.

    ``type``: STANDARD or EXPRESS, which supports less. Compiled once per text.
    """
    machine, diagnostics = _read(text, type)
    if machine is None:
        raise DefinitionError([one for one in diagnostics if one.severity == "ERROR"])
    return machine


def check(text: str, type: str = "STANDARD") -> list[Diagnostic]:  # noqa: A002
    """Return every error and warning of a definition, errors first; an empty list is a good one."""
    return list(_read(text, type)[1])


@lru_cache(maxsize=1024)
def _read(text: str, type: str) -> tuple[Machine | None, tuple[Diagnostic, ...]]:  # noqa: A002
    problems = Problems()
    if not text.strip():
        problems.error("", "Definition must be a valid JSON object")
        return None, tuple(problems.found)
    try:
        value = jsontext.loads(text, max_bytes=MAX_DEFINITION_BYTES)
    except JsonTextError as error:
        return None, (_not_json(text, error),)
    machine = build(value, text, express=type == "EXPRESS", problems=problems)
    if not problems.found:
        return machine, ()
    diagnostics = tuple(problems.placed(positions(text)))
    return (None if problems.errors else machine), diagnostics


def _not_json(text: str, error: JsonTextError) -> Diagnostic:
    """Tell what the service's parser tells, with its own way to name the place [recorded]."""
    if not error.line:
        return Diagnostic("ERROR", NOT_JSON, str(error))
    shown = text if len(text) <= _SHOWN else text[:_SHOWN] + "..."
    place = f'[Source: (String)"{shown}"; line: {error.line}, column: {error.column}]'
    message = f"{error}\n at {place}"
    return Diagnostic("ERROR", NOT_JSON, message, place, error.line, error.column)


__all__ = ["Diagnostic", "Machine", "check", "parse"]
