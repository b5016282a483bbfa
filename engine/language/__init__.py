"""What is a state machine?

Text in, a checked and compiled Machine out, or every problem of the text.
"""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache
from typing import Any

from engine import jsontext
from engine.errors import DefinitionError, JsonTextError
from engine.language.build import build
from engine.language.diagnostics import (
    MISSING_END,
    MISSING_TARGET,
    NOT_JSON,
    Diagnostic,
    Problems,
)
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


def parse_state(text: str, state_name: str | None = None) -> tuple[Machine, str]:
    """Return a machine of one state, and the state's name, for trying it alone.

    ``text``: one state, or with ``state_name`` a whole definition that has it anywhere. Where its
    transitions lead does not matter. Raises ``DefinitionError``, or ``KeyError`` for an unknown
    name.
    """
    try:
        value = jsontext.loads(text, max_bytes=MAX_DEFINITION_BYTES)
    except JsonTextError as error:
        raise DefinitionError([_not_json(text, error)]) from None
    name = state_name or "StateName"
    alone: dict[str, Any] = {"StartAt": name, "States": {name: value}}
    if state_name is not None:
        alone["States"] = {name: _find(value, state_name)}
        if "QueryLanguage" in value:
            alone["QueryLanguage"] = value["QueryLanguage"]
    problems = Problems()
    machine = build(alone, text, express=False, problems=problems)
    errors = [one for one in problems.errors if one.code not in (MISSING_TARGET, MISSING_END)]
    if errors or machine is None:
        raise DefinitionError([_with_detail(one) for one in errors])
    return machine, name


def _with_detail(problem: Diagnostic) -> Diagnostic:
    """Return a problem whose message names JSONata's own code, for who tries a state."""
    if not problem.detail:
        return problem
    return replace(problem, message=f"{problem.message} ({problem.detail})")


def _find(definition: Any, name: str) -> Any:
    """Return a state of a definition, at any depth; raise ``KeyError``."""
    blocks = [definition]
    while blocks:
        block = blocks.pop()
        states = block.get("States") if isinstance(block, dict) else None
        if not isinstance(states, dict):
            continue
        if name in states:
            return states[name]
        for state in states.values():
            if isinstance(state, dict):
                branches = state.get("Branches")
                blocks += [state.get("ItemProcessor"), state.get("Iterator")]
                blocks += branches if isinstance(branches, list) else []
    raise KeyError(name)


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


__all__ = ["Diagnostic", "Machine", "check", "parse", "parse_state"]
