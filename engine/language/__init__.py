"""Parse and validate ASL definitions: text in, a compiled ``Machine`` or all its problems out.

There are five stages. ``jsontext`` parses the text. ``build`` walks through the value once, checks
every field against the table in ``fields``, and compiles paths, templates and expressions.
``transitions`` checks each block as a graph. ``positions`` finds the lines and columns of the
problems. ``parameters`` checks the parameters of Tasks against the fields of their actions, except
for stored definitions. Parsing continues after a problem, so that an author sees all problems at
once. A definition with an error never becomes a Machine.
"""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from engine import jsontext
from engine.data.stored_rules import stored_definition
from engine.errors import DefinitionError, JsonTextError
from engine.language import platform
from engine.language.build import build
from engine.language.diagnostics import Diagnostic, DiagnosticCode, Problems, Severity
from engine.language.duplicates import check_repeated_names
from engine.language.model import Machine, MachineType
from engine.language.parameters import check_parameters, find_unsupported_fields
from engine.language.platform import current_platform
from engine.language.positions import find_positions

if TYPE_CHECKING:
    from engine.language.platform import Platform

MAX_DEFINITION_BYTES = 1_048_576
_SHOWN = 500  # characters of a text that is not JSON


def parse(text: str, type: str = MachineType.STANDARD) -> Machine:  # noqa: A002 - AWS's name of the field
    """Return the machine of a definition; raise ``DefinitionError`` if it has errors.

    ``type``: STANDARD or EXPRESS, which supports less. The exception has every error. The last
    1,024 machines are cached.
    """
    machine, _ = _check_and_build(text, type)
    refused = [
        diagnostic for diagnostic in check(text, type) if diagnostic.severity is Severity.ERROR
    ]
    if machine is None or refused:
        raise DefinitionError(refused)
    return machine


def parse_stored(text: str, type: str = MachineType.STANDARD) -> Machine:  # noqa: A002
    """Return the machine of a definition that this or an earlier release accepted.

    A rule may be newer than a stored definition, which still runs by the earlier rules. For
    example, JSONata that reads the top level was accepted by earlier releases; it has no value
    there. Raise ``DefinitionError`` for every other error.
    """
    machine, _ = _check_and_build(text, type)
    if machine is None:
        machine = _build_stored(text, type)
    return parse(text, type) if machine is None else machine


@lru_cache(maxsize=1024)
def _build_stored(text: str, type: str) -> Machine | None:  # noqa: A002
    with stored_definition():
        return _read_definition(text, type)[0]


_UNDRAWABLE = (
    *(DiagnosticCode.NOT_JSON, DiagnosticCode.TOO_DEEP),
    *(DiagnosticCode.DUPLICATE_STATE, DiagnosticCode.INVALID_STATE_NAME),
)
"""Errors of names, without which states cannot be identified."""


def parse_unfinished(text: str, type: str = MachineType.STANDARD) -> Machine:  # noqa: A002
    """Return the machine of an unfinished definition, for drawing only.

    States and transitions with errors are built as well as possible: a transition may lead to a
    state that is not there, and a state of an unknown type is left out. Raise ``DefinitionError``
    if the states cannot be told apart, and ``AttributeError``, ``LookupError``, ``TypeError`` or
    ``ValueError`` if a part has a form that the builder cannot read.
    """
    machine, diagnostics = _check_and_build(text, type)
    if machine is None and not any(each.code in _UNDRAWABLE for each in diagnostics):
        value = jsontext.loads(text, max_bytes=MAX_DEFINITION_BYTES) if text.strip() else None
        if isinstance(value, dict):
            express = type == MachineType.EXPRESS
            machine = build(value, text, express=express, problems=Problems())
    return parse(text, type) if machine is None else machine


def parse_stored_state(text: str, state_name: str) -> tuple[Machine, str]:
    """Return a machine with one state of a stored definition, and the state's name."""
    with stored_definition():
        return parse_state(text, state_name)


def parse_state(text: str, state_name: str | None = None) -> tuple[Machine, str]:
    """Return a machine with one state, and the state's name, for TestState.

    ``text``: one state or, with ``state_name``, a whole definition that has a state of that name
    at any depth. The targets of its transitions need not exist. Raise ``DefinitionError``, or
    ``KeyError`` for an unknown name.
    """
    try:
        value = jsontext.loads(text, max_bytes=MAX_DEFINITION_BYTES)
    except JsonTextError as error:
        raise DefinitionError([_json_diagnostic(text, error)]) from None
    name = state_name or "StateName"
    definition: dict[str, Any] = {"StartAt": name, "States": {name: value}}
    if state_name is not None:
        definition["States"] = {name: _find_state(value, state_name)[0]}
        if "QueryLanguage" in value:
            definition["QueryLanguage"] = value["QueryLanguage"]
    problems = Problems()
    machine = build(definition, text, express=False, problems=problems)
    errors = [
        diagnostic
        for diagnostic in problems.errors
        if diagnostic.code not in (DiagnosticCode.MISSING_TARGET, DiagnosticCode.MISSING_END)
    ]
    if not errors:
        unsupported = Problems()
        find_unsupported_fields(definition, unsupported)
        errors = unsupported.errors
    if errors or machine is None:
        raise DefinitionError([_with_detail(diagnostic) for diagnostic in errors])
    return machine, name


def _with_detail(problem: Diagnostic) -> Diagnostic:
    """Return a problem whose message includes JSONata's error code, for TestState."""
    if not problem.detail:
        return problem
    return replace(problem, message=f"{problem.message} ({problem.detail})")


def map_mode_around(text: str, state_name: str) -> str:
    """Return the mode of the innermost Map around a state, "" if there is none.

    ``text``: a definition that ``parse_state`` accepts. Raise ``KeyError`` without such a state.
    """
    return _find_state(jsontext.loads(text, max_bytes=MAX_DEFINITION_BYTES), state_name)[1]


def _find_state(definition: Any, name: str) -> tuple[Any, str]:
    """Return a state, at any depth, and the mode of the Map around it; raise ``KeyError``."""
    blocks = [(definition, "")]
    while blocks:
        block, mode = blocks.pop()
        states = block.get("States") if isinstance(block, dict) else None
        if not isinstance(states, dict):
            continue
        if name in states:
            return states[name], mode
        for state in states.values():
            if isinstance(state, dict):
                branches = state.get("Branches")
                inner = (state.get("ItemProcessor"), state.get("Iterator"))
                blocks += [(each, _mode_of(each)) for each in inner]
                blocks += [(each, mode) for each in branches] if isinstance(branches, list) else []
    raise KeyError(name)


def _mode_of(processor: Any) -> str:
    """Return the mode of a Map by its ItemProcessor."""
    config = processor.get("ProcessorConfig") if isinstance(processor, dict) else None
    mode = config.get("Mode") if isinstance(config, dict) else None
    return "DISTRIBUTED" if mode == "DISTRIBUTED" else "INLINE"


def check(text: str, type: str = MachineType.STANDARD) -> list[Diagnostic]:  # noqa: A002
    """Return every error and warning of a definition, errors first; [] for a valid definition."""
    machine, diagnostics = _check_and_build(text, type)
    return [*(() if machine is None else _check_parameters(text)), *diagnostics]


def _read_definition(text: str, type: str) -> tuple[Machine | None, tuple[Diagnostic, ...]]:  # noqa: A002
    problems = Problems()
    if not text.strip():
        problems.error("", "Definition must be a valid JSON object")
        return None, tuple(problems.diagnostics)
    try:
        value = jsontext.loads(text, max_bytes=MAX_DEFINITION_BYTES)
    except JsonTextError as error:
        return None, (_json_diagnostic(text, error),)
    check_repeated_names(text, problems)
    machine = build(value, text, express=type == MachineType.EXPRESS, problems=problems)
    if not problems.diagnostics:
        return machine, ()
    diagnostics = tuple(problems.placed(find_positions(text)))
    return (None if problems.errors else machine), diagnostics


_check_and_build = lru_cache(maxsize=1024)(_read_definition)
_check_parameters = lru_cache(maxsize=1024)(check_parameters)


def _json_diagnostic(text: str, error: JsonTextError) -> Diagnostic:
    """Return the problem of a text that is not JSON, in the words of the service's parser."""
    if not error.line:
        return Diagnostic(Severity.ERROR, DiagnosticCode.NOT_JSON, str(error))
    left_out = len(text) - _SHOWN
    more = f"[truncated {left_out} chars]" if left_out > 0 else ""
    place = f'[Source: (String)"{text[:_SHOWN]}"{more}; line: {error.line}, column: {error.column}]'
    message = f"{error}\n at {place}"
    return Diagnostic(
        Severity.ERROR, DiagnosticCode.NOT_JSON, message, place, error.line, error.column
    )


def use_platform(able: Platform) -> None:
    """Set the platform for all later checks: the AWS services and file formats that it supports."""
    platform.use_platform(able)
    _check_and_build.cache_clear()
    _check_parameters.cache_clear()
    _build_stored.cache_clear()


__all__ = [
    "Diagnostic",
    "Machine",
    "check",
    "current_platform",
    "map_mode_around",
    "parse",
    "parse_state",
    "parse_stored",
    "parse_stored_state",
    "parse_unfinished",
    "use_platform",
]
