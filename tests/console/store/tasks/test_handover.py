"""A worker gets its task although the reply to the commit of the handover was lost."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from django.db import OperationalError

from console.db import writer
from console.models import TaskRow
from console.store.tasks import activities, handover
from tests.console.store.helpers import create, drain, one, start

if TYPE_CHECKING:
    from console.models import Project

write = writer.write
ACTIVITY = "arn:aws:states:us-east-1:123456789012:activity:work"


def take() -> Any:
    """Take the oldest task for a worker."""
    taking = handover.claim_activity_task(ACTIVITY, "w")
    return taking and taking.result()


@pytest.fixture(autouse=True)
def offered(project: Project) -> None:
    """One task of an activity is open."""
    activities.create_activity(project, "us-east-1", "work")
    drain(start(create(project, one("A", Type="Task", Resource=ACTIVITY))))


def test_a_commit_nobody_heard_of_is_looked_up(monkeypatch: Any) -> None:
    """The task is started; its worker gets it."""

    def silent(fn: Any, *, mergeable: bool) -> Any:
        write(fn, mergeable=mergeable)
        raise OperationalError("the connection is lost")

    monkeypatch.setattr(writer, "write", silent)
    work = take()
    assert work is not None
    assert TaskRow.objects.get().status == "started"


def test_a_commit_that_never_was_leaves_the_task_to_others(monkeypatch: Any) -> None:
    """Whoever asks next gets it."""

    def gone(fn: Any, *, mergeable: bool) -> Any:
        del mergeable

        def undone() -> None:
            fn()
            raise OperationalError("the connection is lost")

        return write(undone)

    with monkeypatch.context() as patch:
        patch.setattr(writer, "write", gone)
        assert take() is None
    assert take() is not None


def test_other_errors_are_told(monkeypatch: Any) -> None:
    """Nothing is asked again for them."""

    def wrong(fn: Any, *, mergeable: bool) -> Any:
        write(fn, mergeable=mergeable)
        raise LookupError("a bug")

    monkeypatch.setattr(writer, "write", wrong)
    with pytest.raises(LookupError):
        take()
