"""A world of one thread and one clock, in which workers live, die and come too late.

Everything that moves executions is here as one call each, on the real store: commits go to a real
database, but whoever asks decides when time passes and at which commit a process dies.
"""

from __future__ import annotations

import itertools
from collections import Counter
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest
from django.db import connection
from django.db.models import Q

import engine
from console.db import audit, clock, writer
from console.errors import ConflictException, ErrorCode, ServiceError
from console.features.next_starts import store
from console.models import (
    DebugEdit,
    Execution,
    HistoryEvent,
    InboxMessage,
    MapRun,
    Pause,
    RunRow,
    StateMachine,
    TaskRow,
    Timer,
)
from console.store.executions import (
    breakpoints,
    engine_failures,
    faults,
    next_starts,
    redrive,
    step,
)
from console.store.executions import start as start_module
from console.store.executions.start import start_execution
from console.store.machines.versions import Target
from console.store.map_runs import map_runs, map_tasks
from console.store.state import caches, inbox, pause
from console.store.tasks import claim, complete, expiry, jobs, schedule
from console.worker import own_calls, task_delivery
from tests.console.store.helpers import create
from tests.simulation.shapes import BREAKPOINTS, FAULTS, INPUT, SHAPES

if TYPE_CHECKING:
    from collections.abc import Callable

    from console.models import Project

START_MS = 1_700_000_000_000
_TABLES = (
    "mapitem",
    "inboxmessage",
    "timer",
    "taskrow",
    "runvalue",
    "historyevent",
    "debugedit",
    "haltedexecution",
    "pause",
    "runrow",
)
_GONE = (ErrorCode.TaskTimedOut, ErrorCode.TaskDoesNotExist)


class Death(BaseException):
    """The process is gone."""


@dataclass
class World:
    """One database, one clock, and what is in somebody's hands."""

    machines: dict[str, StateMachine]
    now_ms: int = START_MS
    doom: tuple[int, str] | None = None
    held: list[claim.ClaimedTask] = field(default_factory=list)
    loaded: list[tuple[step.Loaded, list[engine.Step]]] = field(default_factory=list)
    log: list[dict[str, Any]] = field(default_factory=list)
    fenced: int = 0
    debugged: set[str] = field(default_factory=set)
    released: int = 0
    strikes: int = 0
    pauses: dict[int, tuple[int, int]] = field(default_factory=dict)
    places: dict[str, int] = field(default_factory=dict)
    taken: int = 0
    _names: Any = field(default_factory=itertools.count)

    # -- life and death ----------------------------------------------------------------------------

    def write(self, fn: Callable[[], Any]) -> Any:
        """Commit, unless the process dies first; it may die just after."""
        if self.doom is None:
            return writer._write_here(fn)
        commits, moment = self.doom
        self.doom = (commits - 1, moment)
        if commits > 0:
            return writer._write_here(fn)
        self.doom = None
        if moment == "after":
            writer._write_here(fn)
        raise Death

    def put(self, fn: Callable[[], Any]) -> Callable[[], Any]:
        """Commit as the writer's thread would, but here and now."""
        result = self.write(fn)
        return lambda: result

    def restart(self) -> None:
        """Begin as a new process does: from the rows alone."""
        self.doom = None
        forget()
        claim.release_all_calls()
        inbox.drop_stale()

    # -- what clients do ---------------------------------------------------------------------------

    def start(self, shape: str, *, ahead: bool, mode: str = "plain") -> Execution:
        """Start an execution, and once more as a client that had no answer would.

        A second start with breakpoints is refused: the first may stop at others by now. ``mode``:
        ``plain``, ``breakpoints`` or ``faults``. A plain one takes a place if there is one.
        """
        name = f"e{next(self._names)}"
        machine = self.machine(shape)
        again = partial(start_execution, machine, name=name, input=INPUT, ahead=ahead)
        if mode == "breakpoints" and shape in BREAKPOINTS:
            self.debugged.add(name)
            again = partial(again, breakpoints=BREAKPOINTS[shape])
        elif mode == "faults" and shape in FAULTS:
            target = Target(machine)
            document = {"seed": len(self.log), "faults": FAULTS[shape]}
            again = partial(again, faults=faults.read_plan(target, document, "ana"))
        first = again()
        if name in self.debugged:
            with pytest.raises(ServiceError, match="Execution Already Exists"):
                again()
        elif Execution.objects.filter(pk=first.pk, status="RUNNING").exists():
            assert again().pk == first.pk
        if Execution.objects.filter(pk=first.pk, next_starts__isnull=False).exists():
            self.debugged.add(name)
        self.log.append({"start": first.arn})
        return first

    def machine(self, shape: str) -> StateMachine:
        """Return a machine as its row is."""
        rows = StateMachine.objects.select_related("project")
        return rows.get(pk=self.machines[shape].pk)

    def set_next_starts(self, shape: str, starts: int) -> None:
        """Set what a shape has of breakpoints and faults for its next starts, if nothing is set."""
        machine = self.machine(shape)
        person = audit.Actor(f"ana{next(self._names)}")
        document = {"faults": FAULTS[shape]} if shape in FAULTS else None
        self.places[person.name] = starts  # it may be set by a process that dies just after
        try:
            store.set_next_starts(
                machine,
                starts=starts,
                hours=store.MOST_HOURS,
                places=BREAKPOINTS.get(shape, ()),
                faults=faults.read_plan(Target(machine), document, "ana") if document else None,
                seeded=False,
                actor=person,
            )
        except ConflictException:
            assert machine.next_starts, "nothing was set, and was in the way"
            del self.places[person.name]

    def wrong_places(self) -> list[str]:
        """Return the places of next starts that are lost, or taken by more than one start."""
        rows = Execution.objects.filter(next_starts__isnull=False)
        numbers: dict[str, list[int]] = {}
        for execution in rows:
            place = next_starts.place_of(execution)
            assert place is not None
            numbers.setdefault(place.set_by, []).append(place.number)
        current = {
            text.set_by: text.taken
            for machine in StateMachine.objects.filter(next_starts__isnull=False)
            if (text := next_starts.next_starts_of(machine, self.now_ms)) is not None
        }
        self.taken = sum(map(len, numbers.values()))
        problems = []
        for person, starts in self.places.items():
            taken = sorted(numbers.pop(person, []))
            expected = current.get(person, starts if taken else 0)
            if taken != [*range(1, expected + 1)]:
                problems.append(f"{taken} of {starts} places taken, wanted 1 to {expected}")
        return [*problems, *(f"nobody has set a place by {person}" for person in numbers)]

    def answer(self, work: claim.ClaimedTask, way: str) -> None:
        """End a task as whoever took it does."""
        if work.service in schedule.NESTED:
            self.call(work)
            return
        ok = way == "success"
        output = '{"of":' + work.input + "}"
        result = (work.task, output) if ok else (work.task, "Broken", "c")
        message = (engine.TaskSucceeded if ok else engine.TaskFailed)(*result)
        if work.kind != "activity" and work.pattern != ".waitForTaskToken":
            recorded = complete.complete_call(work.execution_id, message)
        else:
            recorded = self._send(work, output, ok=ok)
        if recorded:
            told = {"output": output} if ok else {"error": "Broken", "cause": "c"}
            self.log.append({"send": way, "token": work.token, **told})

    def call(self, work: claim.ClaimedTask) -> None:
        """Make the call of a task that starts an execution, as the worker that has it does."""
        before = set(Execution.objects.values_list("pk", flat=True))
        called = own_calls.begin_call(work, task_delivery._task(work))
        children = Execution.objects.exclude(pk__in=before)
        assert len(children) == (called is not None), "a start without a child, or the reverse"

    def look(self, number: int) -> None:
        """Look at one of the executions that others wait for."""
        waiting = list(_waited_for().order_by("pk").values_list("execution_id", "task"))
        if waiting:
            task_delivery.look_at_job(*waiting[number % len(waiting)])

    def _send(self, work: claim.ClaimedTask, output: str, *, ok: bool) -> bool:
        try:
            if ok:
                complete.succeed(work.token, output)
            else:
                complete.fail(work.token, "Broken", "c")
        except ServiceError as error:
            if error.code not in _GONE:
                raise
            assert self.closed(work), "an open task was refused its outcome"
            return False
        return True

    def heartbeat(self, work: claim.ClaimedTask) -> None:
        """Say that the work goes on."""
        try:
            complete.heartbeat(work.token)
        except ServiceError as error:
            if error.code not in _GONE:
                raise
            assert self.closed(work)

    def closed(self, work: claim.ClaimedTask) -> bool:
        """Return whether a task has ended."""
        rows = TaskRow.objects.filter(execution_id=work.execution_id, task=work.task)
        return rows.get().status == "closed"

    def debug(self, execution: Execution, way: str, number: int = 0) -> bool:
        """Let a line of control that stands at a breakpoint go on; tell whether there is one."""
        shown = breakpoints.debugged(execution)
        lines = shown.lines if shown is not None else ()
        if not lines:
            return False
        line = lines[number % len(lines)]
        halt = line.number
        message: engine.ReleaseMessage = engine.Release(halt, "ana", step=way == "step")
        if way == "edit" and line.halt.when is engine.BreakTime.BEFORE:
            message = engine.Release(halt, "ana", input='{"edited":[1]}', variables='{"v":1}')
        elif way == "edit" and line.halt.when is engine.BreakTime.AFTER:
            message = engine.Release(halt, "ana", output='"edited"')
        elif way == "into" and line.is_enterable:
            message = engine.Release(halt, "ana", into=True)
        elif way == "run to" and (ahead := line.states_ahead):
            message = engine.Release(halt, "ana", run_to=ahead[number % len(ahead)])
        elif way == "answer" and line.is_answerable:
            message = engine.AnswerTask(halt, "ana", '"answered"')
        elif way == "skip" and line.is_skippable:
            message = engine.Skip(halt, '"skipped"', "ana")
        elif way == "fail":
            message = engine.FailState(halt, "Broken", "by hand", "ana")
        ana = audit.Actor("ana")
        breakpoints.release_line(execution, halt, lambda _: message, way, ana)
        self.released += 1
        return True

    def set_breakpoints(self, execution: Execution, place: int) -> None:
        """Put a breakpoint in place of those of an execution; place 0 takes them all away."""
        states = step.load_running(execution.pk)
        if states is None:
            return
        self.debugged.add(execution.name)
        names = sorted(name for name, _ in engine.own_states(states[0]))
        places = [engine.Breakpoint(names[place % len(names)])] if place else []
        breakpoints.change_breakpoints(execution, lambda _: places, audit.Actor("ana"))

    def pause(self, execution: Execution, *, stops_clock: bool) -> None:
        """Pause an execution; one that has ended, or is paused, is refused."""
        current = Execution.objects.get(pk=execution.pk)
        refused = pause.pause_refusal(current) or pause.find_pause(execution.pk)
        try:
            pause.pause_execution(current, audit.Actor("ana"), stops_clock=stops_clock)
        except ConflictException:
            assert refused
        else:
            assert not refused

    def resume(self, number: int) -> bool:
        """Resume one of the paused executions; tell whether there is one."""
        paused = list(Pause.objects.order_by("pk").select_related("execution"))
        if paused:
            pause.resume_execution(paused[number % len(paused)].execution, audit.Actor("ana"))
        return bool(paused)

    def doubled_strikes(self) -> list[str]:
        """Return the faults that struck an attempt of a state more than once."""
        rows = DebugEdit.objects.filter(what=faults.FAULT)
        strikes = Counter(rows.values_list("execution__name", "state", "after"))
        self.strikes = sum(strikes.values())
        return [f"{strike} struck {n} times" for strike, n in strikes.items() if n > 1]

    def broken_pauses(self) -> list[str]:
        """Return the pauses in which an execution has taken a step."""
        rows = {row.pk: row for row in Pause.objects.select_related("execution")}
        steps = {
            number: (
                row.execution_id,
                HistoryEvent.objects.filter(execution=row.execution_id).count(),
            )
            for number, row in rows.items()
        }
        moved = [
            f"{rows[number].execution.name} has taken a step while it is paused"
            for number, before in self.pauses.items()
            if steps.get(number, before) != before
        ]
        self.pauses = steps
        return moved

    def redrive(self, execution: Execution) -> None:
        """Redrive what can be; the rest is refused."""
        execution = Execution.objects.get(pk=execution.pk)
        possible = execution.map_run_id is None and not redrive.redrive_refusal(execution)
        try:
            redrive.redrive_execution(execution)
        except ServiceError as error:
            if error.code != ErrorCode.ExecutionNotRedrivable:
                raise
            assert not possible
        else:
            assert possible

    # -- what workers do ---------------------------------------------------------------------------

    def claim(self, number: int) -> None:
        """Take one of the tasks that nobody has."""
        waiting = TaskRow.objects.filter(status="scheduled").exclude(kind="map")
        rows = list(waiting.order_by("pk").values_list("execution_id", "task", "kind", "resource"))
        if not rows:
            return
        execution, task, kind, resource = rows[number % len(rows)]
        if kind == "activity":
            work = claim.take_activity_task(resource, "somebody")
        else:
            work = claim.claim_call(execution, task)
        assert work is not None
        self.held.append(work)
        if work.pattern == ".waitForTaskToken":
            assert jobs.submit_job(work.execution_id, work.task, '{"sent":1}', "", 0)

    def load(self, execution: Execution) -> None:
        """Take an execution as far as a commit would, and do not commit."""
        loaded = step.load_step(execution.pk)
        if loaded is not None:
            self.loaded.append((loaded, step.advance_run(loaded)))

    def commit_late(self, number: int) -> int:
        """Commit what was loaded a while ago: in vain if there was a step since."""
        loaded, result = self.loaded.pop(number % len(self.loaded))
        rows = RunRow.objects.filter(pk=loaded.execution_id, version=loaded.version)
        fresh = rows.exists()
        try:
            writer.write(lambda: step.commit_step(loaded, result))
        except step.Fenced:
            assert not fresh, "a worker was fenced off that nobody had overtaken"
            self.fenced += 1
        else:
            assert fresh, "a worker has written that somebody had overtaken"
        return loaded.execution_id

    def map_work(self) -> None:
        """Take the Map Runs a bit further."""
        for task in map_tasks.scheduled_maps():
            map_runs.begin_map_run(*task)
        for number in map_runs.running_map_runs():
            map_runs.advance_map_run(number)

    def expire(self) -> None:
        """Time out what is late."""
        late = Q(timeout_due_ms__lte=self.now_ms) | Q(heartbeat_due_ms__lte=self.now_ms)
        rows = TaskRow.objects.filter(late).exclude(status="closed")
        expiry.expire_tasks(rows.values_list("execution_id", "task"))

    def trouble(self, execution: Execution) -> None:
        """Let a step raise; at the third time in a row the execution is ended."""
        if Execution.objects.filter(pk=execution.pk, status="RUNNING").exists():
            engine_failures.record_failure(execution.pk, RuntimeError("trouble"))

    # -- to the end --------------------------------------------------------------------------------

    def finish(self) -> None:
        """Let good workers do all there is to do."""
        self.restart()
        while self.resume(0):
            pass
        for _ in range(300):
            self._round()
            if not self.stuck():
                return
            self.now_ms = max(self.now_ms + 1, self._next_due())
            self.expire()

    def stuck(self) -> list[str]:
        """Return what has not come to its end."""
        return [
            *Execution.objects.filter(status="RUNNING").values_list("arn", flat=True),
            *MapRun.objects.filter(status="RUNNING").values_list("arn", flat=True),
        ]

    def _round(self) -> None:
        self.map_work()
        for number in Execution.objects.filter(status="RUNNING").values_list("pk", flat=True):
            while step.step_execution(number):
                pass
            self.debug(Execution.objects.get(pk=number), "continue")
        while TaskRow.objects.filter(status="scheduled").exclude(kind="map").exists():
            self.claim(0)
        rows = TaskRow.objects.exclude(status="closed").exclude(kind="map")
        for execution, task in _waited_for().values_list("execution_id", "task"):
            task_delivery.look_at_job(execution, task)
        others = rows.exclude(service__in=schedule.NESTED, status="waiting")
        for execution, task in others.values_list("execution_id", "task"):
            self.answer(claim.get_work(execution, task), "success")

    def _next_due(self) -> int:
        """Return when something is due next, if nothing is to be done now."""
        if InboxMessage.objects.exists() or RunRow.objects.filter(ready=True).exists():
            return 0
        due = Timer.objects.order_by("due_ms").values_list("due_ms", flat=True).first()
        return 0 if due is None else due


def _waited_for() -> Any:
    """Return the tasks that wait for executions."""
    return TaskRow.objects.filter(service__in=schedule.NESTED, status="waiting")


# -- the one world ---------------------------------------------------------------------------------


def prepare(project: Project, patch: pytest.MonkeyPatch) -> dict[str, StateMachine]:
    """Make the machines, and let a step be short, for the sake of many steps."""
    patch.setattr(engine, "BUDGET", 3)
    patch.setattr(step, "_STEP_S", 1e9)
    patch.setattr(start_module, "_AHEAD_S", 1e9)
    patch.setattr(start_module, "_AHEAD_ON_THREAD_S", 1e9)
    return {name: create(project, text, name) for name, text in SHAPES.items()}


def begin(machines: dict[str, StateMachine]) -> World:
    """Return an empty world that has the machines, the clock and the writer to itself."""
    world = World(machines)
    clock.now_ms = lambda: world.now_ms
    writer._writer.put = world.put  # type: ignore[method-assign]
    writer.write(_clear)
    forget()
    return world


def forget() -> None:
    """Empty the caches of a process."""
    caches.kept_runs.__init__(10, 1_000_000)


def _clear() -> None:
    with connection.cursor() as cursor:
        for table in _TABLES:
            cursor.execute(f"DELETE FROM console_{table}")
        cursor.execute("UPDATE console_execution SET map_run_id = NULL")
        cursor.execute("DELETE FROM console_maprun")
        cursor.execute("DELETE FROM console_execution")
        cursor.execute("UPDATE console_statemachine SET next_starts = NULL")
