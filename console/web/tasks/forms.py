"""Forms of tasks and activities."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from console.web.core.forms import PageForm, TextField

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping


class TaskForm(PageForm):
    """A person's action on an open task: complete, fail, or heartbeat.

    ``comment``: of an approval or a rejection.
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
