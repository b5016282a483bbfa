"""Workers take over the work of dead workers, and only theirs."""

from __future__ import annotations

import json
import os
import time
from typing import TYPE_CHECKING, Any

import pytest
from django.db import connection

from console.db import clock, epoch, signals
from console.models import Execution, Project, ServerFact, TaskRow, Timer, Worker
from console.statuses import Topic
from console.store.executions import step
from console.store.tasks import claim, workers
from tests.console.store.helpers import PASS, WAIT, create, drain, one, start

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

LAMBDA = "arn:aws:lambda:us-east-1:123456789012:function:f"


@pytest.fixture(autouse=True)
def own_name() -> Iterator[None]:
    """Give the process its usual name and epoch back."""
    yield
    claim.set_worker_name("")
    epoch.forget_epoch()


@pytest.fixture
def called(project: Project) -> tuple[Execution, int, str]:
    """Return an execution, its task, and the worker that has it."""
    execution = start(create(project, one("T", Type="Task", Resource=LAMBDA)))
    drain(execution)
    number = TaskRow.objects.get().task
    name = workers.register()
    claim.set_worker_name(name)
    assert claim.claim_call(execution.pk, number) is not None
    return execution, number, name


def read_team() -> str | None:
    """Return the leases of all workers as a sweep reads them; SQLite has no team."""
    if connection.vendor == "postgresql":
        with connection.cursor() as cursor:
            cursor.execute(f"SELECT ({workers.TEAM_SQL})")
            return str(cursor.fetchone()[0])
    rows = Worker.objects.order_by("name")
    return json.dumps([(row.name, row.host, row.pid, row.lease_until_ms) for row in rows])


def end_lease(name: str) -> None:
    """Let a lease end."""
    Worker.objects.filter(name=name).update(lease_until_ms=1)


def test_a_lease_that_is_renewed_stands(called: tuple[Execution, int, str]) -> None:
    """Its tasks stay where they are, whoever else looks."""
    _, _, name = called
    assert workers.renew_lease(name, steps=3, fenced=1)
    other = workers.register()
    assert workers.team_share(other, read_team())[1] == []
    assert workers.remove_dead([]) == 0
    row = Worker.objects.get(name=name)
    assert (row.steps, row.fenced) == (3, 1)


def test_what_the_dead_had_is_offered_again(called: tuple[Execution, int, str]) -> None:
    """With the same idempotency key, to whoever is alive."""
    execution, number, name = called
    end_lease(name)
    other = workers.register()
    part, dead = workers.team_share(other, read_team())
    assert (part, dead) == (workers.Share(0, 1), [name])
    assert workers.remove_dead(dead) == 1
    claim.set_worker_name(other)
    work = claim.claim_call(execution.pk, number)
    assert work is not None
    assert work.dispatches == 2


def test_a_lease_that_ended_cannot_be_renewed(called: tuple[Execution, int, str]) -> None:
    """Whoever was stopped for too long must begin anew."""
    _, _, name = called
    end_lease(name)
    assert not workers.renew_lease(name)


def test_a_process_of_this_machine_that_is_gone_is_dead_at_once(project: Project) -> None:
    """Nobody waits for the end of its lease."""
    del project
    name, other = workers.register(), workers.register()
    child = os.fork()
    if child == 0:
        os._exit(0)
    os.waitpid(child, 0)
    Worker.objects.filter(name=name).update(pid=child)
    assert workers.team_share(other, read_team())[1] == [name]


def test_a_process_of_another_machine_is_only_known_by_its_lease(project: Project) -> None:
    """Its number means nothing here."""
    del project
    name, other = workers.register(), workers.register()
    Worker.objects.filter(name=name).update(pid=2**22 + 1, host="elsewhere")
    assert workers.team_share(other, read_team())[1] == []


def test_others_sweep_the_share_of_a_worker_that_misses_renewals(project: Project) -> None:
    """It may hang, or its machine may be gone: its lease goes on, and its own share stays."""
    del project
    first, second, hung = sorted(workers.register() for _ in range(3))
    behind_ms = clock.now_ms() + 10_000 - workers.missed_ms()
    Worker.objects.exclude(name=hung).update(lease_until_ms=behind_ms + workers.missed_ms())
    Worker.objects.filter(name=hung).update(lease_until_ms=behind_ms + 1)
    assert workers.team_share(second, read_team()) == (workers.Share(1, 3), [])
    Worker.objects.filter(name=hung).update(lease_until_ms=behind_ms)
    assert workers.team_share(first, read_team()) == (workers.Share(0, 2), [])
    assert workers.team_share(second, read_team()) == (workers.Share(1, 2), [])
    assert workers.team_share(hung, read_team()) == (workers.Share(2, 3), [])


def test_who_leaves_hands_over(called: tuple[Execution, int, str]) -> None:
    """Its lease is gone and its task is free."""
    _, _, name = called
    assert workers.deregister(name) == 1
    assert TaskRow.objects.get().status == "scheduled"
    assert not Worker.objects.exists()


def test_shares_cover_everything_once(project: Project) -> None:
    """Three workers: each execution is in the part of exactly one."""
    machine = create(project, WAIT)
    started = {start(machine).pk for _ in range(7)}
    for number in started:
        while step.step_execution(number):
            pass
    names = [workers.register() for _ in range(3)]
    parts = [workers.team_share(name, read_team())[0] for name in names]
    assert sorted(part.rank for part in parts) == [0, 1, 2]
    assert sum(part.leads for part in parts) == 1
    executions = [
        number
        for part in parts
        for number in part.part(Timer.objects.all()).values_list("execution_id", flat=True)
    ]
    assert sorted(executions) == sorted(started)
    assert all(sum(part.has(number) for part in parts) == 1 for number in started)


def test_a_step_of_an_older_epoch_writes_nothing(project: Project) -> None:
    """After a restore, what a process remembers is not the past of the rows."""
    execution = start(create(project, PASS))
    epoch.process_epoch()
    epoch.begin_epoch()
    with pytest.raises(step.Fenced):
        step.step_execution(execution.pk)
    assert epoch.is_over()
    epoch.forget_epoch()
    assert drain(execution).status == "SUCCEEDED"


def test_no_epoch_comes_twice(project: Project) -> None:
    """Who restores the same backup again fences what ran since the first time."""
    del project
    first = epoch.begin_epoch()
    ServerFact.objects.filter(name=epoch.NAME).delete()  # the backup knows nothing of it
    time.sleep(0.002)
    assert epoch.begin_epoch() not in (first, "0", "1")


class RecordingTransport:
    """A transport that keeps the signals it is given."""

    def __init__(self) -> None:
        self.added: list[tuple[object, ...]] = []
        self.written: list[tuple[object, ...]] = []

    def takes(self, channel: signals.Channel) -> bool:
        """Take the signals of new executions."""
        return channel == (Topic.CREATED,)

    def keeps(self, channel: signals.Channel) -> bool:
        """Keep none in this process."""
        del channel
        return False

    def send(self, channel: signals.Channel, values: tuple[object, ...]) -> None:
        """Remember the signal."""
        self.added.append((*channel, *values))

    def statements(
        self, batch: Sequence[tuple[signals.Channel, tuple[object, ...]]]
    ) -> Sequence[tuple[str, Sequence[str]]]:
        """Write the signals of a transaction of several changes."""
        self.written += [(*channel, *values) for channel, values in batch]
        return ()

    def flush(self) -> None:
        """Write."""
        self.written += self.added
        self.added = []

    def drop(self) -> None:
        """Forget."""
        self.added = []


def test_signals_are_sent_with_their_transaction(project: Project) -> None:
    """A signal for other processes is written once, and not delivered in this one."""
    from django.db import connection

    transport = RecordingTransport()
    delivered: list[Any] = []
    signals.use_transport(transport)
    end = signals.subscribe((Topic.CREATED,), delivered.append)
    try:
        execution = start(create(project, PASS))
    finally:
        signals.use_transport(None)
        end()
    assert delivered == []
    got = transport.written if connection.vendor == "postgresql" else transport.added
    assert got == [("created", execution.pk)]
