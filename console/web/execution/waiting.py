"""List what an execution waits for, and the open tasks: callbacks, activities, approvals."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, assert_never

from django.db.models import Count, Q, Sum, Value

import engine
from console.db.prepared import read_models, read_rows
from console.models import Execution, MapRun, RunRow, TaskRow, Timer
from console.statuses import OPEN_TASKS, ExecutionStatus, TaskClock, TaskKind, TaskStatus
from console.store.state import pause, transition_rate
from console.store.tasks import timeouts
from console.store.tasks.claim import BUILTIN_WORKER, OWN
from console.store.tasks.manual import is_answerable
from console.web.core import formatting
from console.web.history import timed_out

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from django.db.models import QuerySet
    from django.http import QueryDict

    from console.web.core.scope import Scope

PAGE = 50
MOST = 50
BREAKPOINT = "Breakpoint"
"""Kind of a line of control that is halted at a breakpoint."""
_EXECUTION_TIMER = "execution"
_APPROVAL = re.compile(
    r"approv|review|reject|accept|confirm|authori[sz]|consent|decision|decide|sign.?off|manual|human",
    re.IGNORECASE,
)
_SAME_MOMENT = ("execution_id", "task")
_BARE = ("input", "credentials", "execution__input", "execution__output", "execution__cause")


# -- one task --------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Deadline:
    """The next timeout of a task, with its kind."""

    at_ms: int
    clock: str

    @property
    def words(self) -> str:
        """Return the kind of timeout in words."""
        return timed_out.WORDS.get(self.clock, "TimeoutSeconds")


@dataclass(frozen=True, slots=True)
class OpenTask:
    """An open task for display. ``answerable``: a person or worker may complete it."""

    row: TaskRow
    kind: str
    target: str
    status: formatting.StatusLabel
    worker: str
    deadline: Deadline | None
    answerable: bool

    @property
    def key(self) -> str:
        """Return execution id and task number, for a form."""
        return f"{self.row.execution_id}-{self.row.task}"

    @property
    def offered(self) -> bool:
        """Whether a list offers to complete it: no worker has taken it."""
        return self.answerable and self.taken_ms is None

    @property
    def is_approval(self) -> bool:
        """Whether it asks a person, by the names of its state and resource.

        Nothing else in a task shows this: a program and a person answer with the same calls.
        """
        return self.answerable and bool(_APPROVAL.search(f"{self.row.state} {self.target}"))

    @property
    def taken_ms(self) -> int | None:
        """Return when a worker took the activity task, None if no worker did."""
        return self.row.started_ms if self.row.kind == TaskKind.ACTIVITY else None

    @property
    def later_deadlines(self) -> list[tuple[str, str]]:
        """Return the timeouts that begin when a worker takes the activity task."""
        row = self.row
        if row.kind != TaskKind.ACTIVITY or row.status != TaskStatus.SCHEDULED:
            return []
        clocks = ((row.timeout_s, TaskClock.START_TO_CLOSE), (row.heartbeat_s, TaskClock.HEARTBEAT))
        return [
            (formatting.limit_text(seconds * formatting.SECOND), timed_out.WORDS[clock])
            for seconds, clock in clocks
            if seconds is not None and seconds < timeouts.YEAR_S
        ]

    @property
    def since_ms(self) -> int:
        """Return when its worker or call began, else when it was scheduled."""
        return self.row.started_ms or self.row.scheduled_ms

    @property
    def again(self) -> str:
        """Return a note if it was dispatched more than once, else ""."""
        return timed_out.resend_note(self.row)

    @property
    def who(self) -> str:
        """Return who can complete it, in words."""
        if self.row.kind == TaskKind.ACTIVITY:
            return "an activity worker or an operator"
        if self.row.pattern == engine.IntegrationPattern.WAIT_FOR_TASK_TOKEN:
            return "anyone with the task token or an operator"
        return "the called service"


def open_task(row: TaskRow) -> OpenTask:
    """Return a task for display."""
    return OpenTask(
        row=row,
        kind=_task_kind(row),
        target=_task_target(row),
        status=_task_status(row),
        worker=_worker_text(row),
        deadline=_deadline(row),
        answerable=is_answerable(row),
    )


def _task_kind(row: TaskRow) -> str:
    if row.kind == TaskKind.ACTIVITY:
        return "Activity task"
    if row.kind == TaskKind.MAP:
        return "Map Run"
    if row.pattern == engine.IntegrationPattern.WAIT_FOR_TASK_TOKEN:
        return "Callback"
    if row.service in ("states", "aws-sdk:sfn") and row.pattern:
        return "Child execution"
    return "Job" if row.pattern else "Call"


def _task_target(row: TaskRow) -> str:
    kind = TaskKind(row.kind)
    match kind:
        case TaskKind.SERVICE:
            return f"{row.service}:{row.action}"
        case TaskKind.LAMBDA | TaskKind.ACTIVITY:
            return row.resource.rpartition(":")[2]
        case TaskKind.MAP:
            return row.state
        case _:
            assert_never(kind)


def _task_status(row: TaskRow) -> formatting.StatusLabel:
    status, is_activity = TaskStatus(row.status), row.kind == TaskKind.ACTIVITY
    match status:
        case TaskStatus.SCHEDULED:
            return formatting.StatusLabel(
                "idle", "Not picked up yet" if is_activity else "Not sent yet"
            )
        case TaskStatus.STARTED | TaskStatus.WAITING:
            return formatting.StatusLabel("running", _words_of_running(row, status))
        case TaskStatus.CLOSED:
            return formatting.StatusLabel("idle", "Ended")
        case _:
            assert_never(status)


def _words_of_running(row: TaskRow, status: TaskStatus) -> str:
    """Describe the worker of a dispatched task."""
    kind = TaskKind(row.kind)
    match kind:
        case TaskKind.ACTIVITY:
            return "Picked up by a worker"
        case TaskKind.MAP:
            return "Running"
        case TaskKind.LAMBDA | TaskKind.SERVICE:
            return _words_of_waiting(row) if status == TaskStatus.WAITING else "Call in progress"
        case _:
            assert_never(kind)


def _words_of_waiting(row: TaskRow) -> str:
    """Describe who completes a task that waits for a callback or job."""
    match _task_kind(row):
        case "Callback":
            return "Waiting for its task token"
        case "Child execution":
            return "Waiting for the child execution"
        case _:
            return "Waiting for the job to end"


def _worker_text(row: TaskRow) -> str:
    """Return the worker of a task, "" without one."""
    if row.status == TaskStatus.WAITING:
        return ""
    return "this server" if row.worker == OWN + BUILTIN_WORKER else row.worker.removeprefix(OWN)


def _deadline(row: TaskRow) -> Deadline | None:
    """Return the next timeout; the default of a year is left out."""
    due = [(row.timeout_due_ms, row.clock), (row.heartbeat_due_ms, TaskClock.HEARTBEAT)]
    deadlines = [Deadline(at, clock) for at, clock in due if at and clock != TaskClock.YEAR]
    return min(deadlines, key=lambda deadline: deadline.at_ms, default=None)


# -- the tasks of a project ------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class TaskFilters:
    """Filters of the list of tasks; ``activity``: a name, "" for all kinds."""

    kind: str = ""
    activity: str = ""
    after: tuple[int, ...] = ()

    @classmethod
    def of(cls, query: QueryDict, activity: str = "") -> TaskFilters:
        """Read the query string; invalid values are ignored."""
        kind, after = query.get("kind", ""), query.get("after", "").split("-")
        key = tuple(int(part) for part in after if part.isdecimal() and len(part) < 16)  # noqa: PLR2004
        return cls(
            kind=kind if kind in ("activity", "callback") else "",
            activity=activity,
            after=key if len(key) == 3 else (),  # noqa: PLR2004 - moment, execution, task
        )


@dataclass(frozen=True, slots=True)
class TaskPage:
    """A page of open tasks, oldest first; ``after``: key of the next page, or ""."""

    rows: tuple[OpenTask, ...]
    total: int
    filters: TaskFilters
    after: str


def open_tasks(scope: Scope, filters: TaskFilters) -> QuerySet[TaskRow]:
    """Return the query of open tasks that a person or worker completes."""
    token = Q(kind=TaskKind.SERVICE, pattern=engine.IntegrationPattern.WAIT_FOR_TASK_TOKEN.value)
    activity = Q(kind=TaskKind.ACTIVITY)
    if filters.activity:
        activity &= Q(resource=scope.arn("activity", filters.activity))
    kinds = {"activity": activity, "callback": token}
    which = activity if filters.activity else kinds.get(filters.kind, activity | token)
    return TaskRow.objects.filter(
        which,
        status__in=OPEN_TASKS,
        execution__project=scope.project,
        execution__arn__startswith=f"{scope.arn('')[:-1]}:",
    )


def open_task_count(scope: Scope, key: str) -> QuerySet[TaskRow, tuple[str, int]]:
    """Return a one-row query: ``key``, and the number of open tasks."""
    rows = open_tasks(scope, TaskFilters()).order_by().annotate(key=Value(key))
    return rows.values_list("key").annotate(Count("task"))


def list_open_tasks(scope: Scope, filters: TaskFilters) -> TaskPage:
    """Return a page of open tasks."""
    every = open_tasks(scope, filters)
    rows = list(
        _following(every, filters)
        .select_related("execution")
        .defer(*_BARE)
        .order_by("scheduled_ms", *_SAME_MOMENT)[: PAGE + 1]
    )
    last = rows[PAGE - 1] if len(rows) > PAGE else None
    after = f"{last.scheduled_ms}-{last.execution_id}-{last.task}" if last else ""
    return TaskPage(tuple(open_task(row) for row in rows[:PAGE]), every.count(), filters, after)


def oldest_open_tasks(scope: Scope, most: int) -> tuple[OpenTask, ...]:
    """Return the oldest open tasks."""
    rows = open_tasks(scope, TaskFilters()).select_related("execution").defer(*_BARE)
    return tuple(open_task(row) for row in rows.order_by("scheduled_ms", *_SAME_MOMENT)[:most])


def _following(every: Any, filters: TaskFilters) -> Any:
    if not filters.after:
        return every
    moment, execution, task = filters.after
    same_moment = Q(scheduled_ms=moment)
    return every.filter(
        Q(scheduled_ms__gt=moment)
        | same_moment & Q(execution_id__gt=execution)
        | same_moment & Q(execution_id=execution, task__gt=task)
    )


# -- the panel of an execution ---------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class WaitingLine:
    """One line of control that waits.

    ``until_ms``: when it ends by itself. ``child``: ARN of an execution. ``event``: the last one
    of the visit that pauses.
    """

    state: str
    kind: str
    text: str
    since_ms: int | None = None
    until_ms: int | None = None
    until: str = ""
    child: str = ""
    task: OpenTask | None = None
    event: int = 0

    @property
    def is_halted(self) -> bool:
        """Whether it is stopped at a breakpoint."""
        return self.kind == BREAKPOINT

    @property
    def is_pause(self) -> bool:
        """Whether it continues by itself after a time: a Wait, or a retry's backoff."""
        return self.kind in _PAUSES

    def countdown(self, *, together: int) -> dict[str, str | int] | None:
        """Return the words around the remaining time in a graph box, None without one.

        At a breakpoint: around the time since. ``together``: the number of waiting lines of control
        in its state, including this.
        """
        if self.is_halted and self.since_ms is not None:
            before = f"{together:,} at a breakpoint · " if together > 1 else "At a breakpoint · "
            return {"before": before, "since": self.since_ms, "after": ""}
        if not self.is_pause or self.until_ms is None:
            return None
        before, after = _PAUSES[self.kind]
        if together > 1:
            before, after = f"{together:,} {_MANY[self.kind]} · next ", ""
        return {"before": before, "until": self.until_ms, "after": after}


_PAUSES = {"Wait": ("Waiting · ", " left"), "Retry": ("Next try in ", "")}
"""Kind of a line -> the words before and after its time left. No longer than a box is wide."""
_MANY = {"Wait": "wait", "Retry": "retry"}


@dataclass(frozen=True, slots=True)
class WaitingPart:
    """Everything a running execution waits for; empty after its end.

    ``more``: there are other lines. ``countdowns``: state -> its time left, as its box shows it.
    ``lone_states``: the states that a single line is about. ``heartbeats``: a stamp that changes
    with each heartbeat, "" if none is awaited. ``halts``: state -> its first line at a breakpoint.
    """

    lines: Sequence[WaitingLine] = ()
    more: bool = False
    countdowns: Mapping[str, dict[str, str | int]] = field(default_factory=dict)
    lone_states: frozenset[str] = frozenset()
    heartbeats: str = ""
    halts: Mapping[str, WaitingLine] = field(default_factory=dict)


def waiting_part(execution: Execution, *, whole: bool = True) -> WaitingPart:
    """Return what an execution waits for. ``whole``: the graph shows all iterations."""
    if execution.status != ExecutionStatus.RUNNING:
        return WaitingPart()
    rows = read_models("open tasks of an execution", _read_open_tasks, execution.pk)
    lines = [*_timer_lines(execution, alone=not rows), *_task_lines(execution, rows)]
    lines.sort(key=lambda line: line.until_ms or line.since_ms or 0)
    times = Counter(line.state for line in lines)
    beating = any(row.heartbeat_due_ms for row in rows)
    return WaitingPart(
        lines=tuple(lines[:MOST]),
        more=len(lines) > MOST,
        countdowns=_countdowns(lines, times, whole=whole),
        lone_states=frozenset(state for state, count in times.items() if count == 1),
        heartbeats=heartbeat_stamp(execution) if beating else "",
        halts={line.state: line for line in reversed(lines) if line.is_halted},
    )


def _read_open_tasks(execution: int) -> QuerySet[TaskRow]:
    open_tasks = TaskRow.objects.filter(execution_id=execution).exclude(status=TaskStatus.CLOSED)
    return open_tasks.defer("input", "credentials").order_by("task")[: MOST + 1]


def _countdowns(
    lines: Sequence[WaitingLine], times: Mapping[str, int], *, whole: bool
) -> dict[str, dict[str, str | int]]:
    """Return state -> remaining time; of several iterations the shortest one."""
    countdowns: dict[str, dict[str, str | int]] = {}
    pauses = Counter((line.state, line.kind) for line in lines)
    for line in lines:
        alone, together = times[line.state] == 1, pauses[line.state, line.kind]
        countdown = line.countdown(together=times[line.state])
        if countdown and (alone or (whole and together == times[line.state])):
            countdowns.setdefault(line.state, countdown)
    return countdowns


def heartbeat_stamp(execution: Execution) -> str:
    """Return a stamp that changes with each heartbeat; "" if none is awaited."""
    rows = TaskRow.objects.filter(execution_id=execution.pk, heartbeat_due_ms__isnull=False)
    due = rows.exclude(status=TaskStatus.CLOSED).aggregate(due=Sum("heartbeat_due_ms"))["due"]
    return f"{due:x}" if due else ""


def states_with_heartbeats(lines: Iterable[WaitingLine]) -> set[str]:
    """Return the names of states whose tasks need heartbeats."""
    return {line.state for line in lines if line.task and line.task.row.heartbeat_due_ms}


def _task_lines(execution: Execution, rows: Sequence[TaskRow]) -> Iterator[WaitingLine]:
    counts = {}
    if any(row.kind == TaskKind.MAP for row in rows):
        counts = {each.task: each for each in MapRun.objects.filter(parent=execution)}
    for row in rows:
        task = open_task(row)
        about = _map_run_line(counts.get(row.task)) or f"{task.target}: {task.status.word}"
        yield WaitingLine(
            state=row.state,
            kind=task.kind,
            text=about,
            since_ms=task.since_ms,
            until_ms=task.deadline.at_ms if task.deadline else None,
            until=f"times out: {task.deadline.words}" if task.deadline else "",
            child=_child_execution_line(row),
            task=task,
        )


def _map_run_line(run: MapRun | None) -> str:
    if run is None:
        return ""
    over = run.succeeded + run.failed + run.timed_out + run.aborted
    return f"{over:,} of {run.total:,} children finished, {run.started - over:,} running"


def _child_execution_line(row: TaskRow) -> str:
    """Return the ARN of the child execution that a task waits for."""
    if not row.job or row.service not in ("states", "aws-sdk:sfn"):
        return ""
    job = engine.loads(row.job)
    return str(job.get("ask", {}).get("ExecutionArn", "")) if isinstance(job, dict) else ""


class _NoTexts:
    """Placeholder for the long texts of a run, when only lines of control are read."""

    def many(self, keys: Sequence[str]) -> list[str]:
        """Return as many empty texts."""
        return [""] * len(keys)


def _timer_lines(execution: Execution, *, alone: bool) -> Iterator[WaitingLine]:
    """Yield timers, and lines stopped at breakpoints. ``alone``: no task is open."""
    stands = hasattr(execution, "halted")
    armed: dict[str, int] = dict(read_rows("timers", _read_timers, execution.pk))
    limit = armed.pop(_EXECUTION_TIMER, None)
    for name in [name for name in armed if transition_rate.is_token_timer(name)]:
        text = "Throttled by the project's limit of state transitions"
        yield WaitingLine("", "Execution", text, None, armed.pop(name), "continues")
    if armed or alone or stands:
        run = _read_run(execution)
        for frame in run.frames.values() if run is not None else ():
            if frame.timer in armed:
                yield _timer_line(frame, armed[frame.timer])
        if run is not None and run.plan is not None:
            yield from (_halted_line(run, halt) for halt in run.plan.halts)
    if limit is not None:
        yield WaitingLine("", "Execution", "Time limit", execution.start_ms, limit, "times out")


def _read_timers(execution: int) -> QuerySet[Timer, tuple[str, int]]:
    armed = Timer.objects.filter(execution_id=execution, due_ms__lt=pause.AWAY_MS)
    return armed.order_by("due_ms")[: MOST + 1].values_list("name", "due_ms")


def _halted_line(run: engine.Run, halt: engine.Halt) -> WaitingLine:
    text = f"{formatting.BREAK_TIMES[halt.when]}, until somebody continues it"
    return WaitingLine(
        run.frames[halt.frame].state, BREAKPOINT, text, halt.since_ms, event=halt.number
    )


def _read_run(execution: Execution) -> engine.Run | None:
    """Return the run of an execution without long texts; None for one of a later version.

    None, too, if it has succeeded meanwhile. It is read now: what came with the execution
    may be older than the timers, and than the last event, behind which a page asks for more.
    """
    ((snapshot,),) = read_rows("lines of control", _read_snapshot, execution.pk) or [("",)]
    if not snapshot:
        return None
    try:
        return engine.Run.loads(snapshot, _NoTexts())
    except engine.NewerFormat:
        return None


def _read_snapshot(execution: int) -> QuerySet[RunRow, tuple[str]]:
    return RunRow.objects.filter(execution_id=execution).values_list("snapshot")


def _timer_line(frame: Any, due_ms: int) -> WaitingLine:
    since = frame.entered_ms or None
    words = (frame.state, "Wait", "Timer", since, due_ms, "continues")
    if frame.phase == "backoff":
        text = f"Waiting for retry {frame.retry_count}"
        words = (frame.state, "Retry", text, None, due_ms, "tries again")
    if frame.phase == "delay":
        text = "An injected fault holds the call back"
        words = (frame.state, "Fault", text, since, due_ms, "continues")
    return WaitingLine(*words, event=frame.cursor)
