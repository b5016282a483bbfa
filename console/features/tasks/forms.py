"""Forms of tasks and activities, and the question of an approval."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import engine
from console.masking import masked_execution
from console.store.tasks.answers import LONGEST_QUESTION
from console.web.core.forms import PageForm, TextField

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from console.models import Execution, TaskRow


class TaskForm(PageForm):
    """A person's action on an open task: complete, fail, or heartbeat.

    ``comment``: the reason of an approval or a rejection.
    """

    act = TextField(strip=False)
    output = TextField(strip=False, default="{}")
    error = TextField(strip=False)
    cause = TextField(strip=False)
    comment = TextField()


class AnswerForm(PageForm):
    """An answer in the list. ``task``: execution id and task number, ``7-12``."""

    act = TextField(strip=False)
    task = TextField(strip=False)
    comment = TextField()


class ActivityForm(PageForm):
    """A new activity, or an action on an activity."""

    name = TextField()
    act = TextField(strip=False)


class TimeoutsForm(PageForm):
    """The timeouts of an activity, one field per tag; an empty one means ``NONE``."""

    def __init__(self, sent: Mapping[str, Any], tags: Iterable[str]) -> None:
        super().__init__(sent)
        self.fields = {tag: TextField() for tag in tags}

    @property
    def limits(self) -> dict[str, str]:
        """Return tag -> its value."""
        return {tag: text or "NONE" for tag, text in self.values.items()}


FIELDS = ("question", "prompt", "message", "title", "subject")
"""The fields of an input whose text is a question, the first that is there."""


def question_of(execution: Execution, row: TaskRow) -> str:
    """Return the question to the person, "" if neither definition nor input has one.

    Values that the project masks stay masked.
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
