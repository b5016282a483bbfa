"""Find the question of an approval: its state's Comment, or a field of its input."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import engine
from console.masking import masked_execution
from console.store.tasks.answers import LONGEST_QUESTION

if TYPE_CHECKING:
    from console.models import Execution, TaskRow

FIELDS = ("question", "prompt", "message", "title", "subject")
"""The fields of an input whose text is a question, the first that is there."""


def question_of(execution: Execution, row: TaskRow) -> str:
    """Return the question to the person, "" if neither definition nor input has one.

    What the project hides stays hidden.
    """
    question = comment_of(execution, row) or _field(execution, row)
    return question if len(question) <= LONGEST_QUESTION else f"{question[: LONGEST_QUESTION - 1]}…"


def comment_of(execution: Execution, row: TaskRow) -> str:
    """Return the Comment of the state, "" without one."""
    try:
        graph = engine.build_graph(engine.parse_stored(execution.definition.text))
        node = graph.by_id[graph.by_name[row.state]]
        return str(json.loads(node.text).get("Comment") or "").strip()
    except (engine.DefinitionError, KeyError, ValueError):
        return ""


def _field(execution: Execution, row: TaskRow) -> str:
    text = masked_execution.masked_execution(execution).of_task(row.task, row.input)
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return ""
    if not isinstance(value, dict):
        return ""
    places = [value, *(value.get(name) for name in ("MessageBody", "Message", "Payload"))]
    for place in (each for each in places if isinstance(each, dict)):
        for field in FIELDS:
            if isinstance(place.get(field), str) and place[field].strip():
                return str(place[field]).strip()
    return ""
