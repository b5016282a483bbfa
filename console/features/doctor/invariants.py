"""Check the invariants I1 to I18 on the rows of executions (docs/reference/invariants.md)."""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import datetime
from itertools import pairwise
from typing import TYPE_CHECKING, Any, assert_never

from django.db.models import Exists, ForeignKey, OuterRef

import engine
from console import arns
from console.db.rows import storable
from console.features.doctor import progress
from console.features.doctor.stored_executions import Violation, batches, states_of
from console.features.doctor.walk import ENDS, OUTCOMES, REDRIVEN, Walk, between
from console.models import (
    AuditEntry,
    Definition,
    Execution,
    HistoryEvent,
    InboxMessage,
    RunRow,
    RunValue,
    TaskRow,
    Timer,
)
from console.statuses import TaskClock
from console.store.state import history, wait_scale
from console.store.tasks import timeouts
from engine import event_types

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from django.db.models import Model, QuerySet

    from console.features.doctor.stored_executions import HistoryLine, StoredExecution

    Check = Callable[[StoredExecution, Walk], Iterator[tuple[str, str]]]
_OFFERED = frozenset({"ActivityScheduled", "MapRunStarted"})
_CALL_STARTED = engine.event_names(
    frozenset({engine.Family.LAMBDA_FUNCTION, engine.Family.TASK}), engine.Stage.STARTED
)
_ROOTS = {"ExecutionStarted", "ExecutionAborted", "ExecutionTimedOut", "EvaluationFailed"}
_TIMEOUT = "States.Timeout"  # the event of a missed heartbeat has this name, too
_SPECIAL = {_TIMEOUT, "States.DataLimitExceeded", "States.Runtime"}
_MAX_ATTEMPTS, _INTERVAL_S, _RATE = 3, 1, 2.0
_ROUNDED_MS = 1
_PAGE = 100
_MOST_EVENTS = 1_000  # longer histories are not read three times: it would take too long
_MODELS = (Execution, RunRow, RunValue, HistoryEvent, InboxMessage, Timer, TaskRow, AuditEntry)
_MOST_ORPHANS = 100  # of a kind: who has more has one reason for all
_SHAPING = ("ResultSelector", "ResultPath", "OutputPath", "Output", "ResultWriter")
CLOCKS_APART_MS = 20
"""The maximum difference between two processes' measurements of the database's clock."""


def orphans() -> Iterator[Violation]:
    """Yield dangling references; one statement per kind, so each sees one snapshot."""
    for model in _MODELS:
        for field in model._meta.concrete_fields:  # noqa: SLF001 - Django's documented API
            if isinstance(field, ForeignKey) and not field.db_constraint:  # type: ignore[attr-defined]  # the stubs lack it
                yield from _missing(model, field)


def _missing(model: type[Model], field: ForeignKey[Any, Any]) -> Iterator[Violation]:
    referred = field.related_model._base_manager.filter(pk=OuterRef(field.attname))  # noqa: SLF001
    rows = model._base_manager.filter(~Exists(referred), **{f"{field.name}__isnull": False})  # noqa: SLF001
    values = rows.order_by().values_list(field.attname, flat=True).distinct()
    for value in values[:_MOST_ORPHANS]:
        problem = f"a row of {model._meta.db_table} is of {field.name} {value}, which is not there"  # noqa: SLF001
        yield Violation("I17", "", problem)


def named(record: StoredExecution, walk: Walk) -> Iterator[tuple[str, str]]:
    """I2: an execution's unique ARN consists of its state machine and name."""
    del walk
    execution = record.execution
    if not arns.is_express(execution.arn):
        expected = arns.execution_arn(execution.state_machine_arn, execution.name)
        if execution.arn != expected:
            yield "I2", f"its machine and name say {expected}"


def fence(record: StoredExecution, walk: Walk) -> Iterator[tuple[str, str]]:
    """I11: the run's next event number follows the last event, in its row and snapshot."""
    del walk
    if record.run is None:
        yield "I11", "the execution has no run"
        return
    following = max((event.id for event in record.events), default=0) + 1
    if record.run.next_event != following:
        yield "I11", f"its next event is {record.run.next_event}, wanted {following}"
    if record.running and record.run.version < 0:
        yield "I11", f"version {record.run.version}"
    if record.running and not record.run.parked:
        run = record.snapshot()
        if run and run.next_event != record.run.next_event:
            yield "I11", f"its snapshot goes on at event {run.next_event}, wanted {following}"


def stitched(record: StoredExecution, walk: Walk) -> Iterator[tuple[str, str]]:
    """I14: the pages of GetExecutionHistory together equal the stored history."""
    del walk
    if len(record.events) > _MOST_EVENTS:
        return
    event_ids = [event.id for event in record.events]
    if list(_told(record.execution.pk, reverse=False)) != event_ids:
        yield "I14", "the pages of its history are not its history"
    if list(_told(record.execution.pk, reverse=True)) != event_ids[::-1]:
        yield "I14", "the pages of its history from the end are not its history backwards"


def _told(execution_id: int, *, reverse: bool) -> Iterator[int]:
    after = 0
    while rows := history.list_events(execution_id, after=after, limit=_PAGE, reverse=reverse):
        yield from (event.event_id for event in rows)
        after = rows[-1].event_id
        if len(rows) < _PAGE:
            return


def attempts(record: StoredExecution, walk: Walk) -> Iterator[tuple[str, str]]:
    """I7: at most 1 + MaxAttempts attempts, each after its backoff; a redrive counts anew."""
    repeated = {visit: starts for visit, starts in walk.starts.items() if len(starts) > 1}
    if not repeated:
        return
    states = states_of(record.definition)
    for visit, starts in repeated.items():
        state = states.get(walk.by_id[visit].state)
        if state is None:
            continue
        retriers = state.get("Retry", [])
        most = 1 + sum(retrier.get("MaxAttempts", _MAX_ATTEMPTS) for retrier in retriers)
        for tries in between(starts, walk.redrives):
            if len(tries) > most:
                name = walk.by_id[visit].state
                yield "I7", f"state {name!r} (event {visit}): {len(tries)} attempts of {most}"
            elif len(tries) > 1:
                yield from _pauses(record, walk, retriers, tries)


def _pauses(
    record: StoredExecution, walk: Walk, retriers: Sequence[Mapping[str, Any]], tries: Sequence[int]
) -> Iterator[tuple[str, str]]:
    """Compare the backoff before each retry with its Retrier's."""
    failures = [walk.by_id[walk.by_id[start].previous] for start in tries[1:]]
    details = record.details([failure.id for failure in failures if failure.type in OUTCOMES])
    retries = [0] * len(retriers)
    for start, failure in zip(tries[1:], failures, strict=True):
        place = _taker(retriers, details.get(failure.id, {}).get("error"))
        if place is None:
            wanted_s = min(_pause_s(retrier, 0) for retrier in retriers)
        else:
            wanted_s = _pause_s(retriers[place], retries[place])
            retries[place] += 1
        pause = walk.by_id[start].at_ms - failure.at_ms
        if pause + _ROUNDED_MS < wanted_s * 1000:
            yield "I7", f"attempt {start} came {pause} ms after a failure, wanted {wanted_s} s"


def _taker(retriers: Sequence[Mapping[str, Any]], error: str | None) -> int | None:
    """Return the index of the Retrier that handled an error, None if ambiguous."""
    if error is None or error in _SPECIAL:
        return None
    takers = {error, "States.ALL", "States.TaskFailed"}
    places = (
        place for place, retrier in enumerate(retriers) if takers & set(retrier["ErrorEquals"])
    )
    return next(places, None)


def _pause_s(retrier: Mapping[str, Any], retries: int) -> float:
    """Return the shortest backoff of a Retrier after some retries, in seconds."""
    if retrier.get("JitterStrategy") == "FULL":
        return 0
    interval = float(retrier.get("IntervalSeconds", _INTERVAL_S))
    try:
        pause = interval * float(retrier.get("BackoffRate", _RATE)) ** retries
    except OverflowError:
        pause = 99_999_999.0
    return min(pause, float(retrier.get("MaxDelaySeconds", 99_999_999)))


def numbering(record: StoredExecution, walk: Walk) -> Iterator[tuple[str, str]]:
    """I3: event ids are 1..n, each event follows an earlier one, one root; times never decrease."""
    del walk
    events = record.events
    if not events or events[0].type != "ExecutionStarted":
        yield "I3", "the history does not begin with ExecutionStarted"
    for place, event in enumerate(events, 1):
        if event.id != place:
            yield "I3", f"event {place} is missing, {event.id} is in its place"
            return
        if not 0 <= event.previous < event.id:
            yield "I3", f"event {event.id} follows {event.previous}"
    for before, event in pairwise(events):
        if event.at_ms < before.at_ms:
            yield "I3", f"event {event.id} is {before.at_ms - event.at_ms} ms before {before.id}"
    yield from _roots(events)


def _roots(events: list[HistoryLine]) -> Iterator[tuple[str, str]]:
    """Check events without a predecessor: the start, the first state, an end from outside."""
    roots = [event for event in events if event.previous == 0 and event.type not in _ROOTS]
    for event in roots[1:] if roots and roots[0].type in event_types.STATE_ENTRIES else roots:
        yield "I3", f"event {event.id} ({event.type}) follows nothing"
    for event in events[1:]:
        if event.type == "ExecutionStarted":
            yield "I3", f"event {event.id} starts the execution once more"


def ending(record: StoredExecution, walk: Walk) -> Iterator[tuple[str, str]]:
    """I4: one final event, equal to the execution's row; only a redrive may follow."""
    events, status = record.events, record.execution.status
    for event, after in pairwise(events):
        if (event.type in ENDS) != (after.type == REDRIVEN):
            yield "I4", f"event {after.id} ({after.type}) follows {event.type}"
    last = ENDS.get(events[-1].type, "") if events else ""
    redriving = record.has_message("Redrive")
    expected = "RUNNING" if not last or redriving else last
    if status != expected:
        yield "I4", f"status {status}, but the last event is {events[-1].type if events else None}"
    redrives = len(walk.redrives) + redriving
    if record.execution.redrive_count != redrives:
        yield "I4", f"redriveCount {record.execution.redrive_count}, {redrives} in the history"
    yield from _check_row(record)


def _check_row(record: StoredExecution) -> Iterator[tuple[str, str]]:
    """Compare the row with the event that ended the execution."""
    columns = ("status", "output", "error", "cause", "stop_ms")
    row: dict[str, Any] = Execution.objects.values(*columns).get(pk=record.execution.pk)
    if record.running:
        filled = [name for name in columns[1:] if row[name] is not None]
        if filled:
            yield "I4", f"RUNNING with {', '.join(filled)}"
        return
    if row["stop_ms"] is None:
        yield "I4", "ended without a stop date"
    last = record.events[-1] if record.events else None
    if last is None or ENDS.get(last.type) != row["status"]:
        return
    details = record.details([last.id])[last.id]
    names = [] if last.type == "ExecutionTimedOut" else ["output", "error", "cause"]
    for name in names:  # a timeout has an error in its event only
        ended = details.get(name)
        if (ended if ended is None else storable(ended)) != row[name]:
            yield "I4", f"{name} differs from that of event {last.id}"
    if row["stop_ms"] is not None and row["stop_ms"] > last.at_ms:
        yield "I4", f"stopped {row['stop_ms'] - last.at_ms} ms after its last event"


def visits(record: StoredExecution, walk: Walk) -> Iterator[tuple[str, str]]:
    """I5: a state is exited at most once per visit, and exactly once in a successful execution."""
    succeeded = record.execution.status == "SUCCEEDED"
    for visit, exits in walk.exits.items():
        name = f"state {walk.by_id[visit].state!r} (event {visit})"
        if len(exits) > 1:
            yield "I5", f"{name} was left {len(exits)} times: {exits}"
        elif succeeded and not exits and not walk.died(visit):
            yield "I5", f"{name} was never left"
    for event in walk.strays:
        if event.type in event_types.STATE_EXITS:
            yield "I5", f"event {event.id} leaves state {event.state!r}, which was not entered"


def outcomes(record: StoredExecution, walk: Walk) -> Iterator[tuple[str, str]]:
    """I6: a scheduled task has one outcome, or none if its execution or group ended first."""
    for task, ended in walk.outcomes.items():
        if len(ended) > 1:
            yield "I6", f"task {task} has {len(ended)} outcomes: {ended}"
        elif not ended and not _may_lack_outcome(record, walk, task):
            yield "I6", f"task {task} has no outcome and will have none"
    for event in walk.strays:
        if event.type not in event_types.STATE_EXITS:
            yield "I6", f"event {event.id} ({event.type}) is the outcome of nothing"
    yield from _rows(record, walk)


def _may_lack_outcome(record: StoredExecution, walk: Walk, task: int) -> bool:
    """Whether a task may lack an outcome, for now or for ever."""
    end = walk.next_end(task)
    if end not in ("", "SUCCEEDED"):
        return True  # the execution ended before it
    if walk.died(walk.visit.get(task, 0)):
        return True  # a sibling failed first, or its group is still running, which I1 checks
    row = record.tasks.get(task)
    opened = row is not None and row.status != "closed"
    coming = record.has_message("Stop") or bool(record.messages_of().get(task))
    return not end and (opened or coming or task in _withheld(record))


def _withheld(record: StoredExecution) -> set[int]:
    """Return the tasks whose call or answer a fault holds back."""
    run = record.snapshot() if record.execution.faults else None
    return set() if run is None or run.faults is None else run.faults.withheld_tasks


def _rows(record: StoredExecution, walk: Walk) -> Iterator[tuple[str, str]]:
    """Compare the tasks' rows with their events.

    A call has a row from its ...Started event on: a failing sibling may have prevented it before,
    and a fault may hold it back.
    """
    expected = {event.id for event in record.events if event.type in _OFFERED}
    expected |= {event.previous for event in record.events if event.type in _CALL_STARTED}
    if record.execution.faults:
        expected &= set(record.tasks)
    for task in sorted(expected ^ set(record.tasks)):
        missing = "row" if task in expected else "event"
        yield "I6", f"task {task} has no {missing}"
    for task, row in record.tasks.items():
        if row.status != "closed" and walk.outcomes.get(task):
            yield "I6", f"task {task} has its outcome and is open"


def in_order(record: StoredExecution, walk: Walk) -> Iterator[tuple[str, str]]:
    """I9: result i is of item or branch i, in whatever order they finished."""
    groups = [visit for visit in walk.exits if _is_group(walk, visit)]
    states = states_of(record.definition) if groups else {}
    for visit in groups:
        state = states.get(walk.by_id[visit].state)
        if state is None or any(key in state for key in _SHAPING):
            continue
        event = _result_event(walk, visit)
        if event is not None:
            yield from _compare_results(record, walk, state, visit, event)


def _is_group(walk: Walk, visit: int) -> bool:
    return walk.by_id[visit].type in ("MapStateEntered", "ParallelStateEntered")


def _result_event(walk: Walk, visit: int) -> int | None:
    """Return the event with the result of a visit, None without one or after a caught error."""
    if not walk.exits[visit] or not walk.starts[visit]:
        return None
    joined = walk.joined.get(walk.starts[visit][-1])
    event = walk.exits[visit][0]
    if joined is None:
        return None
    before = walk.by_id[joined].previous
    plain = walk.by_id[event].previous in (before, joined) or _of_map_run(walk, before)
    return event if plain else None


def _of_map_run(walk: Walk, event: int) -> bool:
    return event in walk.by_id and walk.by_id[event].type == "MapRunSucceeded"


def _compare_results(
    record: StoredExecution, walk: Walk, state: Mapping[str, Any], visit: int, event: int
) -> Iterator[tuple[str, str]]:
    attempt = walk.starts[visit][-1]
    if state["Type"] == "Parallel":
        lines = dict(enumerate(_branch_outputs(walk, state, attempt)))
    elif _of_map_run(walk, walk.by_id[walk.joined[attempt]].previous):
        yield from _compare_children(record, walk, visit, event)
        return
    else:
        lines = _iteration_outputs(record, walk, attempt)
    details = record.details([event, *lines.values()])
    outputs = [json.loads(details[lines[index]]["output"]) for index in sorted(lines)]
    if json.loads(details[event]["output"]) != outputs:
        yield "I9", f"event {event}: the result is not that of the {len(lines)} lines, in order"


def _iteration_outputs(record: StoredExecution, walk: Walk, attempt: int) -> dict[int, int]:
    """Return index -> the event with the output of that iteration."""
    ended = [
        event.id
        for event in record.events
        if event.type == "MapIterationSucceeded"
        and walk.visit.get(event.id) == walk.visit[attempt]
        and event.id > attempt
    ]
    details = record.details(ended)
    return {details[event_id]["index"]: walk.by_id[event_id].previous for event_id in ended}


def _branch_outputs(walk: Walk, state: Mapping[str, Any], attempt: int) -> Iterator[int]:
    """Yield the event with each branch's output: the last exit of a state in it."""
    inside = [visit for visit, home in walk.home.items() if home == attempt]
    for branch in state["Branches"]:
        branch_visits = [visit for visit in inside if walk.by_id[visit].state in branch["States"]]
        yield max(event for visit in branch_visits for event in walk.exits[visit])


def _compare_children(
    record: StoredExecution, walk: Walk, visit: int, event: int
) -> Iterator[tuple[str, str]]:
    """Compare the result of a Map Run with its children's outputs."""
    run = max(
        (run for task, run in record.map_runs.items() if walk.visit.get(task) == visit),
        key=lambda run: run.task,
    )
    rows = Execution.objects.filter(map_run=run, status="SUCCEEDED").order_by("item_index")
    outputs = [json.loads(text or "null") for text in rows.values_list("output", flat=True)]
    if json.loads(record.details([event])[event]["output"]) != outputs:
        yield "I9", f"event {event}: the result is not that of the Map Run's children, in order"


def never_early(record: StoredExecution, walk: Walk) -> Iterator[tuple[str, str]]:
    """I8: Wait states and timeouts of tasks and executions are never early."""
    early_waits = list(_early_waits(record, walk))
    if early_waits and not wait_scale.were_scaled():
        yield from early_waits
    for task in walk.outcomes:
        for outcome in walk.outcomes[task]:
            if engine.EVENT_TYPES[walk.by_id[outcome].type].stage is engine.Stage.TIMED_OUT:
                yield from _early_timeout(record, walk, task, outcome)
    yield from _early_end(record)


def _early_waits(record: StoredExecution, walk: Walk) -> Iterator[tuple[str, str]]:
    waits = [visit for visit in walk.exits if walk.by_id[visit].type == "WaitStateEntered"]
    states = states_of(record.definition) if waits else {}
    for visit in waits:
        entered = walk.by_id[visit]
        due_ms = _due_ms(entered, states.get(entered.state, {}))
        for event in walk.exits[visit]:
            yield from _early(walk.by_id[event], due_ms)


def _due_ms(entered: HistoryLine, state: Mapping[str, Any]) -> int:
    """Return the earliest end of a Wait, as far as its literals determine it."""
    seconds, timestamp = state.get("Seconds"), state.get("Timestamp")
    if isinstance(seconds, int):
        return entered.at_ms + seconds * 1000
    if isinstance(timestamp, str) and timestamp[:1].isdigit():
        return int(datetime.fromisoformat(timestamp).timestamp()) * 1000
    return entered.at_ms


def _early_timeout(
    record: StoredExecution, walk: Walk, task: int, outcome: int
) -> Iterator[tuple[str, str]]:
    """Compare a task's timeout with its row, which has the expired kind."""
    row = record.tasks.get(task)
    if row is None or record.execution.faults:  # a fault may time a task out at any time
        return
    clock = TaskClock(row.clock) if row.clock else None  # an earlier version wrote none
    match clock:
        case TaskClock.SCHEDULE_TO_CLOSE | TaskClock.YEAR:
            year_ms = row.scheduled_ms + timeouts.YEAR_S * 1000
            yield from _early(walk.by_id[outcome], row.close_due_ms or year_ms)
        case TaskClock.SCHEDULE_TO_START:  # its limit is a tag of the activity, not kept in the row
            if row.started_ms is not None:
                yield "I8", f"event {outcome}: task {task} was not taken in time, but it was taken"
        case TaskClock.START_TO_CLOSE | TaskClock.HEARTBEAT | None:
            yield from _since_start(row, walk, task, outcome)
        case _:
            assert_never(clock)


def _since_start(row: TaskRow, walk: Walk, task: int, outcome: int) -> Iterator[tuple[str, str]]:
    """Compare TimeoutSeconds or HeartbeatSeconds; an activity's begin at its start."""
    limits_of_clock: dict[str, tuple[int | None, ...]] = {
        TaskClock.START_TO_CLOSE: (row.timeout_s,),
        TaskClock.HEARTBEAT: (row.heartbeat_s,),
    }
    candidates = limits_of_clock.get(
        row.clock, (row.timeout_s, row.heartbeat_s)
    )  # no clock: an older row
    limits = [seconds for seconds in candidates if seconds is not None]
    begun = walk.by_id[task].at_ms if row.kind != "activity" else row.started_ms
    if limits and begun is not None:
        yield from _early(walk.by_id[outcome], begun + min(limits) * 1000)
    if not limits:
        yield "I8", f"event {outcome}: a timeout of task {task}, which has none"


def _early_end(record: StoredExecution) -> Iterator[tuple[str, str]]:
    seconds = record.definition.get("TimeoutSeconds")
    if not isinstance(seconds, int) or arns.is_express(record.execution.arn):
        return
    begun, seconds = 0, min(seconds, engine.MAX_EXECUTION_S)
    for event in record.events:
        if event.type in ("ExecutionStarted", REDRIVEN):
            begun = event.at_ms
        elif event.type == "ExecutionTimedOut":
            yield from _early(event, begun + seconds * 1000)


def _early(event: HistoryLine, due_ms: int) -> Iterator[tuple[str, str]]:
    if event.at_ms + CLOCKS_APART_MS < due_ms:
        yield "I8", f"event {event.id} ({event.type}) came {due_ms - event.at_ms} ms early"


OF_EXECUTIONS: tuple[Check, ...] = (
    progress.check_progress,
    progress.counts,
    progress.rest,
    progress.halted_row,
    named,
    fence,
    numbering,
    ending,
    visits,
    outcomes,
    attempts,
    never_early,
    in_order,
    stitched,
)
"""Every check of one execution: it yields the invariant's id and the violation."""


@dataclass
class Checked:
    """The number of checked executions."""

    n: int = 0


def check(
    executions: QuerySet[Execution] | None = None, checked: Checked | None = None
) -> Iterator[Violation]:
    """Yield the violations of executions, batch by batch.

    ``executions``: None for all, and for the rows that are of none.
    """
    for batch in batches(Execution.objects.all() if executions is None else executions):
        for record in batch:
            yield from of_execution(record)
        if checked is not None:
            checked.n += len(batch)
    if executions is None:
        yield from orphans()


def of_execution(record: StoredExecution) -> Iterator[Violation]:
    """Yield the violations of one execution; an unreadable row is one, too."""
    walk = Walk(record.events)
    for invariant in OF_EXECUTIONS:
        try:
            for number, problem in invariant(record, walk):
                yield Violation(number, record.execution.arn, problem)
        except Definition.DoesNotExist:
            continue  # I17 says so
        except (KeyError, IndexError, ValueError, TypeError) as error:
            where = f"{invariant.__module__.rpartition('.')[2]}.{invariant.__name__}"
            yield Violation("I3", record.execution.arn, f"{where} cannot read its rows: {error!r}")


__all__ = ["OF_EXECUTIONS", "Checked", "Violation", "check", "of_execution"]
