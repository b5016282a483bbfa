"""Step an execution: load its run and messages, advance it, and commit the result, fenced.

The commit checks the run's version: a step from an older version writes nothing and raises
``Fenced``. So any number of threads and processes may step the same execution: one of them commits,
and no work is done twice.
"""

from __future__ import annotations

import contextlib
import secrets
import time
from dataclasses import dataclass, field
from dataclasses import replace as replace_fields
from typing import TYPE_CHECKING, Any

from django.conf import settings
from msgspec.structs import replace
from structlog.contextvars import bound_contextvars

import engine
from console.config import quotas
from console.db import clock, epoch, rows, signals
from console.db.rows import Statement
from console.db.writer import Change, is_embedded, is_outage
from console.statuses import ExecutionStatus, MachineStatus, Topic
from console.store.events import outbox
from console.store.executions import step_rows
from console.store.executions.read_steps import LOAD, MESSAGES, StepRows, read_step_rows
from console.store.executions.step_rows import Fenced, StoredValues
from console.store.machines.activity_limits import limits_of
from console.store.machines.machines import compiled_machines
from console.store.state import claimed_runs, crash_watch, inbox, transition_rate
from console.store.state.caches import Belongs, ExecutionFacts, find_facts, keep_facts, kept_runs
from console.store.tasks import schedule

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from console.models import Execution
    from console.store.machines.activity_limits import Limits


_STEP_S = 0.1  # time limit, checked between states: others wait for the thread
_FRESH_S = 0.5  # how long a run continues in memory before its messages are read again
_IDLE = (
    "SELECT 1 FROM console_runrow r WHERE r.execution_id = %s AND (r.ready"
    " OR EXISTS (SELECT 1 FROM console_inboxmessage i WHERE i.execution_id = %s)"
    " OR EXISTS (SELECT 1 FROM console_timer t WHERE t.execution_id = %s AND t.due_ms <= %s))"
)
_GUARD = Statement(
    30,
    "UPDATE console_runrow SET version = version + 1, snapshot = %s, next_event = %s, ready = %s,"
    f" failures = 0 WHERE execution_id = %s AND version = %s AND {epoch.GUARD}",
    ("text", "integer", "boolean", "bigint", "integer", "text"),
    key=(3,),
    returning="execution_id",
    owns=True,
)
_GUARD_KEPT = replace_fields(
    _GUARD,
    text=f"{_GUARD.text} AND parked = '' AND NOT EXISTS"
    " (SELECT 1 FROM console_statemachine m"
    f" WHERE m.arn = %s AND m.status = '{MachineStatus.DELETING}')",
    types=(*_GUARD.types, "text"),
)
"""Condition for a cached run: not parked, and its machine not deleted meanwhile."""
_TAKEN = Statement(50, "DELETE FROM console_inboxmessage WHERE id = %s", ("bigint",))


@dataclass
class Loaded:
    """A run with its messages and due timers, read for a step.

    ``inbox``: ids of the messages' rows; ``timers``: names of due timers; ``came_ms``: index of a
    message -> the time of its arrival; ``tokens``: timers at which transition tokens become
    available; ``budget``: the remaining transition budget; ``deleting``: its state machine is being
    deleted; ``belongs``: the owners of the execution. ``closes``: the tasks whose outcomes are
    among the messages, if the messages are not stored yet; ``machine_arn``: the ARN of the state
    machine in this case. ``row``: the execution's row, if the step ends it and an event is
    published. ``limits``: the limits of the machine's existing activities. ``epoch``: the
    database's epoch when the rows were read, if this process has cached nothing newer. ``halts``:
    the lines of control that were halted before the step.
    """

    execution_id: int
    arn: str
    version: int
    run: engine.Run
    values: StoredValues
    machine: engine.Machine
    messages: list[engine.Message]
    inbox: list[int] = field(default_factory=list)
    timers: list[str] = field(default_factory=list)
    came_ms: dict[int, int] = field(default_factory=dict)
    tokens: list[str] = field(default_factory=list)
    budget: transition_rate.TransitionBudget | None = None
    deleting: bool = False
    belongs: Belongs | None = None
    closes: list[int] = field(default_factory=list)
    machine_arn: str = ""
    row: Execution | None = None
    read_at: float = field(default_factory=time.monotonic)
    limits: dict[str, Limits] | None = None
    epoch: str = ""
    halts: tuple[engine.Halt, ...] = ()

    def leave(self, count: int) -> None:
        """Leave the last ``count`` messages in place: rows first, then timers."""
        rest = max(count - len(self.inbox), 0)
        self.inbox = self.inbox[: max(len(self.inbox) - count, 0)]
        self.timers = self.timers[: len(self.timers) - rest]


# -- one step --------------------------------------------------------------------------------------


def step_execution(execution_id: int) -> bool:
    """Step an execution by one commit; return whether it can continue at once.

    Raises ``Fenced`` if another thread or process stepped it meanwhile.
    """
    change = begin_step(execution_id)
    return change if isinstance(change, bool) else change.result()


def begin_step(execution_id: int, stored: StepRows | None = None) -> StepChange | bool:
    """Compute a step and begin its commit.

    ``stored``: the rows of the execution, if they are read. Return a change with the result of
    ``step_execution``, or the result itself if there is nothing to commit. A caller with more to
    compute need not wait meanwhile.
    """
    loaded = load_step(execution_id, stored)
    if loaded is None:
        return False
    full = len(loaded.inbox) == MESSAGES
    with bound_contextvars(execution=loaded.arn):
        with _unless_overtaken(execution_id, loaded.version), crash_watch.watch(execution_id):
            steps = advance_run(loaded)
        try:
            return StepChange(loaded, steps, full=full)
        except transition_rate.NoTokens:
            return True


class StepChange(Change[bool]):
    """A step whose commit has begun; its result: whether the execution can continue at once."""

    def __init__(self, loaded: Loaded, steps: Sequence[engine.Step], *, full: bool = False) -> None:
        """Begin the commit. ``full``: there may be further messages."""
        self.is_committed = False
        self._loaded = loaded
        self._more = full or len(steps) < len(loaded.messages)
        ask_ahead(loaded)
        super().__init__(lambda: commit_step(loaded, steps), mergeable=True)
        self.begin()

    def result(self) -> bool:
        """Wait for the commit; return whether the execution can continue at once."""
        loaded = self._loaded
        try:
            super().result()
        except transition_rate.NoTokens:
            return True
        self.is_committed = True
        kept_runs.put(loaded.execution_id, loaded.version + 1, loaded.run)
        if loaded.budget is not None and (loaded.budget.timer or loaded.budget.pending):
            return self._more and not loaded.budget.allowed  # a Stop is still to come
        return bool(loaded.run.ready) or self._more

    def compute_next(self) -> Callable[[], StepChange] | None:
        """Compute the next step while this one is being committed.

        None if the rows have to be read for it: there are messages, or they were read long ago.
        Call the returned function only after this step is committed:

        1. A computes version 8 from 7, and 9 from that.  2. B commits another version 8.
        3. A's version 8 is fenced. Its version 9 would not be, because there is a version 8.
        """
        before = self._loaded
        goes_on = before.run.ready and not self._more and before.budget is None
        if not goes_on or before.deleting or time.monotonic() - before.read_at > _FRESH_S:
            return None
        values = StoredValues(before.execution_id, before.values.fresh)
        loaded = replace_fields(
            before,
            version=before.version + 1,
            run=before.run.reading(values),
            values=values,
            messages=[engine.Continue()],
            inbox=[],
            timers=[],
            tokens=[],
            came_ms={},
        )
        with bound_contextvars(execution=loaded.arn), crash_watch.watch(loaded.execution_id):
            steps = advance_run(loaded)
        return lambda: StepChange(loaded, steps)


def ask_ahead(loaded: Loaded) -> None:
    """Read and cache the facts that the commit needs.

    A change that queries the database is not merged with others.
    """
    epoch.process_epoch()
    clock.now_ms()
    if loaded.belongs is not None and loaded.run.status != engine.ExecutionStatus.RUNNING:
        loaded.row = outbox.row_for_end(loaded.execution_id, loaded.belongs.project)


def begin_outcomes(
    execution_id: int, outcomes: Sequence[engine.TaskSucceeded | engine.TaskFailed]
) -> Change[bool] | None:
    """Compute a step of unrecorded task outcomes, and begin to commit both together.

    So the outcome and the step that follows are one commit. Return a change like ``begin_step``;
    None if the outcomes must be recorded by themselves. It raises ``Fenced`` if nothing was
    written:

    1. A worker has the outcome of task 5, and computes the step from the version it committed last.
    2. Meanwhile the execution is stopped, another process has stepped it, or the task timed out.
    3. The commit asks for that version and for an open task 5; it finds one of them changed, and
       writes nothing. The outcome is recorded by itself then, if its task is still open.
    """
    loaded = None if quotas.limit_transitions() else _load_for(execution_id, outcomes)
    if loaded is None:
        return None
    with bound_contextvars(execution=loaded.arn):
        with _unless_overtaken(execution_id, loaded.version), crash_watch.watch(execution_id):
            steps = advance_run(loaded)
        if len(steps) < len(outcomes):
            return None
        ask_ahead(loaded)
        change = Change(
            lambda: commit_step(loaded, steps), lambda _: _remember_run(loaded), mergeable=True
        )
        change.begin()
    return change


def _remember_run(loaded: Loaded) -> bool:
    """Cache the run of a committed step; return whether it can continue at once."""
    kept_runs.put(loaded.execution_id, loaded.version + 1, loaded.run)
    return bool(loaded.run.ready)


def _load_for(
    execution_id: int, outcomes: Sequence[engine.TaskSucceeded | engine.TaskFailed]
) -> Loaded | None:
    """Return a run from the cache or the database, with outcomes as its messages."""
    values = StoredValues(execution_id)
    cached, facts = kept_runs.latest(execution_id), find_facts(execution_id)
    if cached is not None and facts is not None:
        version, run = cached[0], cached[1].reading(values)
    else:
        row = claimed_runs.take(execution_id)
        if row is None:
            with rows.open_cursor() as cursor:
                cursor.execute(LOAD, [execution_id])
                row = cursor.fetchone()
        if row is None or row[4] != ExecutionStatus.RUNNING or row[3]:
            return None
        version, facts = row[0], _keep_facts(execution_id, row)
        with _unless_overtaken(execution_id, version):
            run = _loads(execution_id, row[1], values)
    messages: list[engine.Message] = [inbox.storable_message(message) for message in outcomes]
    loaded = Loaded(
        *(execution_id, facts.arn, version, run, values),
        *(compiled_machines.get(facts.definition), messages),
        belongs=facts.belongs,
    )
    loaded.closes = [message.task for message in outcomes]
    loaded.machine_arn = facts.machine_arn
    return loaded


def _keep_facts(execution_id: int, row: Sequence[Any]) -> ExecutionFacts:
    """Cache and return the immutable facts in a row of ``LOAD``."""
    belongs = Belongs(row[8], *row[10:13])
    facts = ExecutionFacts(row[5], row[6], row[9].partition("/")[0], belongs)
    return keep_facts(execution_id, facts)


def _loads(execution_id: int, snapshot: str, values: StoredValues) -> engine.Run:
    with crash_watch.watch(execution_id):
        return engine.Run.loads(snapshot, values)


def load_step(
    execution_id: int,
    stored: StepRows | None = None,
    outcome: engine.TaskSucceeded | engine.TaskFailed | None = None,
) -> Loaded | None:
    """Load a run with its messages and due timers; None if there is nothing to do.

    ``outcome``: a task's outcome that is not stored yet.
    """
    stored = read_step_rows([execution_id])[execution_id] if stored is None else stored
    row, inbox_rows, names = stored.run, stored.messages, stored.timers
    if row is None:
        return None
    version, snapshot, ready, _, _, arn, definition, machine_status, *_ = row
    facts = _keep_facts(execution_id, row)
    tokens = [name for name in names if transition_rate.is_token_timer(name)]
    due = [name for name in names if not transition_rate.is_token_timer(name)]
    ready = ready or bool(tokens)
    if not (ready or due or inbox_rows or outcome):
        return None
    budget = transition_rate.budget_of(execution_id, arn, tokens)
    if budget is not None and not budget.allowed:
        inbox_rows, due = transition_rate.take_exempt(budget, inbox_rows, due)
        if budget.pending and not (inbox_rows or due):
            return None
        ready = False
    messages: list[engine.Message] = [engine.TimerFired(name) for name in due]
    messages += inbox.load_messages([(kind, body) for _, kind, body, _ in inbox_rows])
    if ready and not messages:
        # Only without other messages, which also continue the run. Before a Stop of a tight loop,
        # this message would spend the budget of each step.
        messages = [engine.Continue()]
    values = StoredValues(execution_id)
    with _unless_overtaken(execution_id, version):
        run = kept_runs.get(execution_id, version, values) or _loads(execution_id, snapshot, values)
    loaded = Loaded(
        *(execution_id, arn, version, run, values, compiled_machines.get(definition), messages),
        [number for number, *_ in inbox_rows],
        due,
        dict(enumerate((came_ms for *_, came_ms in inbox_rows), len(messages) - len(inbox_rows))),
        tokens,
        budget,
        machine_status == MachineStatus.DELETING,
        facts.belongs,
    )
    if outcome is not None:
        messages.append(inbox.storable_message(outcome))
        loaded.closes, loaded.machine_arn = [outcome.task], facts.machine_arn
    return loaded


@contextlib.contextmanager
def _unless_overtaken(execution_id: int, version: int) -> Iterator[None]:
    """Raise ``Fenced`` instead of an error if another step was committed meanwhile.

    What is read along the way - values, messages - may have gone with that step.
    """
    try:
        yield
    except Exception as error:
        if is_outage(error) or _version(execution_id) == version:
            raise
        raise Fenced from error


def _version(execution_id: int) -> int | None:
    row = rows.fetch_row(
        "SELECT version FROM console_runrow WHERE execution_id = %s", [execution_id]
    )
    return None if row is None else int(row[0])


def is_idle(execution_id: int) -> bool:
    """Return whether an execution has nothing to do, without loading its run."""
    return rows.fetch_row(_IDLE, [*[execution_id] * 3, clock.now_ms()]) is None


def arn_of(execution_id: int) -> str:
    """Return the ARN of an execution, "" if it does not exist."""
    row = rows.fetch_row("SELECT arn FROM console_execution WHERE id = %s", [execution_id])
    return "" if row is None else str(row[0])


def load_running(execution_id: int) -> tuple[engine.Machine, engine.Run] | None:
    """Return machine and run of a running execution, to read only; None if it has ended."""
    row = rows.fetch_row(LOAD, [execution_id])
    if row is None or row[4] != ExecutionStatus.RUNNING:
        return None
    return compiled_machines.get(row[6]), engine.Run.loads(row[1], StoredValues(execution_id))


def most_states() -> int:
    """Return the maximum number of states that the steps of one commit enter.

    PostgreSQL writes the rows of twice as many states, by COPY, in the same time as SQLite.
    """
    return engine.BUDGET if is_embedded() else 2 * engine.BUDGET


def advance_run(loaded: Loaded, seconds: float = _STEP_S) -> list[engine.Step]:
    """Process the messages for one commit; the others wait for the next one."""
    until = time.monotonic() + seconds
    steps: list[engine.Step] = []
    loaded.halts = step_rows.halts_of(loaded.run)
    budget = most_states()
    if loaded.budget is not None:
        budget = min(budget, loaded.budget.allowed)

    def enough() -> bool:
        return time.monotonic() > until

    if loaded.machine.activities:
        loaded.limits = limits_of(loaded.arn, loaded.machine.activities)
    exempt_only = loaded.budget is not None and not loaded.budget.allowed  # all that needs no token
    for index, message in enumerate(loaded.messages):
        now = replace(
            current_moment(loaded.machine, loaded.arn, activities=loaded.limits),
            deleting=loaded.deleting,
        )
        if isinstance(message, engine.TaskStarted):  # has the time at which a worker took it
            now = replace(now, now_ms=loaded.came_ms.get(index, now.now_ms))
        steps.append(_advance(loaded, message, now, budget, enough))
        budget = steps[-1].budget_left
        if (budget <= 0 and not exempt_only) or enough():
            break
    loaded.leave(len(loaded.messages) - len(steps))
    return steps


def _advance(
    loaded: Loaded,
    message: engine.Message,
    now: engine.Moment,
    budget: int,
    enough: Callable[[], bool],
) -> engine.Step:
    step = engine.advance(loaded.machine, loaded.run, message, now, budget=budget, enough=enough)
    if loaded.budget is not None:
        loaded.budget.used += transition_rate.count_entered(step) + transition_rate.count_retried(
            loaded.run, message
        )
    loaded.run = step.run
    loaded.values.apply(step)
    return step


def current_moment(
    machine: engine.Machine,
    execution_arn: str,
    now_ms: int | None = None,
    activities: Mapping[str, Limits] | None = None,
) -> engine.Moment:
    """Return the engine's view of the outside world.

    ``now_ms``: instead of the clock; ``activities``: those of the machine that exist for the
    execution, which are read if they are not given.
    """
    if activities is None:
        activities = limits_of(execution_arn, machine.activities)
    missing = frozenset(machine.activities).difference(activities)
    now_ms = clock.now_ms() if now_ms is None else now_ms
    key = settings.STATEYARD_TOKEN_KEY
    problem = engine.current_platform().parameter_problem
    return engine.Moment(now_ms, secrets.randbits(63), key, missing, problem)


# -- the commit ------------------------------------------------------------------------------------


def commit_step(loaded: Loaded, steps: Sequence[engine.Step]) -> None:
    """Write the run after the steps (inside a transaction).

    Raise ``Fenced`` if another thread or process committed a step since the run was loaded.
    """
    number, run = loaded.execution_id, loaded.run
    ready, version = bool(run.ready), loaded.version
    now_ms = clock.now_ms()
    step_rows.drop_timers(number, [*loaded.timers, *loaded.tokens])
    if loaded.budget is not None:
        unfinished = len(run.ready) + len(loaded.messages) - len(steps)
        ready = (
            transition_rate.reserve_tokens(
                loaded.budget, unfinished, running=run.status == engine.ExecutionStatus.RUNNING
            )
            and ready
        )
        if loaded.budget.timer is not None:
            step_rows.set_timers(number, [loaded.budget.timer])
    snapshot = step_rows.snapshot_text(run)
    read_epoch = loaded.epoch or epoch.process_epoch()
    guard = (snapshot, run.next_event, ready, number, version, read_epoch)
    guarded = (
        rows.change(_GUARD_KEPT, [(*guard, loaded.machine_arn)])
        if loaded.closes
        else rows.change(_GUARD, [guard])
    )
    if guarded != 1:
        raise Fenced
    # after the run's row, as the end of an execution takes them, or two could wait for each other
    if not all(schedule.close_task(number, task, now_ms) for task in loaded.closes):
        raise Fenced
    rows.change(_TAKEN, [(message_id,) for message_id in loaded.inbox])
    step_rows.append_events(number, [event for step in steps for event in step.events])
    step_rows.save_values(loaded.values)
    issued = [command for step in steps for command in step.commands]
    step_rows.apply_commands(number, loaded.arn, issued, loaded.belongs, loaded.row, loaded.limits)
    if step_rows.halts_of(run) != loaded.halts:
        step_rows.record_halts(number, run)
    if ready:
        signals.publish_runnable(number)
    signals.publish((Topic.EXECUTION, number))


__all__ = ["Fenced", "Loaded", "commit_step", "load_step", "step_execution"]
