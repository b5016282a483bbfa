"""Snippets are parts of definitions without errors, once their places are filled."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

import engine
from console.features.editor.edits.palette import PIECES
from console.features.editor.snippets import LANGUAGES, SNIPPETS, Snippet, SnippetPlace


def filled(snippet: Snippet, **words: str) -> str:
    """Return what Ace inserts. ``words``: typed over the words that stand there at first."""
    typed: dict[str, str] = {}

    def place(match: re.Match[str]) -> str:
        typed[match[1]] = words.get(match[2].replace(" ", "_"), match[2])
        return typed[match[1]]

    text = re.sub(r"\$\{(\d+):([^}]*)\}", place, snippet.text)
    text = re.sub(r"(?<!\\)\$(\d+)", lambda match: typed[match[1]], text)
    return re.sub(r"\\([\\$])", r"\1", text)


def members(text: str) -> dict[str, Any]:
    """Return the object whose members a text is."""
    document: dict[str, Any] = json.loads(f"{{{text}}}")
    return document


def check(language: str, first: str, states: dict[str, Any]) -> None:
    """Check a definition with some states, and the one that they lead to."""
    if "Next state" in json.dumps(states):
        states = {**states, "Next state": {"Type": "Succeed"}}
    definition = {"QueryLanguage": language, "StartAt": first, "States": states}
    text = json.dumps(definition)
    assert [each for each in engine.check(text) if each.severity == "ERROR"] == [], text


@pytest.mark.parametrize("snippet", SNIPPETS, ids=lambda each: f"{each.language} {each.label}")
def test_a_snippet_is_part_of_a_definition(snippet: Snippet) -> None:
    """States as states, fields as fields of a Task, rules as rules of a Choice."""
    match snippet.place:
        case SnippetPlace.STATES:
            states = members(filled(snippet))
            check(snippet.language, next(iter(states)), states)
        case SnippetPlace.STATE:
            task = {"Type": "Task", "Resource": "arn:aws:states:::lambda:invoke"}
            arguments = "Arguments" if snippet.language == "JSONata" else "Parameters"
            task |= {arguments: {"FunctionName": "F"}, "Next": "Next state"}
            check(snippet.language, "Call", {"Call": task | members(filled(snippet))})
        case SnippetPlace.RULES:
            rules = [json.loads(filled(snippet))]
            choice = {"Type": "Choice", "Choices": rules, "Default": "Next state"}
            check(snippet.language, "Ask", {"Ask": choice})


def test_what_is_typed_stands_wherever_the_state_is_named() -> None:
    """A pattern with a loop names its states several times; each is typed once."""
    poll = next(each for each in SNIPPETS if each.label == PIECES["poll"].label)
    states = members(filled(poll, Get_status="Ask the job", Next_state="After"))
    assert "Get status" not in json.dumps(states)
    assert states["Wait for the job"]["Next"] == "Ask the job"
    assert "After" in json.dumps(states)


def test_every_piece_of_the_palette_is_a_snippet_in_both_languages() -> None:
    """What the graph inserts, the text can insert, too."""
    for language in LANGUAGES:
        labels = {each.label for each in SNIPPETS if each.language == language}
        assert labels >= {piece.label for piece in PIECES.values()}
