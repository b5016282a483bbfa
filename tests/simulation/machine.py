"""The rules by which Hypothesis tries what may happen, and what must hold after each of them."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, ClassVar

import hypothesis.strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from console.features.doctor.clients import Log
from console.features.doctor.invariants import of_execution
from console.features.doctor.stored_executions import batches
from console.models import Execution
from console.store.executions import step
from console.store.executions.stop import stop_execution
from tests.simulation import world
from tests.simulation.replay import difference
from tests.simulation.shapes import BREAKPOINTS, FAULTS, SHAPES

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from console.features.doctor.stored_executions import HistoryLine
    from console.models import StateMachine

WHICH = st.integers(0, 5)
_LONG_MS = 20_000  # the checker gives sweepers so long
WAYS = ("continue", "step", "into", "run to", "edit", "answer", "skip", "fail")
MODES = ("plain", "breakpoints", "faults")
MOST = 4  # executions at a time, without children


class Simulation(RuleBasedStateMachine):
    """A few executions, and everything that may happen to them in any order."""

    machines: ClassVar[dict[str, StateMachine]]
    examples: ClassVar[int] = 0
    fenced: ClassVar[int] = 0
    released: ClassVar[int] = 0
    paused: ClassVar[int] = 0
    resumed: ClassVar[int] = 0
    struck: ClassVar[int] = 0
    placed: ClassVar[int] = 0

    def __init__(self) -> None:
        """Begin with nothing."""
        super().__init__()
        Simulation.examples += 1
        self.world = world.begin(self.machines)
        self.started: list[Execution] = []
        self.touched: set[int] = set()
        self.histories: dict[int, list[HistoryLine]] = {}
        self.swept_ms = self.world.now_ms

    def act(self, action: Callable[[], Any]) -> Any:
        """Let something happen; if its process dies of it, another one takes over."""
        try:
            return action()
        except world.Death:
            self.world.restart()
            self.touched.update(Execution.objects.values_list("pk", flat=True))
            return None

    def pick(self, number: int) -> Execution:
        """Return one of the executions, children among them; it is looked at afterwards."""
        children = Execution.objects.filter(map_run__isnull=False).order_by("pk")
        every = [*self.started, *children]
        execution = every[number % len(every)]
        self.touched.add(execution.pk)
        return execution

    # -- clients -----------------------------------------------------------------------------------

    @precondition(lambda self: len(self.started) < MOST)
    @rule(shape=st.sampled_from(sorted(SHAPES)), ahead=st.booleans(), mode=st.sampled_from(MODES))
    def start(self, shape: str, *, ahead: bool, mode: str) -> None:
        """StartExecution, perhaps with breakpoints or faults."""
        execution = self.act(lambda: self.world.start(shape, ahead=ahead, mode=mode))
        self.started = list(Execution.objects.filter(map_run=None).order_by("pk"))
        if execution is not None:
            self.touched.add(execution.pk)

    @precondition(lambda self: len(self.started) < MOST)
    @rule(shape=st.sampled_from(sorted({*BREAKPOINTS, *FAULTS})), starts=st.integers(1, 3))
    def set_next_starts(self, shape: str, starts: int) -> None:
        """Somebody sets breakpoints and faults for the next starts of a machine."""
        self.act(lambda: self.world.set_next_starts(shape, starts))

    @precondition(lambda self: self.started)
    @rule(which=WHICH)
    def stop(self, which: int) -> None:
        """StopExecution; its answer is what DescribeExecution tells."""
        execution = self.pick(which)
        date = self.act(lambda: stop_execution(execution, error="E", cause="c"))
        if date is not None:
            assert Execution.objects.get(pk=execution.pk).stop_ms == date

    @precondition(lambda self: self.world.held)
    @rule(which=WHICH, way=st.sampled_from(["success", "success", "failure"]), keep=st.booleans())
    def send(self, which: int, way: str, *, keep: bool) -> None:
        """SendTaskSuccess or SendTaskFailure, or the end of a call; perhaps once more later."""
        number = which % len(self.world.held)
        work = self.world.held[number] if keep else self.world.held.pop(number)
        self.touched.add(work.execution_id)
        self.act(lambda: self.world.answer(work, way))
        self.started = list(Execution.objects.filter(map_run=None).order_by("pk"))  # a child, too

    @precondition(lambda self: self.world.held)
    @rule(which=WHICH)
    def heartbeat(self, which: int) -> None:
        """SendTaskHeartbeat."""
        work = self.world.held[which % len(self.world.held)]
        self.touched.add(work.execution_id)
        self.act(lambda: self.world.heartbeat(work))

    @precondition(lambda self: self.world.debugged)
    @rule(which=WHICH, way=st.sampled_from(WAYS), line=WHICH)
    def debug(self, which: int, way: str, line: int) -> None:
        """Somebody lets a line of control go on from a breakpoint."""
        debugged = [each for each in self.started if each.name in self.world.debugged]
        if debugged:
            execution = debugged[which % len(debugged)]
            self.touched.add(execution.pk)
            before = self.world.released
            self.act(lambda: self.world.debug(execution, way, line))
            Simulation.released += self.world.released - before

    @precondition(lambda self: self.started)
    @rule(which=WHICH, place=WHICH)
    def set_breakpoints(self, which: int, place: int) -> None:
        """Somebody puts breakpoints in place of those of an execution that runs."""
        execution = self.started[which % len(self.started)]
        self.touched.add(execution.pk)
        self.act(lambda: self.world.set_breakpoints(execution, place))

    @precondition(lambda self: self.started)
    @rule(which=WHICH, stops_clock=st.booleans())
    def pause(self, which: int, *, stops_clock: bool) -> None:
        """Somebody pauses an execution."""
        execution = self.pick(which)
        self.act(lambda: self.world.pause(execution, stops_clock=stops_clock))

    @precondition(lambda self: self.world.pauses)
    @rule(which=WHICH)
    def resume(self, which: int) -> None:
        """Somebody resumes one."""
        if self.act(lambda: self.world.resume(which)):
            Simulation.resumed += 1
        self.touched.update(Execution.objects.values_list("pk", flat=True))

    @precondition(lambda self: self.started)
    @rule(which=WHICH)
    def redrive(self, which: int) -> None:
        """RedriveExecution."""
        execution = self.pick(which)
        self.act(lambda: self.world.redrive(execution))

    # -- workers -----------------------------------------------------------------------------------

    @precondition(lambda self: self.started)
    @rule(which=WHICH, most=st.integers(1, 5))
    def step(self, which: int, most: int) -> None:
        """A worker takes an execution some steps further."""
        number = self.pick(which).pk
        for _ in range(most):
            if not self.act(lambda: step.step_execution(number)):
                return

    @precondition(lambda self: self.started)
    @rule(which=WHICH)
    def claim(self, which: int) -> None:
        """Somebody takes a task."""
        before = len(self.world.held)
        self.act(lambda: self.world.claim(which))
        self.touched.update(work.execution_id for work in self.world.held[before:])

    @precondition(lambda self: self.started)
    @rule(which=WHICH)
    def look(self, which: int) -> None:
        """A worker looks at what a task waits for."""
        self.act(lambda: self.world.look(which))
        self.touched.update(Execution.objects.values_list("pk", flat=True))

    @precondition(lambda self: self.started and len(self.world.loaded) < MOST)
    @rule(which=WHICH)
    def load(self, which: int) -> None:
        """A worker is slow: it has made a step and not committed it."""
        execution = self.pick(which)
        self.act(lambda: self.world.load(execution))

    @precondition(lambda self: self.world.loaded)
    @rule(which=WHICH)
    def zombie(self, which: int) -> None:
        """The slow worker commits at last."""
        before = self.world.fenced
        self.touched.update(loaded.execution_id for loaded, _ in self.world.loaded)
        self.act(lambda: self.world.commit_late(which))
        Simulation.fenced += self.world.fenced - before

    @precondition(lambda self: self.started)
    @rule()
    def map_work(self) -> None:
        """The Map Runs go on."""
        self.act(self.world.map_work)
        self.touched.update(Execution.objects.values_list("pk", flat=True))

    @precondition(lambda self: self.started)
    @rule(which=WHICH)
    def trouble(self, which: int) -> None:
        """A step raises."""
        execution = self.pick(which)
        self.act(lambda: self.world.trouble(execution))

    # -- time and death ----------------------------------------------------------------------------

    @precondition(lambda self: self.started)
    @rule(ms=st.sampled_from([1, 1_000, 3_000, 10_000, 60_000]), late=st.booleans())
    def tick(self, ms: int, *, late: bool) -> None:
        """Time goes by, and somebody looks for what is late.

        Before it has been long, somebody sweeps, even if the first who does so dies of it.
        """
        if self.world.now_ms + ms - self.swept_ms >= _LONG_MS:
            for _ in range(2):
                self.act(self.world.map_work)
            self.swept_ms = self.world.now_ms
        self.world.now_ms += ms
        if late:
            self.act(self.world.expire)
            self.touched.update(Execution.objects.values_list("pk", flat=True))

    @precondition(lambda self: self.started and self.world.doom is None)
    @rule(commits=st.integers(0, 2), moment=st.sampled_from(["before", "after"]))
    def crash(self, commits: int, moment: str) -> None:
        """The process will die at one of its next commits."""
        self.world.doom = (commits, moment)

    @precondition(lambda self: self.started)
    @rule()
    def restart(self) -> None:
        """The process ends and another one begins."""
        self.act(self.world.restart)
        self.touched.update(Execution.objects.values_list("pk", flat=True))

    # -- what must hold ----------------------------------------------------------------------------

    @invariant()
    def nothing_is_wrong(self) -> None:
        """The invariants hold of what was touched, and no history forgets its beginning."""
        if not self.touched:
            return
        executions = Execution.objects.filter(pk__in=self.touched)
        self.touched = set()
        for batch in batches(executions):
            for record in batch:
                none(map(str, of_execution(record)))
                before = self.histories.get(record.execution.pk, [])
                assert record.events[: len(before)] == before, "I16"
                self.histories[record.execution.pk] = record.events

    @invariant()
    def a_pause_is_kept(self) -> None:
        """A paused execution takes no step, whatever comes in and whoever dies."""
        before = len(self.world.pauses)
        none(self.world.broken_pauses())
        Simulation.paused += max(len(self.world.pauses) - before, 0)

    def teardown(self) -> None:
        """All come to their end, as a pure interpreter has it; what clients were told is there."""
        self.touched = set(Execution.objects.values_list("pk", flat=True))
        self.world.finish()
        none(self.world.stuck())
        self.touched.update(Execution.objects.values_list("pk", flat=True))
        self.nothing_is_wrong()
        none(self.world.doubled_strikes())
        Simulation.struck += self.world.strikes
        none(self.world.wrong_places())
        Simulation.placed += self.world.taken
        log = Log()
        none(map(str, log.check(map(json.dumps, self.world.log))))
        for batch in batches(Execution.objects.all()):
            for record in batch:
                # A pure interpreter knows nothing of faults, and of people at breakpoints.
                row = record.execution
                if row.name not in self.world.debugged and not (row.faults or row.next_starts):
                    none(filter(None, [difference(record)]))


def none(problems: Iterable[str]) -> None:
    """Fail with all that was found, if anything was."""
    texts = list(problems)
    assert not texts, "\n".join(texts)
