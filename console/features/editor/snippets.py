"""Snippets for the editor's completion: states, patterns, fields, rules.

A snippet uses Ace's notation: ``${1:Wait}`` is selected first and typed over, and ``$1`` repeats
the typed text, so that the name of a new state is entered once for all its occurrences.
"""

from __future__ import annotations

import json
import re
from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import Any

from console.features.editor.edits.definition_tree import in_field_order
from console.features.editor.edits.operations import renamed_states
from console.features.editor.edits.palette import (
    EXIT,
    PIECES,
    catcher,
    choice_rule,
    default_retrier,
    of_account,
)

LANGUAGES = ("JSONPath", "JSONata")
_MARK = "\ue000"
"""Encloses the number of a place to type in, until the text is written."""
_LAMBDA_ERRORS = (
    "Lambda.ClientExecutionTimeoutException",
    "Lambda.ServiceException",
    "Lambda.AWSLambdaException",
    "Lambda.SdkClientException",
    "Lambda.TooManyRequestsException",
)


class SnippetPlace(StrEnum):
    """The place in a definition in which a snippet is offered."""

    STATES = "states"
    """Among the states of a block."""
    STATE = "state"
    """Among the fields of a state."""
    RULES = "rules"
    """Among the rules of a Choice."""


@dataclass(frozen=True, slots=True)
class Snippet:
    """A snippet inserted by completion. ``language``: its query language."""

    label: str
    hint: str
    place: SnippetPlace
    language: str
    text: str


def snippets_json(account: str) -> str:
    """Return all snippets as JSON for the page's script. ``account``: for their ARNs."""
    text = json.dumps([asdict(snippet) for snippet in SNIPPETS], ensure_ascii=False)
    return of_account(text, account)


def _state_snippets(language: str) -> list[Snippet]:
    return [
        Snippet(piece.label, piece.hint, SnippetPlace.STATES, language, _states_text(states))
        for piece in PIECES.values()
        if (states := piece.make(language))
    ]


def _states_text(states: dict[str, Any]) -> str:
    """Return states as members of ``States``, with names and targets as places to type in."""
    marks = {name: f"{_MARK}{number}{_MARK}" for number, name in enumerate(states, 1)}
    marks[EXIT] = f"{_MARK}{len(states) + 1}{_MARK}"
    words = {mark: name for name, mark in marks.items()} | {marks[EXIT]: "Next state"}
    ordered = {name: in_field_order(state) for name, state in states.items()}
    return _snippet_text(_members(renamed_states(ordered, marks)), words)


def _fields_text(fields: dict[str, Any]) -> str:
    mark = f"{_MARK}1{_MARK}"
    text = _members(fields).replace(json.dumps(EXIT), json.dumps(mark, ensure_ascii=False))
    return _snippet_text(text, {mark: "Next state"})


def _members(value: dict[str, Any]) -> str:
    """Return the members of an object as lines, without its braces."""
    lines = json.dumps(value, indent=2, ensure_ascii=False).split("\n")[1:-1]
    return "\n".join(line.removeprefix("  ") for line in lines)


def _snippet_text(text: str, words: dict[str, str]) -> str:
    """Return a text in Ace's notation. ``words``: mark -> its initial text."""
    escaped = re.sub(r"[\\$]", r"\\\g<0>", text)
    for mark, word in words.items():
        number = mark.strip(_MARK)
        escaped = escaped.replace(mark, f"${{{number}:{word}}}", 1).replace(mark, f"${number}")
    return escaped


def _field_snippets(language: str) -> list[Snippet]:
    def snippet(label: str, hint: str, fields: dict[str, Any]) -> Snippet:
        return Snippet(label, hint, SnippetPlace.STATE, language, _fields_text(fields))

    retrier = {**default_retrier(), "ErrorEquals": list(_LAMBDA_ERRORS), "IntervalSeconds": 1}
    value = "{% $states.result %}" if language == "JSONata" else "$"
    assign = {"answer": value} if language == "JSONata" else {"answer.$": value}
    return [
        snippet("Retry with backoff", "Retry", {"Retry": [default_retrier()]}),
        snippet("Retry what Lambda asks to", "Retry", {"Retry": [retrier]}),
        snippet("Catch every error", "Catch", {"Catch": [catcher(language, EXIT)]}),
        snippet("Time limits", "Timeout", {"TimeoutSeconds": 300, "HeartbeatSeconds": 60}),
        snippet("Assign a variable", "Assign", {"Assign": assign}),
    ]


def _rule_snippets(language: str) -> list[Snippet]:
    def snippet(label: str, rule: dict[str, Any]) -> Snippet:
        text = f"{{\n{_indented(_fields_text({**rule, 'Next': EXIT}))}\n}}"
        return Snippet(label, "Choice rule", SnippetPlace.RULES, language, text)

    both: dict[str, Any]
    if language == "JSONata":
        both = {"Condition": "{% $states.input.a = 1 and $states.input.b > 2 %}"}
        equal = {"Condition": "{% $states.input.status = 'DONE' %}"}
    else:
        parts = [{"Variable": "$.a", "NumericEquals": 1}, {"Variable": "$.b", "IsPresent": True}]
        both = {"And": parts}
        equal = {"Variable": "$.status", "StringEquals": "DONE"}
    return [
        snippet("If a field is there", choice_rule(language)),
        snippet("If a field has a value", equal),
        snippet("If both are true", both),
    ]


def _indented(text: str) -> str:
    return "\n".join(f"  {line}" for line in text.split("\n"))


SNIPPETS = tuple(
    snippet
    for language in LANGUAGES
    for snippet in (
        *_state_snippets(language),
        *_field_snippets(language),
        *_rule_snippets(language),
    )
)
