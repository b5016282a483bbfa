"""Every change commits whole or not at all, also beside failures and outages."""

from __future__ import annotations

import contextlib
from concurrent.futures import Future
from typing import TYPE_CHECKING, Any

import pytest
from django.db import IntegrityError, InterfaceError, OperationalError, connection, transaction

from console.db import signals, writer
from console.db.writer import is_outage, write
from console.models import Activity, Definition, Execution, Project, StateMachine
from console.statuses import Topic
from console.store.state import health
from console.store.tasks import activities
from tests.console.store.helpers import PASS, REGION, WAIT, create, crowd, start

if TYPE_CHECKING:
    from collections.abc import Callable


def test_one_failing_change_leaves_the_others(project: Project) -> None:
    """Of changes that are asked for at once, the failing ones vanish and the rest is stored."""

    def change(number: int) -> str:
        def store() -> str:
            arn = activities.create_activity(project, REGION, f"a{number}").arn
            if number % 2:
                raise LookupError(arn)
            return arn

        return write(store)

    results = crowd(10, change)
    assert sum(isinstance(result, LookupError) for result in results) == 5
    assert set(Activity.objects.values_list("name", flat=True)) == {
        f"a{n}" for n in (0, 2, 4, 6, 8)
    }


@pytest.mark.sqlite_only
def test_a_constraint_that_only_the_commit_checks_fails_one_change(project: Project) -> None:
    """SQLite checks foreign keys at the end; everybody who wrote beside it failed with it."""

    def good() -> int:
        return Activity.objects.create(
            project=project, region=REGION, name="a", arn="arn", created_ms=1
        ).pk

    def bad() -> int:
        return Activity.objects.create(
            project_id=project.pk + 1, region=REGION, name="b", arn="brn", created_ms=1
        ).pk

    futures: list[Future[Any]] = [Future(), Future()]
    assert writer._commit_group([(bad, futures[0]), (good, futures[1])]) == []
    with pytest.raises(IntegrityError):
        futures[0].result(0)
    assert list(Activity.objects.values_list("pk", "name")) == [(futures[1].result(0), "a")]


def test_hooks_run_after_the_commit_and_not_after_a_rollback(project: Project) -> None:
    """What is told was stored."""
    del project
    told: list[str] = []

    def fails() -> None:
        transaction.on_commit(lambda: told.append("failed"))
        raise LookupError

    write(lambda: transaction.on_commit(lambda: told.append("stored")))
    with pytest.raises(LookupError):
        write(fails)
    assert told == ["stored"]


def test_a_listener_that_raises_does_not_undo_what_is_committed(project: Project) -> None:
    """The caller hears of its commit; other listeners are told, too."""
    told: list[int] = []

    def breaks(execution_id: int) -> None:
        del execution_id
        raise RuntimeError("nobody listens any more")

    ends = [
        signals.subscribe((Topic.RUNNABLE,), breaks),
        signals.subscribe((Topic.ENDED,), told.append),
    ]
    try:
        execution = start(create(project, PASS))
    finally:
        for end in ends:
            end()
    assert Execution.objects.get().pk == execution.pk


@pytest.mark.parametrize(
    ("model", "act"),
    [
        (Activity, lambda project: activities.create_activity(project, REGION, "same").pk),
        (StateMachine, lambda project: create(project, WAIT).pk),
    ],
)
def test_creating_the_same_at_once_makes_one(
    project: Project, model: Any, act: Callable[[Project], int]
) -> None:
    """Twelve callers get the one row; nobody gets an error."""
    assert len(set(crowd(12, lambda _: act(project)))) == 1
    assert model.objects.count() == 1


def test_starting_the_same_at_once_starts_one(project: Project) -> None:
    """Name and input alike: twelve callers get the one execution."""
    machine = create(project, WAIT)
    started = crowd(12, lambda _: start(machine, {"a": 1}, "same").pk)
    assert len(set(started)) == 1
    assert Execution.objects.count() == 1


@pytest.mark.parametrize(
    ("error", "outage"),
    [
        (OperationalError("server closed the connection unexpectedly"), True),
        (OperationalError("database or disk is full"), True),
        (InterfaceError("connection already closed"), True),
        (ValueError("boom"), False),
    ],
)
def test_an_outage_is_told_from_a_fault(error: Exception, outage: bool) -> None:
    """Only the database's own failures are nobody's fault."""
    assert is_outage(error) is outage


def fill_disk() -> None:
    """Let SQLite find the disk full in the middle of a statement (on this connection only)."""
    with connection.cursor() as cursor:
        cursor.execute("PRAGMA max_page_count = 1")  # becomes what there is
        cursor.execute("PRAGMA freelist_count")
        (free,) = cursor.fetchone()
    Definition.objects.create(sha256="full", text="n" * 4096 * (free + 100))


@pytest.mark.sqlite_only  # it alone commits in groups
def test_a_full_disk_in_mid_group_is_everybodys_outage(project: Project) -> None:
    """SQLite rolls all back then: nothing is acknowledged, before it or after it."""

    def add(name: str) -> str:
        return activities.create_activity(project, REGION, name).arn

    group: list[tuple[Callable[[], Any], Any]] = [
        (lambda: add("before"), Future()),
        (fill_disk, Future()),
        (lambda: add("after"), Future()),
    ]
    writer._commit_group(group)
    for _, answer in group:
        with pytest.raises(OperationalError):
            answer.result()
    assert not Activity.objects.exists()
    assert write(lambda: add("later"))


@pytest.mark.sqlite_only  # PostgreSQL refuses to commit after an error
def test_a_caught_full_disk_is_not_a_success(project: Project) -> None:
    """Whoever swallows the error that ended the transaction must not be told it is stored."""

    def swallow() -> None:
        activities.create_activity(project, REGION, "a")
        with contextlib.suppress(OperationalError), transaction.atomic():
            fill_disk()

    with pytest.raises(OperationalError, match="rolled the transaction back"):
        write(swallow)
    assert not Activity.objects.exists()


def test_a_server_that_cannot_write_says_that_it_is_not_ready(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Reading may work still; the next write that succeeds, or some time, takes it back."""
    del project

    def full() -> None:
        raise OperationalError("could not extend file: No space left on device")

    monkeypatch.setattr(writer, "_refused", None)
    assert writer.refusal() == ""
    with pytest.raises(OperationalError):
        write(full)
    assert not health.check_health().ready
    assert "takes no writes: could not extend file" in " ".join(health.check_health().reasons)
    write(lambda: None)
    assert writer.refusal() == ""
    with pytest.raises(OperationalError):
        write(full)
    monkeypatch.setattr(writer, "_FORGET_S", 0.0)
    assert writer.refusal() == ""
