"""Does a worker get the task that was handed to it in a commit nobody heard of?"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from django.db import OperationalError

from console.models import TaskRow
from console.store import activities, handout, tasks, writer
from tests.console.store.helpers import create, drain, one, start

if TYPE_CHECKING:
    from console.models import Project

ACTIVITY = "arn:aws:states:us-east-1:123456789012:activity:work"


@pytest.fixture(autouse=True)
def offered(project: Project) -> None:
    """One task of an activity is open."""
    activities.create(project, "us-east-1", "work")
    drain(start(create(project, one("A", Type="Task", Resource=ACTIVITY))))


def test_a_commit_nobody_heard_of_is_looked_up(monkeypatch: Any) -> None:
    """The task is started; its worker gets it."""

    def silent(fn: Any) -> Any:
        writer.write(fn)
        raise OperationalError("the connection is lost")

    monkeypatch.setattr(tasks, "write", silent)
    work = handout.take(ACTIVITY, "w")
    assert work is not None
    assert TaskRow.objects.get().status == "started"


def test_a_commit_that_never_was_leaves_the_task_to_others(monkeypatch: Any) -> None:
    """Whoever asks next gets it."""

    def gone(fn: Any) -> Any:
        def undone() -> None:
            fn()
            raise OperationalError("the connection is lost")

        return writer.write(undone)

    with monkeypatch.context() as patch:
        patch.setattr(tasks, "write", gone)
        assert handout.take(ACTIVITY, "w") is None
    assert handout.take(ACTIVITY, "w") is not None


def test_other_errors_are_told(monkeypatch: Any) -> None:
    """Nothing is asked again for them."""

    def wrong(fn: Any) -> Any:
        writer.write(fn)
        raise LookupError("a bug")

    monkeypatch.setattr(tasks, "write", wrong)
    with pytest.raises(LookupError):
        handout.take(ACTIVITY, "w")
