"""Read all rows of some executions in batches, each batch in one database snapshot."""

from __future__ import annotations

import contextlib
import json
from collections import defaultdict
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

from django.db import connection

import engine
from console.models import (
    Definition,
    Execution,
    HaltedExecution,
    HistoryEvent,
    InboxMessage,
    MapRun,
    RunRow,
    TaskRow,
    Timer,
)
from console.statuses import ExecutionStatus
from console.store.executions.step_rows import StoredValues

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from django.db.models import QuerySet

_EXECUTIONS = 200  # maximum of a batch
_EVENTS = 50_000  # approximate maximum of the events in a batch
_DETAILS = 500
_LARGE = ("input", "output", "error", "cause")
_TASK_PAYLOADS = ("input", "credentials", "job")


class HistoryLine(NamedTuple):
    """An event of a history, without its payloads."""

    id: int
    previous: int
    at_ms: int
    type: str
    state: str


@dataclass(slots=True)
class StoredExecution:
    """An execution with all its rows; payloads are read on demand."""

    execution: Execution
    run: RunRow | None = None
    events: list[HistoryLine] = field(default_factory=list)
    tasks: dict[int, TaskRow] = field(default_factory=dict)
    timers: list[Timer] = field(default_factory=list)
    inbox: list[InboxMessage] = field(default_factory=list)
    map_runs: dict[int, MapRun] = field(default_factory=dict)
    halted: HaltedExecution | None = None
    _snapshot: engine.Run | None = None

    @property
    def running(self) -> bool:
        """Whether the execution is running."""
        return self.execution.status == "RUNNING"

    @property
    def definition(self) -> Mapping[str, Any]:
        """Return the definition as a JSON value."""
        return _definition(self.execution.definition_id)

    def has_message(self, kind: str) -> bool:
        """Whether a message of a kind waits in the inbox."""
        return any(message.kind == kind for message in self.inbox)

    def messages_of(self) -> dict[int, list[InboxMessage]]:
        """Return task -> its waiting messages."""
        messages: dict[int, list[InboxMessage]] = defaultdict(list)
        for message in self.inbox:
            messages[json.loads(message.body).get("task", 0)].append(message)
        return messages

    def snapshot(self) -> engine.Run | None:
        """Return the current run; None if succeeded, or written by a later version."""
        if self._snapshot is None:
            text = RunRow.objects.values_list("snapshot", flat=True).get(pk=self.execution.pk)
            if not text and self.execution.status == ExecutionStatus.SUCCEEDED:
                return None
            try:
                self._snapshot = engine.Run.loads(text, StoredValues(self.execution.pk))
            except engine.NewerFormat:
                return None
        return self._snapshot

    def frames(self) -> list[Any]:
        """Return the lines of control, as far as they can be read."""
        run = self.snapshot()
        return [] if run is None else list(run.frames.values())

    def details(self, numbers: Iterable[int]) -> dict[int, dict[str, Any]]:
        """Return event -> its details."""
        event_ids = list(numbers)
        rows = HistoryEvent.objects.filter(execution_id=self.execution.pk)
        texts: dict[int, str] = {}
        for start in range(0, len(event_ids), _DETAILS):
            batch = rows.filter(event_id__in=event_ids[start : start + _DETAILS])
            texts.update(batch.values_list("event_id", "details"))
        return {number: json.loads(text) if text else {} for number, text in texts.items()}


@lru_cache(maxsize=200)
def _definition(sha256: str) -> Mapping[str, Any]:
    text = Definition.objects.values_list("text", flat=True).get(pk=sha256)
    value: Mapping[str, Any] = json.loads(text)
    return value


def states_of(definition: Mapping[str, Any]) -> dict[str, Mapping[str, Any]]:
    """Return name -> state at any depth, without ambiguous names."""
    states: dict[str, Mapping[str, Any]] = {}
    twice: set[str] = set()
    blocks = [definition]
    while blocks:
        for name, state in blocks.pop()["States"].items():
            (twice.add(name) if name in states else states.update({name: state}))
            blocks += state.get("Branches", ())
            blocks += [state[key] for key in ("ItemProcessor", "Iterator") if key in state]
    return {name: state for name, state in states.items() if name not in twice}


# -- reading ---------------------------------------------------------------------------------------


def batches(executions: QuerySet[Execution]) -> Iterator[list[StoredExecution]]:
    """Yield executions in batches; each batch is read in one database snapshot."""
    after = 0
    more = True
    while more:
        with one_instant():
            batch, more = _batch(executions.filter(pk__gt=after))
            yield batch
        if batch:
            after = batch[-1].execution.pk


@contextlib.contextmanager
def one_instant() -> Iterator[None]:
    """Read within one database snapshot, without blocking writers."""
    if connection.in_atomic_block:
        yield
        return
    postgres = connection.vendor == "postgresql"
    with connection.cursor() as cursor:
        cursor.execute("BEGIN" + (" ISOLATION LEVEL REPEATABLE READ, READ ONLY" * postgres))
        try:
            yield
        finally:
            cursor.execute("ROLLBACK")


def _batch(executions: QuerySet[Execution]) -> tuple[list[StoredExecution], bool]:
    """Return the first executions, and whether there may be more."""
    rows = executions.order_by("pk").defer(*_LARGE)[:_EXECUTIONS]
    records = {execution.pk: StoredExecution(execution) for execution in rows}
    for run in RunRow.objects.defer("snapshot").filter(pk__in=records):
        records[run.pk].run = run
    chosen = _some(list(records.values()))
    _fill({record.execution.pk: record for record in chosen})
    return chosen, len(records) == _EXECUTIONS or len(chosen) < len(records)


def _some(records: Sequence[StoredExecution]) -> list[StoredExecution]:
    """Return the first records, up to about a batch's number of events."""
    events = 0
    for place, record in enumerate(records):
        events += record.run.next_event if record.run is not None else 0
        if events > _EVENTS:
            return list(records[: place + 1])
    return list(records)


def _fill(records: dict[int, StoredExecution]) -> None:
    events = HistoryEvent.objects.filter(execution_id__in=records).order_by(
        "execution_id", "event_id"
    )
    columns = ("execution_id", "event_id", "previous", "at_ms", "type", "state")
    for number, *event in events.values_list(*columns):
        records[number].events.append(HistoryLine(*event))
    for task in TaskRow.objects.filter(execution_id__in=records).defer(*_TASK_PAYLOADS):
        records[task.execution_id].tasks[task.task] = task
    for timer in Timer.objects.filter(execution_id__in=records):
        records[timer.execution_id].timers.append(timer)
    for message in InboxMessage.objects.filter(execution_id__in=records).order_by("pk"):
        records[message.execution_id].inbox.append(message)
    for run in MapRun.objects.filter(parent_id__in=records):
        records[run.parent_id].map_runs[run.task] = run
    for halted in HaltedExecution.objects.filter(execution_id__in=records):
        records[halted.execution_id].halted = halted


@dataclass(frozen=True, slots=True)
class Violation:
    """A violated invariant. ``id``: I1 to I18."""

    id: str
    execution_arn: str
    what: str

    def __str__(self) -> str:
        return f"{self.id}\t{self.execution_arn}\t{self.what}"
