"""Check I2, I10, I12, I13 and I16: compare the database with logs of its clients.

A log is a file of JSON objects, one per line and observation:

* ``{"start": <execution ARN>}``: an answered StartExecution;
* ``{"send": "success" | "failure", "token": ..., "output": ... | "error": ..., "cause": ...}``: a
  SendTaskSuccess or SendTaskFailure that was answered with 200;
* ``{"expect": <execution ARN>, "output": <text>}``: the expected output of an execution;
* ``{"call": <idempotency key>, "execution": <ARN>}``: a request that an endpoint received;
* ``{"poll": <execution ARN>, "events": [[id, previous, type], ...]}``: a history as read.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from typing import TYPE_CHECKING, Any

import engine
from console.db.rows import storable
from console.features.doctor.stored_executions import StoredExecution, Violation
from console.models import DebugEdit, Execution, HistoryEvent, InboxMessage, TaskRow
from console.store.executions import faults
from console.store.tasks import claim
from engine import event_types

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

_COLUMNS = ("event_id", "previous", "type")
_STAGES = {"success": event_types.Stage.SUCCEEDED, "failure": event_types.Stage.FAILED}
_OUTCOME_MESSAGES = frozenset(
    message.__name__ for message in (engine.TaskSucceeded, engine.TaskFailed, engine.TaskTimedOut)
)
"""Messages of the inbox that end a task; events have the same names."""


class Log:
    """The observations of clients, line by line; only keys and digests are kept."""

    def __init__(self) -> None:
        """Start empty."""
        self._calls: dict[str, Counter[str]] = {}
        self._sent: set[str] = set()

    def check(self, lines: Iterable[str]) -> Iterator[Violation]:
        """Yield the contradictions between a log's lines and the database."""
        for line in lines:
            if line.strip():
                answer = json.loads(line)
                yield from self._of(answer)(answer)

    def end(self) -> Iterator[Violation]:
        """Yield contradictions that show only after all lines."""
        for arn, calls in self._calls.items():
            yield from _calls(arn, calls)

    def _of(self, answer: dict[str, Any]) -> Callable[[dict[str, Any]], Iterator[Violation]]:
        kinds = {"start": _started, "expect": _expected, "poll": _polled}
        kinds |= {"send": self._sent_once, "call": self._called}
        return next(check for kind, check in kinds.items() if kind in answer)

    def _sent_once(self, answer: dict[str, Any]) -> Iterator[Violation]:
        digest = hashlib.sha256(answer["token"].encode()).hexdigest()
        task = TaskRow.objects.select_related("execution").filter(token_hash=digest).first()
        if task is None:
            yield Violation("I10", "", f"SendTask* accepted an invalid task token: {answer}")
        elif digest in self._sent:
            yield Violation("I10", task.execution.arn, f"task {task.task}: two sends were answered")
        else:
            yield from _sent(task, answer)
        self._sent.add(digest)

    def _called(self, answer: dict[str, Any]) -> Iterator[Violation]:
        self._calls.setdefault(answer["execution"], Counter())[answer["call"]] += 1
        yield from ()


def _started(answer: dict[str, Any]) -> Iterator[Violation]:
    if not Execution.objects.filter(arn=answer["start"]).exists():
        yield Violation("I2", answer["start"], "its start was answered, and it is not there")


def _expected(answer: dict[str, Any]) -> Iterator[Violation]:
    row = Execution.objects.filter(arn=answer["expect"]).values_list("status", "output").first()
    status, output = row or ("absent", None)
    if output is None or json.loads(output) != json.loads(answer["output"]):
        yield Violation("I12", answer["expect"], f"{status}: its output is not the expected one")


def _polled(answer: dict[str, Any]) -> Iterator[Violation]:
    rows = HistoryEvent.objects.filter(execution__arn=answer["poll"]).order_by("event_id")
    stored = [list(row) for row in rows.values_list(*_COLUMNS)[: len(answer["events"])]]
    if stored != answer["events"]:
        yield Violation("I16", answer["poll"], "what was read is not the beginning of its history")


# -- outcomes --------------------------------------------------------------------------------------


def _sent(task: TaskRow, answer: dict[str, Any]) -> Iterator[Violation]:
    """I10: the outcome in the history is the answered SendTaskSuccess or SendTaskFailure."""
    arn = task.execution.arn
    if task.status != "closed":
        yield Violation("I10", arn, f"task {task.task} is open after a send that was answered")
        return
    outcome = _recorded_outcome(task) or _outcome_in_inbox(task)
    if outcome is None:
        if task.execution.status == "RUNNING" and _is_awaited(task):
            yield Violation("I10", arn, f"task {task.task}: the outcome that was sent is lost")
        return
    kind, details = outcome
    names = ("output",) if answer["send"] == "success" else ("error", "cause")
    same = all(details.get(name) == _stored(answer.get(name)) for name in names)
    same = same and engine.EVENT_TYPES[kind].stage is _STAGES[answer["send"]]
    if not same and not _is_replaced(task, answer):
        yield Violation("I10", arn, f"task {task.task} has an outcome that is not the one sent")


def _is_replaced(task: TaskRow, answer: dict[str, Any]) -> bool:
    """Return whether an injected fault replaced the outcome that the client sent."""
    edits = DebugEdit.objects.filter(
        execution_id=task.execution_id, state=task.state, what=faults.FAULT
    )
    texts = edits.filter(before=_stored(answer.get("output", ""))).values_list("after", flat=True)
    return any(json.loads(text).get("when") == engine.FaultTime.AFTER for text in texts)


def _stored(text: str | None) -> str | None:
    return None if text is None else storable(text)


def _recorded_outcome(task: TaskRow) -> tuple[str, dict[str, Any]] | None:
    """Return the task's outcome in the history: the first outcome event of its chain."""
    rows = HistoryEvent.objects.filter(execution_id=task.execution_id, state=task.state)
    chain = {task.task}
    later = rows.filter(event_id__gt=task.task).order_by("event_id")
    for number, previous, kind in later.values_list(*_COLUMNS):
        if previous not in chain:
            continue
        if kind in event_types.WORK_PROGRESS:
            chain.add(number)
        elif kind in event_types.WORK_OUTCOMES:
            return kind, json.loads(rows.values_list("details", flat=True).get(event_id=number))
    return None


def _outcome_in_inbox(task: TaskRow) -> tuple[str, dict[str, Any]] | None:
    """Return the outcome waiting in the inbox."""
    for message in InboxMessage.objects.filter(execution_id=task.execution_id).order_by("pk"):
        body = json.loads(message.body)
        if body.get("task") == task.task and message.kind in _OUTCOME_MESSAGES:
            return message.kind, body
    return None


def _is_awaited(task: TaskRow) -> bool:
    """Whether a line of control still waits for a task."""
    frames = StoredExecution(task.execution).frames()
    return any(frame.phase == "task" and frame.waits_for == task.task for frame in frames)


# -- calls -----------------------------------------------------------------------------------------


def _calls(arn: str, calls: Counter[str]) -> Iterator[Violation]:
    """Check that each request is one dispatch of an attempt, with the attempt's key."""
    dispatches: dict[str, int] = {}
    for row in TaskRow.objects.select_related("execution").filter(execution__arn=arn):
        key = claim.get_work(row.execution_id, row.task).idempotency_key
        dispatches[key] = dispatches.get(key, 0) + row.dispatches
    for key, number in calls.items():
        if key not in dispatches:
            yield Violation("I13", arn, f"a request bore the key {key}, which no attempt has")
        elif number > dispatches[key]:
            yield Violation("I13", arn, f"{number} requests with key {key}, {dispatches[key]} sent")
