"""Compile and evaluate the JSONata expression of a summary.

The expression reads the execution as an object: ``input.orderId``, ``output.total``, ``name``, so
that it needs no characters that AWS forbids in tags. ``$states.input`` and ``$states.context``
exist, too. It is evaluated as the Output of a Pass state, with the engine's limits of time and
memory, apart from the execution.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import engine

LONGEST = 200
"""Maximum length of a summary in characters; longer texts are cut."""
LONGEST_PROBLEM = 300
_STATE = "Summary"
_VARIABLE = "execution"
_SEED = 1


@dataclass(frozen=True, slots=True)
class Evaluated:
    """The value of an expression as a line of text, "" without one, or the error."""

    text: str = ""
    problem: str = ""


def expression_problem(expression: str) -> str:
    """Return why a text is not a usable JSONata expression; "" if it is."""
    if not engine.without_marks(expression):
        return "The expression is empty"
    try:
        _compile(expression)
    except engine.DefinitionError as error:
        diagnostics = [each for each in error.diagnostics if isinstance(each, engine.Diagnostic)]
        return "; ".join(each.message.rstrip(".") for each in diagnostics) or str(error)
    return ""


@lru_cache(maxsize=256)
def _compile(expression: str) -> engine.Machine:
    """Return a state machine with one state that evaluates the expression."""
    # The array distinguishes no value from null, and one value from several.
    output = f"{{% [${_VARIABLE}.({engine.without_marks(expression)}\n)] %}}"
    state = {"Type": "Pass", "Output": output, "End": True}
    definition = {"QueryLanguage": "JSONata", "StartAt": _STATE, "States": {_STATE: state}}
    return engine.parse(json.dumps(definition))


def evaluate(expression: str, name: str, input_text: str, output_text: str | None) -> Evaluated:
    """Return an execution's summary. ``output_text``: None while it has no output."""
    if problem := expression_problem(expression):
        return Evaluated(problem=_shorten(problem, LONGEST_PROBLEM))
    context = {"Execution": {"Name": name}}
    members = [f'"name":{json.dumps(name)}', f'"input":{_json(input_text)}']
    if output_text is not None:
        members.append(f'"output":{_json(output_text)}')
    variables = f'{{"{_VARIABLE}":{{{",".join(members)}}}}}'
    try:
        trial = engine.try_state(
            _compile(expression),
            _STATE,
            _json(input_text),
            engine.Moment(0, _SEED),
            about={"context": context},
            variables=variables,
        )
    except engine.EngineError as error:
        return Evaluated(problem=_shorten(str(error), LONGEST_PROBLEM))
    if trial.output is None:
        problem = str(trial.cause or trial.error).rpartition("during evaluation")[2].lstrip(". :")
        return Evaluated(problem=_shorten(problem, LONGEST_PROBLEM))
    return Evaluated(_shorten(", ".join(map(_words, json.loads(trial.output))), LONGEST))


def _json(text: str) -> str:
    """Return a JSON text unchanged, other texts as a JSON string: a mask hides them whole."""
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return json.dumps(text)
    return text


def _words(value: Any) -> str:
    if isinstance(value, str):
        return value
    return "" if value is None else engine.dumps(value)


def _shorten(text: str, most: int) -> str:
    """Return a text on one line, without unprintable characters, cut to a length."""
    line = " ".join("".join(char if char.isprintable() else " " for char in text).split())
    return line if len(line) <= most else f"{line[: most - 1]}…"
