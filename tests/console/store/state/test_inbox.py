"""Messages that nobody needs any more are found without a look at what waits."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from console.models import Execution, InboxMessage
from console.statuses import ExecutionStatus
from console.store.state import inbox
from tests.console.store.helpers import WAIT, create, start

if TYPE_CHECKING:
    from console.models import Project


def test_messages_to_what_has_ended_are_dropped(project: Project) -> None:
    """Those to what still runs stay."""
    machine = create(project, WAIT)
    running, ended = start(machine), start(machine)
    for execution in (running, ended):
        InboxMessage.objects.create(execution=execution, kind="Stop", created_ms=0)
    Execution.objects.filter(pk=ended.pk).update(status=ExecutionStatus.ABORTED)
    inbox.drop_stale()
    assert set(InboxMessage.objects.values_list("execution", flat=True)) == {running.pk}


@pytest.mark.sqlite_only
def test_the_look_begins_with_the_messages(project: Project) -> None:
    """A join began with the executions: a million that waited took a tenth of a processor."""
    start(create(project, WAIT))
    assert "SCAN console_execution" not in inbox.stale_messages().explain()
    assert "SEARCH U0 USING INTEGER PRIMARY KEY" in inbox.stale_messages().explain()
